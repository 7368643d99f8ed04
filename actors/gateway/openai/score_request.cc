#include "actors/gateway/openai/score_request.h"

#include <utility>

#include "actors/gateway/openai/common_fields.h"
#include "actors/gateway/openai/model_catalogue.h"
#include "actors/gateway/openai/request_limits.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kFields[] = {
    {"model", kUsed, "a name that `GET /v1/models` lists"},
    {"prompt", kUsed, "a string, or an array of token ids"},
    {"continuations", kUsed, "an array of strings, or of arrays of token ids"},
    {"cache_salt", kUsed, "vLLM's; shares cached prefixes only within one salt"},
    {"priority", kUsed, "0 only"},
    {"user", kTolerated, ""},
    {"text_1", kUnsupported, "vLLM's score of a pair, for models that were trained for it"},
    {"text_2", kUnsupported, "as `text_1`"},
    {"queries", kUnsupported, "as `text_1`"},
    {"documents", kUnsupported, "as `text_1`"},
    {"query", kUnsupported, "SGLang's; send `prompt`"},
    {"items", kUnsupported, "SGLang's; send `continuations`"},
    {"label_token_ids", kUnsupported, "SGLang's; send each label as a continuation"},
    {"apply_softmax", kUnsupported, "SGLang's"},
    {"item_first", kUnsupported, "SGLang's"},
    {"truncate_prompt_tokens", kUnsupported, "a cut prompt has other scores"},
};

Result<RawPrompt> parse_text(const Json& value, const std::string& path,
                             const RequestRules& rules) {
  RawPrompt out;
  if (value.is_string() && !value.get_ref<const std::string&>().empty()) {
    out.text = value.get_ref<const std::string&>();
    return out;
  }
  if (!value.is_array() || value.empty()) {
    return bad_value(path, "must be a non-empty string or a non-empty array of token ids", value);
  }
  out.is_tokens = true;
  TROUPE_ASSIGN_OR_RETURN(out.tokens, parse_token_array(value, path, rules));
  return out;
}

Status parse_continuations(const FieldReader& fields, const RequestRules& rules, ScoreBody& out) {
  const std::string path = "continuations";
  const Json* value = fields.find(path);
  if (value == nullptr || !value->is_array() || value->empty() ||
      value->size() > kContinuationsMax) {
    const std::string rule = "must be an array of 1 to " + std::to_string(kContinuationsMax) +
                             " strings or arrays of token ids";
    if (value == nullptr) return invalid_argument(path + " " + rule, path);
    return bad_value(path, rule, *value);
  }
  for (size_t i = 0; i < value->size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(RawPrompt one,
                            parse_text((*value)[i], path + "[" + std::to_string(i) + "]", rules));
    out.continuations.push_back(std::move(one));
  }
  return ok_status();
}

Result<std::vector<TokenId>> encode(const RawPrompt& raw, const CataloguedModel& model,
                                    BeginToken begin, const std::string& path) {
  if (raw.is_tokens) return raw.tokens;
  Result<std::vector<TokenId>> tokens = model.encoder().encode_text(raw.text, begin);
  if (!tokens.ok()) return Status(tokens.status().code(), tokens.status().message(), path);
  if (tokens->empty()) return invalid_argument(path + " has no tokens", path);
  return tokens;
}

}  // namespace

std::span<const KnownField> score_fields() {
  return kFields;
}

Result<ScoreBody> parse_score_body(std::string_view body, std::span<const RequestRules> models) {
  TROUPE_ASSIGN_OR_RETURN(const Json object, parse_object(body));
  TROUPE_RETURN_IF_ERROR(check_known_fields(object, "", kFields));
  const FieldReader fields(object, "");
  ScoreBody out;
  TROUPE_ASSIGN_OR_RETURN(out.model, find_model(fields, models, ModelField::kRequired));
  const RequestRules& rules = models[out.model];
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) {
    return invalid_argument("prompt is missing; send a string or an array of token ids", "prompt");
  }
  TROUPE_ASSIGN_OR_RETURN(out.prompt, parse_text(*prompt, "prompt", rules));
  TROUPE_RETURN_IF_ERROR(parse_continuations(fields, rules, out));
  TROUPE_RETURN_IF_ERROR(check_priority(fields));
  TROUPE_RETURN_IF_ERROR(parse_cache_salt(fields, out.cache_salt));
  return out;
}

Result<ScoreTokens> encode_score(const ScoreBody& body, const CataloguedModel& model) {
  ScoreTokens out;
  TROUPE_ASSIGN_OR_RETURN(out.prompt,
                          encode(body.prompt, model, BeginToken::kAsTheModelAsks, "prompt"));
  const size_t context = model.served().context_tokens;
  size_t total = 0;
  for (size_t i = 0; i < body.continuations.size(); ++i) {
    const std::string path = "continuations[" + std::to_string(i) + "]";
    TROUPE_ASSIGN_OR_RETURN(std::vector<TokenId> tokens,
                            encode(body.continuations[i], model, BeginToken::kNone, path));
    const size_t whole = out.prompt.size() + tokens.size();
    if (whole > context) {
      return Status(StatusCode::kContextLength,
                    "the prompt has " + std::to_string(out.prompt.size()) + " tokens and " + path +
                        " has " + std::to_string(tokens.size()) + "; this model's context is " +
                        std::to_string(context) + "; shorten one of them",
                    path);
    }
    total += whole;
    if (total > kPromptBatchTokensMax) {
      return invalid_argument("the prompt with each of the continuations has more than " +
                                  std::to_string(kPromptBatchTokensMax) +
                                  " tokens in all; send them in several requests",
                              "continuations");
    }
    out.continuations.push_back(std::move(tokens));
  }
  return out;
}

}  // namespace troupe
