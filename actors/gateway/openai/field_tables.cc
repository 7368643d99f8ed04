#include "actors/gateway/openai/field_tables.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe {
namespace {

constexpr std::pair<std::string_view, std::string_view> kNotes[] = {
    {"model", "a name that `GET /v1/models` lists"},
    {"messages", "see Requests"},
    {"prompt", "a string, an array of strings, of token ids, or of arrays of token ids"},
    {"temperature", "0 to 2; 0 takes the most probable token"},
    {"top_p", "above 0 to 1"},
    {"top_k", "vLLM's; 0 and -1 are off"},
    {"min_p", "vLLM's; 0 to 1, of the most probable token's probability"},
    {"repetition_penalty", "vLLM's; above 0 to 10, over prompt and answer"},
    {"presence_penalty", "-2 to 2, over the answer"},
    {"frequency_penalty", "-2 to 2, over the answer"},
    {"logit_bias", "token ids to -100 to 100"},
    {"allowed_token_ids", "vLLM's; no other token is sampled, an end token neither"},
    {"bad_words", "vLLM's; up to 256 strings that do not come up in these words' usual tokens"},
    {"reasoning_effort",
     "`none` to `max`, where the model's template reads a variable of this name; else refused"},
    {"seed", "64 bits; fixes the answer, whatever else runs"},
    {"n", "1 to 16"},
    {"stop", "a string or up to 4, of 1 to 1,024 bytes each"},
    {"stop_token_ids", "vLLM's"},
    {"include_stop_str_in_output", "vLLM's"},
    {"ignore_eos", "vLLM's"},
    {"min_tokens", "vLLM's; no end before so many tokens"},
    {"max_tokens", "`max_completion_tokens` wins over it"},
    {"max_completion_tokens", "what does not fit the context is refused, not cut"},
    {"logprobs", "in a chat a boolean, in completions 0 to 20"},
    {"top_logprobs", "0 to 20, with `logprobs`"},
    {"echo", "the prompt before the answer; with `logprobs` its scores"},
    {"best_of", "equal to `n` only"},
    {"stream_options", "`include_usage`, and vLLM's `continuous_usage_stats`"},
    {"cache_salt", "vLLM's; shares cached prefixes only within one salt"},
    {"modalities", "`[\"text\"]` only"},
    {"priority", "0 only: there is one class of requests"},
    {"skip_special_tokens", "`true` only: control tokens are never shown"},
    {"add_special_tokens", "vLLM's; whether a text gets the model's begin token"},
    {"add_generation_prompt", "vLLM's; whether the prompt ends where the answer begins"},
    {"continue_final_message", "vLLM's; the answer goes on with the last message"},
    {"chat_template", "vLLM's; only where the server trusts its clients with templates"},
    {"chat_template_kwargs", "vLLM's; variables of the template, such as `enable_thinking`"},
    {"return_token_strs", "vLLM's; the spelling of each token"},
    {"suffix", "the model is not trained to fill in"},
    {"functions", "replaced by `tools`"},
    {"function_call", "replaced by `tool_choice`"},
    {"use_beam_search", "one sequence of tokens is followed"},
    {"prediction", "drafts are not taken from clients"},
    {"web_search_options", "this server runs no tools of its own"},
    {"audio", "text only"},
    {"prompt_logprobs", "vLLM's; send `echo` with `logprobs` to `/v1/completions`"},
};

}  // namespace

std::string_view shared_note(std::string_view name) {
  const auto* found = std::find_if(std::begin(kNotes), std::end(kNotes),
                                   [name](const auto& note) { return note.first == name; });
  return found == std::end(kNotes) ? std::string_view() : found->second;
}

}  // namespace troupe
