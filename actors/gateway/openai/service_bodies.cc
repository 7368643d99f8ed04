#include "actors/gateway/openai/service_bodies.h"

#include <utility>

#include "actors/gateway/text/escape.h"
#include "engine/tokenizer/detokenizer.h"

namespace troupe {

std::string format_model(const ServedModel& model) {
  std::string out = "{\"id\":";
  append_json_string(out, model.name);
  out += ",\"object\":\"model\",\"created\":" + std::to_string(model.created_unix_s);
  out += ",\"owned_by\":\"troupe\",\"root\":";
  append_json_string(out, model.root.empty() ? model.name : model.root);
  out += ",\"parent\":null,\"max_model_len\":" + std::to_string(model.context_tokens);
  out += '}';
  return out;
}

std::string format_model_list(const ModelCatalogue& models, const HealthSource& health) {
  std::string out = "{\"object\":\"list\",\"data\":[";
  bool first = true;
  for (size_t i = 0; i < models.size(); ++i) {
    const ServedModel& model = models.at(i).served();
    if (!health.health_of(model.digest).ok()) continue;
    if (!std::exchange(first, false)) out += ',';
    out += format_model(model);
  }
  return out + "]}";
}

Result<std::vector<TokenId>> tokenize(const TokenizeBody& request, const CataloguedModel& model,
                                      int64_t unix_seconds) {
  const BeginToken begin =
      request.add_special_tokens ? BeginToken::kAsTheModelAsks : BeginToken::kNone;
  if (!request.messages.is_array()) return model.encoder().encode_text(request.prompt, begin);
  TROUPE_ASSIGN_OR_RETURN(
      ChatTokens chat,
      model.encoder().encode_chat(request.messages, request.chat, begin, unix_seconds));
  return std::move(chat.tokens);
}

Result<std::string> detokenize(const DetokenizeBody& request, const CataloguedModel& model) {
  TROUPE_ASSIGN_OR_RETURN(const std::string bytes, model.served().tokenizer.decode(request.tokens));
  return to_valid_utf8(bytes);
}

Result<std::string> answer_tokenize(std::string_view body, const ModelCatalogue& models,
                                    int64_t unix_seconds) {
  TROUPE_ASSIGN_OR_RETURN(const TokenizeBody request, parse_tokenize_body(body, models.rules()));
  const ServedModel& model = models.at(request.model).served();
  TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                          tokenize(request, models.at(request.model), unix_seconds));
  std::string ids;
  std::string spellings;
  for (const TokenId id : tokens) {
    if (!ids.empty()) ids += ',';
    ids += std::to_string(id);
    if (!request.return_token_strs) continue;
    if (!spellings.empty()) spellings += ',';
    append_json_string(spellings, to_valid_utf8(model.tokenizer.token_bytes(id)));
  }
  const std::string strings = request.return_token_strs ? "[" + spellings + "]" : "null";
  return "{\"count\":" + std::to_string(tokens.size()) +
         ",\"max_model_len\":" + std::to_string(model.context_tokens) + ",\"tokens\":[" + ids +
         "],\"token_strs\":" + strings + "}";
}

Result<std::string> answer_detokenize(std::string_view body, const ModelCatalogue& models) {
  TROUPE_ASSIGN_OR_RETURN(const DetokenizeBody request,
                          parse_detokenize_body(body, models.rules()));
  TROUPE_ASSIGN_OR_RETURN(const std::string text, detokenize(request, models.at(request.model)));
  std::string out = "{\"prompt\":";
  append_json_string(out, text);
  out += '}';
  return out;
}

}  // namespace troupe
