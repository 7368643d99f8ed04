#include "actors/gateway/openai/prepared_request.h"

#include <algorithm>
#include <utility>

#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/tools/tool_grammar.h"
#include "base/assert.h"
#include "engine/sample/validate.h"
#include "engine/tokenizer/detokenizer.h"

namespace troupe {

namespace {

Status set_max_tokens(const GenerationBody& body, const ServedModel& model,
                      const std::string& param, PreparedPrompt& prompt) {
  const uint32_t context_tokens = model.context_tokens;
  const size_t used = prompt.tokens.size();
  const bool prompt_only = body.max_tokens == 0U;
  if (used > context_tokens || (used == context_tokens && !prompt_only)) {
    return context_length_error(used, 0, "", context_tokens, param);
  }
  const auto room = static_cast<uint32_t>(context_tokens - used);
  if (body.max_tokens) {
    if (*body.max_tokens > room) {
      return context_length_error(used, *body.max_tokens, body.max_tokens_field, context_tokens,
                                  body.max_tokens_field);
    }
    prompt.max_tokens = *body.max_tokens;
  } else {
    prompt.max_tokens = body.api == Api::kChat ? room : std::min(room, kCompletionTokensDefault);
  }
  // Here too, since the limit may be the default one.
  if (body.sampling.min_tokens > prompt.max_tokens) {
    return invalid_argument("min_tokens must be at most the " + std::to_string(prompt.max_tokens) +
                                " tokens that may be generated; got " +
                                std::to_string(body.sampling.min_tokens),
                            "min_tokens");
  }
  if (prompt_only) return ok_status();
  // The engine's own rules, in case they are narrower than what the parser lets through.
  SamplingParams params = body.sampling;
  params.max_tokens = prompt.max_tokens;
  return validate(params, {static_cast<uint32_t>(model.tokenizer.vocab_size()), context_tokens,
                           body.api == Api::kChat ? "top_logprobs" : "logprobs"});
}

Status check_copies(const GenerationBody& body) {
  const uint64_t prompts = body.api == Api::kChat ? 1 : body.prompts.size();
  size_t bad_word_tokens = 0;
  for (const auto& word : body.sampling.bad_words) bad_word_tokens += word.size();
  const std::pair<const char*, size_t> lists[] = {
      {"logit_bias", body.sampling.logit_bias.size()},
      {"allowed_token_ids", body.sampling.allowed_tokens.size()},
      {"bad_words", bad_word_tokens},
  };
  for (const auto& [name, entries] : lists) {
    if (entries * prompts * body.choices <= kBiasCopiesMax) continue;
    return invalid_argument(std::string(name) + " has " + std::to_string(entries) +
                                " entries for " + std::to_string(prompts * body.choices) +
                                " choices; entries times choices must be at most " +
                                std::to_string(kBiasCopiesMax),
                            name);
  }
  return ok_status();
}

// Each word as it is spelt at the beginning of a text, and behind a space where that makes other
// tokens of it.
Status set_bad_words(GenerationBody& body, const CataloguedModel& model) {
  for (const std::string& given : body.bad_words) {
    const std::string word = given.substr(given.find_first_not_of(" \t\n\r\f\v"));
    const PromptEncoder& encoder = model.encoder();
    TROUPE_ASSIGN_OR_RETURN(std::vector<TokenId> first,
                            encoder.encode_text(word, BeginToken::kNone));
    TROUPE_ASSIGN_OR_RETURN(std::vector<TokenId> behind,
                            encoder.encode_text(" " + word, BeginToken::kNone));
    if (!behind.empty() && behind != first) body.sampling.bad_words.push_back(std::move(behind));
    if (!first.empty()) body.sampling.bad_words.push_back(std::move(first));
  }
  body.bad_words.clear();
  return ok_status();
}

Result<PreparedPrompt> prepare_raw(RawPrompt raw, const GenerationBody& body,
                                   const CataloguedModel& model, const std::string& param) {
  PreparedPrompt prompt;
  if (raw.is_tokens) {
    prompt.tokens = std::move(raw.tokens);
  } else {
    Result<std::vector<TokenId>> tokens =
        model.encoder().encode_text(raw.text, BeginToken::kAsTheModelAsks);
    if (!tokens.ok()) return Status(tokens.status().code(), tokens.status().message(), param);
    prompt.tokens = std::move(tokens).value();
  }
  if (prompt.tokens.empty()) {
    return invalid_argument(param + " must not be empty: this model needs a token to start from",
                            param);
  }
  if (!body.echo) return prompt;
  if (raw.is_tokens) {
    TROUPE_ASSIGN_OR_RETURN(const std::string bytes,
                            model.served().tokenizer.decode(prompt.tokens));
    prompt.echo_text = to_valid_utf8(bytes);
  } else {
    prompt.echo_text = std::move(raw.text);
  }
  return prompt;
}

// What the answer must look like, now that it is known where it begins.
Status set_answer_grammar(PreparedPrompt& prompt, GenerationBody& body) {
  if (!body.tools.on()) {
    prompt.format.tools = ToolFormat::kNone;
  } else if (prompt.format.tools == ToolFormat::kNone) {
    return Status(StatusCode::kUnsupported,
                  "tools are turned off for this model (--tool-call-format none); remove them, or "
                  "send tool_choice \"none\"",
                  "tools");
  }
  body.sampling.grammar =
      answer_grammar(body.tools, body.sampling.grammar, prompt.format, prompt.end);
  return ok_status();
}

}  // namespace

Result<PreparedRequest> prepare_request(GenerationBody body, const CataloguedModel& model,
                                        int64_t unix_seconds) {
  TROUPE_RETURN_IF_ERROR(set_bad_words(body, model));
  TROUPE_RETURN_IF_ERROR(check_copies(body));
  PreparedRequest out;
  out.model = &model;
  if (body.api == Api::kChat) {
    PreparedPrompt prompt;
    TROUPE_ASSIGN_OR_RETURN(ChatTokens chat,
                            model.encoder().encode_chat(body.messages, body.chat,
                                                        BeginToken::kAsTheModelAsks, unix_seconds));
    prompt.tokens = std::move(chat.tokens);
    prompt.format = chat.format;
    prompt.end = chat.end;
    if (prompt.tokens.empty()) {
      return invalid_argument("the chat template made an empty prompt of the messages", "messages");
    }
    TROUPE_RETURN_IF_ERROR(set_answer_grammar(prompt, body));
    TROUPE_RETURN_IF_ERROR(set_max_tokens(body, model.served(), "messages", prompt));
    out.prompts.push_back(std::move(prompt));
    body.messages = nullptr;  // rendered; no need to keep a conversation for minutes
    body.chat = {};
  }
  for (size_t i = 0; i < body.prompts.size(); ++i) {
    const std::string param =
        body.prompts.size() == 1 ? "prompt" : "prompt[" + std::to_string(i) + "]";
    TROUPE_ASSIGN_OR_RETURN(PreparedPrompt prompt,
                            prepare_raw(std::move(body.prompts[i]), body, model, param));
    TROUPE_RETURN_IF_ERROR(set_max_tokens(body, model.served(), param, prompt));
    out.prompts.push_back(std::move(prompt));
  }
  body.prompts.clear();
  TROUPE_ASSERT(!out.prompts.empty(), body.choices);
  out.body = std::move(body);
  return out;
}

}  // namespace troupe
