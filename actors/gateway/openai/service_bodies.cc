#include "actors/gateway/openai/service_bodies.h"

#include "actors/gateway/text/escape.h"
#include "engine/tokenizer/detokenizer.h"

namespace troupe {

std::string format_model(const ServedModel& model) {
  std::string out = "{\"id\":";
  append_json_string(out, model.name);
  out += ",\"object\":\"model\",\"created\":" + std::to_string(model.created_unix_s);
  out += ",\"owned_by\":\"troupe\",\"max_model_len\":" + std::to_string(model.context_tokens);
  out += '}';
  return out;
}

std::string format_model_list(const ServedModel& model) {
  return "{\"object\":\"list\",\"data\":[" + format_model(model) + "]}";
}

RequestRules rules_of(const ServedModel& model) {
  return {model.name, static_cast<uint32_t>(model.tokenizer.vocab_size()), model.context_tokens};
}

Result<std::string> answer_tokenize(std::string_view body, const ServedModel& model,
                                    const PromptEncoder& encoder, int64_t unix_seconds) {
  TROUPE_ASSIGN_OR_RETURN(const TokenizeBody request, parse_tokenize_body(body, rules_of(model)));
  const BeginToken begin =
      request.add_special_tokens ? BeginToken::kAsTheModelAsks : BeginToken::kNone;
  Result<std::vector<TokenId>> tokens =
      request.messages.is_array()
          ? encoder.encode_chat(request.messages,
                                {request.add_generation_prompt, begin, unix_seconds})
          : encoder.encode_text(request.prompt, begin);
  if (!tokens.ok()) return tokens.status();
  std::string ids;
  std::string spellings;
  for (const TokenId id : tokens.value()) {
    if (!ids.empty()) ids += ',';
    ids += std::to_string(id);
    if (!request.return_token_strs) continue;
    if (!spellings.empty()) spellings += ',';
    append_json_string(spellings, to_valid_utf8(model.tokenizer.token_bytes(id)));
  }
  const std::string strings = request.return_token_strs ? "[" + spellings + "]" : "null";
  return "{\"count\":" + std::to_string(tokens->size()) +
         ",\"max_model_len\":" + std::to_string(model.context_tokens) + ",\"tokens\":[" + ids +
         "],\"token_strs\":" + strings + "}";
}

Result<std::string> answer_detokenize(std::string_view body, const ServedModel& model) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                          parse_detokenize_body(body, rules_of(model)));
  TROUPE_ASSIGN_OR_RETURN(const std::string bytes, model.tokenizer.decode(tokens));
  std::string out = "{\"prompt\":";
  append_json_string(out, to_valid_utf8(bytes));
  out += '}';
  return out;
}

}  // namespace troupe
