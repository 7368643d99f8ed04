#include "actors/gateway/openai/request.h"

#include <utility>

#include "actors/gateway/openai/common_fields.h"
#include "actors/gateway/openai/field_tables.h"
#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/request_limits.h"
#include "engine/sample/validate.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kCompletionsFields[] = {
    {"model"},
    {"prompt"},
    {"echo"},
    {"best_of"},
    {"temperature"},
    {"top_p"},
    {"top_k"},
    {"min_p"},
    {"repetition_penalty"},
    {"presence_penalty"},
    {"frequency_penalty"},
    {"logit_bias"},
    {"allowed_token_ids"},
    {"bad_words"},
    {"seed"},
    {"n"},
    {"stop"},
    {"stop_token_ids"},
    {"include_stop_str_in_output"},
    {"ignore_eos"},
    {"min_tokens"},
    {"max_tokens"},
    {"max_completion_tokens"},
    {"logprobs"},
    {"stream"},
    {"stream_options"},
    {"cache_salt"},
    {"response_format"},
    {"structured_outputs"},
    {"guided_json"},
    {"guided_regex"},
    {"guided_choice"},
    {"guided_grammar"},
    {"guided_decoding_backend", kTolerated},
    {"guided_whitespace_pattern", kUnsupported},
    {"priority"},
    {"skip_special_tokens"},
    {"user", kTolerated},
    {"store", kTolerated},
    {"metadata", kTolerated},
    {"service_tier", kTolerated},
    {"suffix", kUnsupported},
    {"messages", kUnsupported},
    {"prompt_logprobs", kUnsupported},
    {"truncate_prompt_tokens", kUnsupported},
    {"use_beam_search", kUnsupported},
    {"prompt_embeds", kUnsupported, "vLLM's; prompts are text or tokens"},
    {"add_special_tokens", kUnsupported, "vLLM's; send token ids for a prompt without begin token"},
    {"return_token_ids", kUnsupported, "vLLM's; `logprobs` and `/tokenize` tell tokens"},
    {"return_tokens_as_token_ids", kUnsupported, "vLLM's"},
    {"logprob_token_ids", kUnsupported, "vLLM's; `/v1/score` scores given tokens"},
    {"length_penalty", kUnsupported, "vLLM's, for beam search"},
    {"spaces_between_special_tokens", kUnsupported, "vLLM's"},
    {"logits_processors", kUnsupported, "vLLM's; code is not taken from clients"},
    {"repetition_detection", kUnsupported, "vLLM's"},
    {"kv_transfer_params", kUnsupported, "vLLM's; the router decides where KV goes"},
    {"vllm_xargs", kUnsupported, "vLLM's"},
    {"request_id", kUnsupported, "vLLM's; send the header `X-Request-Id`"},
    {"tools", kUnsupported},
    {"tool_choice", kUnsupported},
    {"no_stop_trim", kUnsupported},
    {"return_hidden_states", kUnsupported},
};

Result<RawPrompt> parse_one_prompt(const Json& value, const std::string& path,
                                   const RequestRules& rules) {
  RawPrompt prompt;
  if (value.is_string()) {
    prompt.text = value.get_ref<const std::string&>();
    return prompt;
  }
  if (!value.is_array() || value.empty()) {
    return bad_value(path, "must be a string or a non-empty array of token ids", value);
  }
  prompt.is_tokens = true;
  TROUPE_ASSIGN_OR_RETURN(prompt.tokens, parse_token_array(value, path, rules));
  return prompt;
}

// A string, an array of strings, an array of token ids, or an array of such arrays.
Status parse_prompts(const FieldReader& fields, const RequestRules& rules, GenerationBody& out) {
  const std::string path = "prompt";
  const Json* value = fields.find(path);
  if (value == nullptr) {
    return invalid_argument("prompt is missing; send a string or an array of token ids", path);
  }
  const bool batch = value->is_array() && !value->empty() &&
                     (value->front().is_string() || value->front().is_array());
  if (!batch) {
    TROUPE_ASSIGN_OR_RETURN(RawPrompt prompt, parse_one_prompt(*value, path, rules));
    out.prompts.push_back(std::move(prompt));
    return ok_status();
  }
  if (value->size() > kPromptsMax) {
    return invalid_argument("prompt must have at most " + std::to_string(kPromptsMax) +
                                " prompts; got " + std::to_string(value->size()),
                            path);
  }
  for (size_t i = 0; i < value->size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    if ((*value)[i].type() != value->front().type()) {
      return bad_value(at, "must be of the same kind as the first prompt", (*value)[i]);
    }
    TROUPE_ASSIGN_OR_RETURN(RawPrompt prompt, parse_one_prompt((*value)[i], at, rules));
    out.prompts.push_back(std::move(prompt));
  }
  return ok_status();
}

Status parse_completions_only(const FieldReader& fields, GenerationBody& out) {
  std::optional<int64_t> logprobs;
  TROUPE_RETURN_IF_ERROR(fields.read("logprobs", 0, kLogprobsMax, logprobs));
  out.sampling.logprobs = static_cast<int32_t>(logprobs.value_or(-1));
  TROUPE_RETURN_IF_ERROR(fields.read("echo", out.echo));
  if (out.echo) out.sampling.prompt_logprobs = out.sampling.logprobs;
  std::optional<int64_t> best_of;
  TROUPE_RETURN_IF_ERROR(fields.read("best_of", 1, kChoicesMax, best_of));
  if (best_of && *best_of != out.choices) {
    return Status(StatusCode::kUnsupported,
                  "best_of must equal n: this server does not discard choices", "best_of");
  }
  if (out.max_tokens == 0U && out.choices > 1) {
    return invalid_argument("n must be 1 when max_tokens is 0: all choices would be the prompt",
                            "n");
  }
  return ok_status();
}

}  // namespace

std::span<const KnownField> completions_fields() {
  return kCompletionsFields;
}

Result<GenerationBody> parse_completions_body(std::string_view body,
                                              std::span<const RequestRules> models) {
  TROUPE_ASSIGN_OR_RETURN(const Json object, parse_object(body));
  return check_completions(object, models);
}

Result<GenerationBody> check_completions(const Json& object, std::span<const RequestRules> models) {
  TROUPE_RETURN_IF_ERROR(check_known_fields(object, "", kCompletionsFields));
  const FieldReader fields(object, "");
  GenerationBody out;
  out.api = Api::kCompletions;
  TROUPE_ASSIGN_OR_RETURN(out.model, find_model(fields, models, ModelField::kRequired));
  const RequestRules& rules = models[out.model];
  TROUPE_RETURN_IF_ERROR(parse_common(fields, rules, out));
  TROUPE_RETURN_IF_ERROR(parse_completions_only(fields, out));
  TROUPE_RETURN_IF_ERROR(parse_prompts(fields, rules, out));
  return out;
}

}  // namespace troupe
