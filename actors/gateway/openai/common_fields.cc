#include "actors/gateway/openai/common_fields.h"

#include <algorithm>
#include <utility>

#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/openai/sampling_fields.h"
#include "actors/gateway/openai/structured_fields.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

// Model names that an error text lists.
constexpr size_t kModelsNamedMax = 4;

std::string quoted(std::string_view name) {
  return '"' + std::string(name) + '"';
}

// What there is, for an error text.
std::string names_of(std::span<const RequestRules> models) {
  std::string out;
  for (const RequestRules& model : models.first(std::min(models.size(), kModelsNamedMax))) {
    out += (out.empty() ? "" : ", ") + quoted(model.model_name);
  }
  if (models.size() <= kModelsNamedMax) return out;
  return out + " and " + std::to_string(models.size() - kModelsNamedMax) + " more";
}

Status parse_stops(const FieldReader& fields, GenerationBody& out) {
  const Json* value = fields.find("stop");
  if (value == nullptr) return ok_status();
  const bool array = value->is_array();
  if (!array && !value->is_string()) {
    return bad_value("stop", "must be a string or an array of strings", *value);
  }
  if (array && value->size() > kStopsMax) {
    return invalid_argument("stop must have at most " + std::to_string(kStopsMax) +
                                " strings; got " + std::to_string(value->size()),
                            "stop");
  }
  for (size_t i = 0; i < (array ? value->size() : 1); ++i) {
    const Json& stop = array ? (*value)[i] : *value;
    const std::string path = array ? "stop[" + std::to_string(i) + "]" : "stop";
    const std::string rule = "must be a string of 1 to " + std::to_string(kStopBytesMax) + " bytes";
    if (!stop.is_string()) return bad_value(path, rule, stop);
    const auto& text = stop.get_ref<const std::string&>();
    if (text.empty() || text.size() > kStopBytesMax) return bad_value(path, rule, stop);
    out.stops.push_back(text);
  }
  return ok_status();
}

Status parse_bad_words(const FieldReader& fields, GenerationBody& out) {
  const Json* value = fields.find("bad_words");
  if (value == nullptr) return ok_status();
  if (!value->is_array() || value->size() > kBadWordsMax) {
    return bad_value("bad_words",
                     "must be an array of at most " + std::to_string(kBadWordsMax) + " strings",
                     *value);
  }
  for (size_t i = 0; i < value->size(); ++i) {
    const Json& word = (*value)[i];
    const std::string path = "bad_words[" + std::to_string(i) + "]";
    const std::string rule = "must be a string of 1 to " + std::to_string(kStopBytesMax) +
                             " bytes, not of white space alone";
    if (!word.is_string()) return bad_value(path, rule, word);
    const auto& text = word.get_ref<const std::string&>();
    const bool is_blank = text.find_first_not_of(" \t\n\r\f\v") == std::string::npos;
    if (is_blank || text.size() > kStopBytesMax) return bad_value(path, rule, word);
    out.bad_words.push_back(text);
  }
  return ok_status();
}

Status parse_stream_options(const FieldReader& fields, GenerationBody& out) {
  TROUPE_RETURN_IF_ERROR(fields.read("stream", out.stream));
  const Json* value = fields.find("stream_options");
  if (value == nullptr) return ok_status();
  if (!out.stream) {
    return invalid_argument("stream_options is only allowed when stream is true; remove it",
                            "stream_options");
  }
  if (!value->is_object()) return bad_value("stream_options", "must be an object", *value);
  constexpr KnownField kFields[] = {
      {"include_usage"}, {"continuous_usage_stats"}, {"include_obfuscation", FieldUse::kTolerated}};
  TROUPE_RETURN_IF_ERROR(check_known_fields(*value, "stream_options.", kFields));
  const FieldReader options(*value, "stream_options.");
  TROUPE_RETURN_IF_ERROR(options.read("include_usage", out.include_usage));
  return options.read("continuous_usage_stats", out.continuous_usage);
}

// Fields that exist but have one possible value today.
Status check_fixed_fields(const FieldReader& fields) {
  bool skip_special = true;
  TROUPE_RETURN_IF_ERROR(fields.read("skip_special_tokens", skip_special));
  if (!skip_special) {
    return Status(StatusCode::kUnsupported,
                  "skip_special_tokens must be true: control tokens are never shown",
                  "skip_special_tokens");
  }
  // Routers in front of servers (vllm-router, sglang-router) spell out these defaults of theirs.
  for (const char* name : {"separate_reasoning", "stream_reasoning", "include_reasoning"}) {
    bool value = true;
    TROUPE_RETURN_IF_ERROR(fields.read(name, value));
    if (value) continue;
    return Status(StatusCode::kUnsupported,
                  std::string(name) + " must be true: reasoning is never left out or held back",
                  name);
  }
  return check_priority(fields);
}

// The newer name wins; both are checked.
Status parse_max_tokens(const FieldReader& fields, GenerationBody& out) {
  const int64_t low = out.api == Api::kChat ? 1 : 0;
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    std::optional<int64_t> value;
    TROUPE_RETURN_IF_ERROR(fields.read(name, low, INT32_MAX, value));
    if (!value) continue;
    out.max_tokens = static_cast<uint32_t>(*value);
    out.max_tokens_field = name;
  }
  if (out.max_tokens && out.sampling.min_tokens > *out.max_tokens) {
    return invalid_argument("min_tokens must be at most " + out.max_tokens_field + ", which is " +
                                std::to_string(*out.max_tokens) + "; got " +
                                std::to_string(out.sampling.min_tokens),
                            "min_tokens");
  }
  return ok_status();
}

}  // namespace

Result<Json> parse_object(std::string_view body) {
  Result<Json> parsed = parse_json(body);
  if (!parsed.ok()) {
    const Status& status = parsed.status();
    const std::string rule = sampling_rule(status.param());
    if (rule.empty()) return status;
    return invalid_argument(status.message() + "; " + status.param() + " " + rule, status.param());
  }
  if (!parsed->is_object()) {
    return invalid_argument("the body must be a JSON object; got " + json_excerpt(parsed.value()));
  }
  return parsed;
}

Result<size_t> find_model(const FieldReader& fields, std::span<const RequestRules> models,
                          ModelField rule) {
  if (models.empty()) return no_model_yet();
  const Json* value = fields.find("model");
  if (value == nullptr) {
    const bool one = std::all_of(models.begin(), models.end(), [&](const RequestRules& model) {
      return model.digest == models[0].digest && !model.digest.empty();
    });
    if (rule == ModelField::kOptionalIfOne && (one || models.size() == 1)) return 0;
    return invalid_argument("model is missing; send " +
                                std::string(models.size() > 1 ? "one of " : "") + names_of(models),
                            "model");
  }
  if (!value->is_string()) return bad_value("model", "must be a string", *value);
  const auto& name = value->get_ref<const std::string&>();
  for (size_t i = 0; i < models.size(); ++i) {
    if (models[i].model_name == name) return i;
  }
  return Status(StatusCode::kNotFound,
                "the model " + json_excerpt(*value) + " does not exist here; this server has " +
                    names_of(models),
                "model");
}

Status parse_common(const FieldReader& fields, const RequestRules& rules, GenerationBody& out) {
  TROUPE_RETURN_IF_ERROR(parse_sampling_fields(fields, rules.vocab_size, out.sampling));
  TROUPE_RETURN_IF_ERROR(parse_seed(fields, out.seed));
  std::optional<int64_t> n;
  TROUPE_RETURN_IF_ERROR(fields.read("n", 1, kChoicesMax, n));
  out.choices = static_cast<uint32_t>(n.value_or(1));
  TROUPE_RETURN_IF_ERROR(parse_max_tokens(fields, out));
  TROUPE_RETURN_IF_ERROR(parse_stops(fields, out));
  TROUPE_RETURN_IF_ERROR(parse_bad_words(fields, out));
  bool include_stop = false;
  TROUPE_RETURN_IF_ERROR(fields.read("include_stop_str_in_output", include_stop));
  out.stop_text = include_stop ? StopText::kInclude : StopText::kExclude;
  TROUPE_RETURN_IF_ERROR(parse_stream_options(fields, out));
  TROUPE_RETURN_IF_ERROR(parse_cache_salt(fields, out.cache_salt));
  TROUPE_RETURN_IF_ERROR(parse_structured_fields(fields, out.sampling.grammar));
  return check_fixed_fields(fields);
}

Status parse_cache_salt(const FieldReader& fields, std::string& out) {
  TROUPE_RETURN_IF_ERROR(fields.read("cache_salt", out));
  if (!fields.has("cache_salt") || (!out.empty() && out.size() <= kCacheSaltBytesMax)) {
    return ok_status();
  }
  return bad_value("cache_salt", "must have 1 to " + std::to_string(kCacheSaltBytesMax) + " bytes",
                   *fields.find("cache_salt"));
}

Status check_priority(const FieldReader& fields) {
  const Json* value = fields.find("priority");
  if (value == nullptr || *value == 0) return ok_status();
  return {StatusCode::kUnsupported, "priority must be 0: this server has one class of requests",
          "priority"};
}

Result<std::vector<TokenId>> parse_token_array(const Json& array, const std::string& path,
                                               const RequestRules& rules) {
  std::vector<TokenId> tokens;
  tokens.reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) {
    const Json& value = array[i];
    const bool fits = value.is_number_unsigned() && value.get<uint64_t>() < rules.vocab_size;
    if (!fits) {
      const std::string at = path + "[" + std::to_string(i) + "]";
      return bad_value(
          at, "must be a token id in [0, " + std::to_string(rules.vocab_size - 1) + "]", value);
    }
    tokens.push_back(static_cast<TokenId>(value.get<uint64_t>()));
  }
  return tokens;
}

Status no_model_yet() {
  return {StatusCode::kUnavailable,
          "no worker has joined yet, so there is no model to serve; try again soon"};
}

}  // namespace troupe
