#include "actors/gateway/openai/request.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "actors/gateway/openai/field_reader.h"
#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/messages.h"
#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/openai/sampling_fields.h"
#include "engine/sample/validate.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kChatFields[] = {
    {"model"},
    {"messages"},
    {"temperature"},
    {"top_p"},
    {"top_k"},
    {"min_p"},
    {"repetition_penalty"},
    {"presence_penalty"},
    {"frequency_penalty"},
    {"logit_bias"},
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
    {"top_logprobs"},
    {"stream"},
    {"stream_options"},
    {"cache_salt"},
    {"response_format"},
    {"tools"},
    {"tool_choice"},
    {"modalities"},
    {"priority"},
    {"skip_special_tokens"},
    {"user", kTolerated},
    {"store", kTolerated},
    {"metadata", kTolerated},
    {"service_tier", kTolerated},
    {"parallel_tool_calls", kTolerated},
    {"safety_identifier", kTolerated},
    {"prompt_cache_key", kTolerated},
    {"prompt_cache_retention", kTolerated},
    {"functions", kUnsupported},
    {"function_call", kUnsupported},
    {"audio", kUnsupported},
    {"prediction", kUnsupported},
    {"reasoning_effort", kUnsupported},
    {"verbosity", kUnsupported},
    {"web_search_options", kUnsupported},
    {"echo", kUnsupported},
    {"chat_template", kUnsupported},
    {"chat_template_kwargs", kUnsupported},
    {"continue_final_message", kUnsupported},
    {"structured_outputs", kUnsupported},
    {"prompt_logprobs", kUnsupported},
    {"use_beam_search", kUnsupported},
    {"bad_words", kUnsupported},
    {"allowed_token_ids", kUnsupported},
};

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
    {"priority"},
    {"skip_special_tokens"},
    {"user", kTolerated},
    {"store", kTolerated},
    {"metadata", kTolerated},
    {"service_tier", kTolerated},
    {"suffix", kUnsupported},
    {"messages", kUnsupported},
    {"structured_outputs", kUnsupported},
    {"prompt_logprobs", kUnsupported},
    {"truncate_prompt_tokens", kUnsupported},
    {"use_beam_search", kUnsupported},
    {"bad_words", kUnsupported},
    {"allowed_token_ids", kUnsupported},
    {"tools", kUnsupported},
    {"tool_choice", kUnsupported},
};

constexpr KnownField kTokenizeFields[] = {
    {"model"},
    {"prompt"},
    {"messages"},
    {"add_special_tokens"},
    {"add_generation_prompt"},
    {"return_token_strs"},
    {"tools", kUnsupported},
    {"chat_template", kUnsupported},
    {"chat_template_kwargs", kUnsupported},
    {"continue_final_message", kUnsupported},
};

constexpr KnownField kDetokenizeFields[] = {{"model"}, {"tokens"}};

// Model names that an error text lists.
constexpr size_t kModelsNamedMax = 4;

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

enum class ModelField { kRequired, kOptionalIfOne };

// The index of the model that the body names.
Result<size_t> find_model(const FieldReader& fields, std::span<const RequestRules> models,
                          ModelField rule) {
  if (models.empty()) return no_model_yet();
  const Json* value = fields.find("model");
  if (value == nullptr) {
    if (rule == ModelField::kOptionalIfOne && models.size() == 1) return 0;
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
      {"include_usage"}, {"continuous_usage_stats"}, {"include_obfuscation", kTolerated}};
  TROUPE_RETURN_IF_ERROR(check_known_fields(*value, "stream_options.", kFields));
  const FieldReader options(*value, "stream_options.");
  TROUPE_RETURN_IF_ERROR(options.read("include_usage", out.include_usage));
  return options.read("continuous_usage_stats", out.continuous_usage);
}

// Fields that exist but have one possible value today.
Status check_fixed_fields(const FieldReader& fields) {
  if (const Json* format = fields.find("response_format"); format != nullptr) {
    if (!format->is_object() || !format->contains("type") || !(*format)["type"].is_string()) {
      return bad_value("response_format", "must be an object with a string type", *format);
    }
    if ((*format)["type"] != "text") {
      return Status(StatusCode::kUnsupported,
                    "response_format.type must be \"text\", the only format of this server; got " +
                        json_excerpt((*format)["type"]),
                    "response_format");
    }
  }
  bool skip_special = true;
  TROUPE_RETURN_IF_ERROR(fields.read("skip_special_tokens", skip_special));
  if (!skip_special) {
    return Status(StatusCode::kUnsupported,
                  "skip_special_tokens must be true: control tokens are never shown",
                  "skip_special_tokens");
  }
  if (const Json* value = fields.find("priority"); value != nullptr && *value != 0) {
    return Status(StatusCode::kUnsupported,
                  "priority must be 0: this server has one class of requests", "priority");
  }
  return ok_status();
}

Status check_tools(const FieldReader& fields) {
  const Json* tools = fields.find("tools");
  const Json* choice = fields.find("tool_choice");
  if (tools != nullptr && !tools->is_array()) {
    return bad_value("tools", "must be an array", *tools);
  }
  if (choice != nullptr && !choice->is_string() && !choice->is_object()) {
    return bad_value("tool_choice", "must be a string or an object", *choice);
  }
  const bool none = choice != nullptr && *choice == "none";
  if (choice != nullptr && !none && (tools == nullptr || tools->empty())) {
    return invalid_argument("tool_choice needs tools; remove it, or send \"none\"", "tool_choice");
  }
  if (tools != nullptr && !tools->empty() && !none) {
    return Status(StatusCode::kUnsupported,
                  "tools are not supported by this server yet; remove them, or send tool_choice "
                  "\"none\"",
                  "tools");
  }
  if (const Json* value = fields.find("modalities");
      value != nullptr && *value != Json::array({"text"})) {
    return Status(StatusCode::kUnsupported, "modalities must be [\"text\"]", "modalities");
  }
  return ok_status();
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

// All that the two endpoints share.
Status parse_common(const FieldReader& fields, const RequestRules& rules, GenerationBody& out) {
  TROUPE_RETURN_IF_ERROR(parse_sampling_fields(fields, rules.vocab_size, out.sampling));
  TROUPE_RETURN_IF_ERROR(parse_seed(fields, out.seed));
  std::optional<int64_t> n;
  TROUPE_RETURN_IF_ERROR(fields.read("n", 1, kChoicesMax, n));
  out.choices = static_cast<uint32_t>(n.value_or(1));
  TROUPE_RETURN_IF_ERROR(parse_max_tokens(fields, out));
  TROUPE_RETURN_IF_ERROR(parse_stops(fields, out));
  bool include_stop = false;
  TROUPE_RETURN_IF_ERROR(fields.read("include_stop_str_in_output", include_stop));
  out.stop_text = include_stop ? StopText::kInclude : StopText::kExclude;
  TROUPE_RETURN_IF_ERROR(parse_stream_options(fields, out));
  TROUPE_RETURN_IF_ERROR(fields.read("cache_salt", out.cache_salt));
  if (fields.has("cache_salt") &&
      (out.cache_salt.empty() || out.cache_salt.size() > kCacheSaltBytesMax)) {
    return bad_value("cache_salt",
                     "must have 1 to " + std::to_string(kCacheSaltBytesMax) + " bytes",
                     *fields.find("cache_salt"));
  }
  return check_fixed_fields(fields);
}

Status parse_chat_logprobs(const FieldReader& fields, SamplingParams& out) {
  bool logprobs = false;
  std::optional<int64_t> top;
  TROUPE_RETURN_IF_ERROR(fields.read("logprobs", logprobs));
  TROUPE_RETURN_IF_ERROR(fields.read("top_logprobs", 0, kLogprobsMax, top));
  if (top && !logprobs) {
    return invalid_argument("top_logprobs needs logprobs to be true", "top_logprobs");
  }
  if (logprobs) out.logprobs = static_cast<int32_t>(top.value_or(0));
  return ok_status();
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

Status no_model_yet() {
  return {StatusCode::kUnavailable,
          "no worker has joined yet, so there is no model to serve; try again soon"};
}

Result<GenerationBody> parse_chat_body(std::string_view body,
                                       std::span<const RequestRules> models) {
  TROUPE_ASSIGN_OR_RETURN(const Json object, parse_object(body));
  return check_chat(object, models);
}

Result<GenerationBody> check_chat(const Json& object, std::span<const RequestRules> models) {
  TROUPE_RETURN_IF_ERROR(check_known_fields(object, "", kChatFields));
  const FieldReader fields(object, "");
  GenerationBody out;
  out.api = Api::kChat;
  TROUPE_ASSIGN_OR_RETURN(out.model, find_model(fields, models, ModelField::kRequired));
  const RequestRules& rules = models[out.model];
  TROUPE_RETURN_IF_ERROR(parse_common(fields, rules, out));
  TROUPE_RETURN_IF_ERROR(parse_chat_logprobs(fields, out.sampling));
  TROUPE_RETURN_IF_ERROR(check_tools(fields));
  TROUPE_ASSIGN_OR_RETURN(out.messages, parse_messages(fields.find("messages")));
  return out;
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

Result<TokenizeBody> parse_tokenize_body(std::string_view body,
                                         std::span<const RequestRules> models) {
  TROUPE_ASSIGN_OR_RETURN(const Json object, parse_object(body));
  return check_tokenize(object, models);
}

Result<TokenizeBody> check_tokenize(const Json& object, std::span<const RequestRules> models) {
  TROUPE_RETURN_IF_ERROR(check_known_fields(object, "", kTokenizeFields));
  const FieldReader fields(object, "");
  TokenizeBody out;
  TROUPE_ASSIGN_OR_RETURN(out.model, find_model(fields, models, ModelField::kOptionalIfOne));
  TROUPE_RETURN_IF_ERROR(fields.read("prompt", out.prompt));
  TROUPE_RETURN_IF_ERROR(fields.read("add_special_tokens", out.add_special_tokens));
  TROUPE_RETURN_IF_ERROR(fields.read("add_generation_prompt", out.add_generation_prompt));
  TROUPE_RETURN_IF_ERROR(fields.read("return_token_strs", out.return_token_strs));
  if (fields.has("prompt") == fields.has("messages")) {
    return invalid_argument("send either prompt or messages", "prompt");
  }
  if (fields.has("messages")) {
    TROUPE_ASSIGN_OR_RETURN(out.messages, parse_messages(fields.find("messages")));
  }
  return out;
}

Result<DetokenizeBody> parse_detokenize_body(std::string_view body,
                                             std::span<const RequestRules> models) {
  TROUPE_ASSIGN_OR_RETURN(const Json object, parse_object(body));
  return check_detokenize(object, models);
}

Result<DetokenizeBody> check_detokenize(const Json& object, std::span<const RequestRules> models) {
  TROUPE_RETURN_IF_ERROR(check_known_fields(object, "", kDetokenizeFields));
  const FieldReader fields(object, "");
  DetokenizeBody out;
  TROUPE_ASSIGN_OR_RETURN(out.model, find_model(fields, models, ModelField::kOptionalIfOne));
  const Json* value = fields.find("tokens");
  if (value == nullptr || !value->is_array()) {
    return invalid_argument("tokens must be an array of token ids", "tokens");
  }
  TROUPE_ASSIGN_OR_RETURN(out.tokens, parse_token_array(*value, "tokens", models[out.model]));
  return out;
}

}  // namespace troupe
