#include "actors/gateway/responses/responses_request.h"

#include <utility>

#include "actors/gateway/openai/common_fields.h"
#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/responses/input_items.h"
#include "base/assert.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kFields[] = {
    {"model", kUsed, "a name that `GET /v1/models` lists"},
    {"input", kUsed,
     "a string, or items: messages, `function_call`, `function_call_output`, "
     "`reasoning` (its text is shown to models whose template shows it)"},
    {"instructions", kUsed,
     "a system message before everything; not carried over by "
     "`previous_response_id`"},
    {"previous_response_id", kUsed, "a response of this process that is still stored, else 404"},
    {"store", kUsed, "`true` unless said otherwise: kept for later requests while there is room"},
    {"stream", kUsed, "events with names and sequence numbers; no `[DONE]`"},
    {"stream_options", kUsed, "`include_obfuscation` has no effect: nothing is padded"},
    {"max_output_tokens", kUsed, "at least 1; reasoning counts"},
    {"temperature", kUsed, "0 to 2"},
    {"top_p", kUsed, "above 0 to 1"},
    {"top_logprobs", kUsed, "0 to 20; asks for log-probabilities"},
    {"include", kUsed,
     "`message.output_text.logprobs`; `reasoning.encrypted_content` has no "
     "effect, since reasoning is given in plain text"},
    {"text", kUsed, "`format`: `text`, `json_object` or `json_schema`; `verbosity`: `medium` only"},
    {"tools", kUsed, "of type `function`; built-in tools are refused"},
    {"tool_choice", kUsed, "`none`, `auto`, `required`, or a function"},
    {"parallel_tool_calls", kUsed, "as in a chat"},
    {"reasoning", kUsed,
     "`effort` as a chat's `reasoning_effort`; `summary`: `auto` only, and "
     "none is made"},
    {"metadata", kUsed, "up to 16 strings, repeated in the answer"},
    {"truncation", kUsed, "`disabled` only: nothing is cut silently"},
    {"background", kUsed, "`false` only"},
    {"presence_penalty", kUsed, "as in a chat"},
    {"frequency_penalty", kUsed, "as in a chat"},
    {"top_k", kUsed, "vLLM's, as in a chat"},
    {"min_p", kUsed, "vLLM's, as in a chat"},
    {"repetition_penalty", kUsed, "vLLM's, as in a chat"},
    {"logit_bias", kUsed, "vLLM's, as in a chat"},
    {"seed", kUsed, "vLLM's, as in a chat"},
    {"stop", kUsed, "vLLM's, as in a chat"},
    {"ignore_eos", kUsed, "vLLM's, as in a chat"},
    {"cache_salt", kUsed, "vLLM's, as in a chat"},
    {"priority", kUsed, "0 only"},
    {"user", kTolerated, ""},
    {"safety_identifier", kTolerated, ""},
    {"prompt_cache_key", kTolerated, ""},
    {"prompt_cache_retention", kTolerated, ""},
    {"prompt_cache_options", kTolerated, "prefixes are cached by themselves"},
    {"service_tier", kTolerated, ""},
    {"conversation", kUnsupported, "send `previous_response_id`, or all turns in `input`"},
    {"context_management", kUnsupported, ""},
    {"access_programs", kUnsupported, ""},
    {"background_options", kUnsupported, ""},
    {"image", kUnsupported, "text only"},
    {"moderation", kUnsupported, ""},
    {"max_tool_calls", kUnsupported, "it counts calls of built-in tools"},
    {"prompt", kUnsupported, "this server stores no prompt templates"},
    {"messages", kUnsupported, "that is a chat's; send `input`"},
    {"max_tokens", kUnsupported, "that is a chat's; send `max_output_tokens`"},
    {"response_format", kUnsupported, "that is a chat's; send `text.format`"},
};

// Fields that a chat has under the same name, with the same meaning.
constexpr const char* kShared[] = {"model",
                                   "stream",
                                   "temperature",
                                   "top_p",
                                   "top_k",
                                   "min_p",
                                   "repetition_penalty",
                                   "presence_penalty",
                                   "frequency_penalty",
                                   "logit_bias",
                                   "seed",
                                   "stop",
                                   "ignore_eos",
                                   "cache_salt",
                                   "priority",
                                   "parallel_tool_calls",
                                   "stream_options"};

Status only(const Json& value, const std::string& path, const char* rule) {
  return {StatusCode::kUnsupported, path + " " + rule + "; got " + json_excerpt(value), path};
}

Status check_fixed(const FieldReader& fields) {
  if (const Json* value = fields.find("background"); value != nullptr && *value != false) {
    return only(*value, "background", "must be false: a response is made while its client waits");
  }
  if (const Json* value = fields.find("truncation"); value != nullptr && *value != "disabled") {
    return only(*value, "truncation", "must be \"disabled\": nothing is cut silently");
  }
  return ok_status();
}

Status check_metadata(const FieldReader& fields) {
  const Json* value = fields.find("metadata");
  if (value == nullptr) return ok_status();
  const std::string rule = "must be an object of at most " + std::to_string(kMetadataPairsMax) +
                           " strings with keys of at most " + std::to_string(kMetadataKeyBytesMax) +
                           " bytes and values of at most " + std::to_string(kMetadataValueBytesMax);
  if (!value->is_object() || value->size() > kMetadataPairsMax) {
    return bad_value("metadata", rule, *value);
  }
  for (const auto& [key, text] : value->items()) {
    const bool fits = key.size() <= kMetadataKeyBytesMax && text.is_string() &&
                      text.get_ref<const std::string&>().size() <= kMetadataValueBytesMax;
    if (!fits) return bad_value("metadata", rule, *value);
  }
  return ok_status();
}

Status add_logprobs(const FieldReader& fields, Json& chat) {
  std::optional<int64_t> top;
  TROUPE_RETURN_IF_ERROR(fields.read("top_logprobs", 0, 20, top));
  if (top) chat["top_logprobs"] = *top;
  if (top) chat["logprobs"] = true;
  const Json* include = fields.find("include");
  if (include == nullptr) return ok_status();
  if (!include->is_array()) return bad_value("include", "must be an array of strings", *include);
  for (size_t i = 0; i < include->size(); ++i) {
    const Json& value = (*include)[i];
    const std::string path = "include[" + std::to_string(i) + "]";
    if (value == "message.output_text.logprobs") {
      chat["logprobs"] = true;
    } else if (value != "reasoning.encrypted_content") {
      return only(value, path,
                  "must be message.output_text.logprobs or reasoning.encrypted_content");
    }
  }
  return ok_status();
}

Status add_text(const FieldReader& fields, Json& chat, PathRenames& renames) {
  const Json* value = fields.find("text");
  if (value == nullptr) return ok_status();
  if (!value->is_object()) return bad_value("text", "must be an object", *value);
  constexpr KnownField kTextFields[] = {{"format"}, {"verbosity"}};
  TROUPE_RETURN_IF_ERROR(check_known_fields(*value, "text.", kTextFields));
  const FieldReader text(*value, "text.");
  if (const Json* verbosity = text.find("verbosity");
      verbosity != nullptr && *verbosity != "medium") {
    return only(*verbosity, "text.verbosity", "must be \"medium\"");
  }
  const Json* format = text.find("format");
  if (format == nullptr) return ok_status();
  renames.add("response_format", "text.format");
  renames.add("response_format.json_schema", "text.format");
  if (!format->is_object() || !format->contains("type") || (*format)["type"] != "json_schema") {
    chat["response_format"] = *format;
    return ok_status();
  }
  Json schema = *format;
  schema.erase("type");
  chat["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
  return ok_status();
}

Status add_reasoning(const FieldReader& fields, Json& chat, PathRenames& renames) {
  const Json* value = fields.find("reasoning");
  if (value == nullptr) return ok_status();
  if (!value->is_object()) return bad_value("reasoning", "must be an object", *value);
  constexpr KnownField kReasoningFields[] = {{"effort"}, {"summary"}, {"generate_summary"}};
  TROUPE_RETURN_IF_ERROR(check_known_fields(*value, "reasoning.", kReasoningFields));
  const FieldReader reasoning(*value, "reasoning.");
  for (const char* name : {"summary", "generate_summary"}) {
    const Json* summary = reasoning.find(name);
    if (summary != nullptr && *summary != "auto") {
      return only(*summary, reasoning.path(name), "must be \"auto\": no summaries are made");
    }
  }
  renames.add("reasoning_effort", "reasoning.effort");
  if (const Json* effort = reasoning.find("effort")) chat["reasoning_effort"] = *effort;
  return ok_status();
}

// Responses have a function's members beside its type, chats in an object of their own.
Json nested_function(const Json& flat) {
  Json function = flat;
  function.erase("type");
  return {{"type", "function"}, {"function", std::move(function)}};
}

Status add_tools(const FieldReader& fields, Json& chat, PathRenames& renames) {
  if (const Json* tools = fields.find("tools"); tools != nullptr && tools->is_array()) {
    Json out = Json::array();
    for (size_t i = 0; i < tools->size(); ++i) {
      const Json& tool = (*tools)[i];
      const std::string path = "tools[" + std::to_string(i) + "]";
      if (!tool.is_object() || !tool.contains("type") || !tool["type"].is_string()) {
        return bad_value(path, "must be an object with a string type", tool);
      }
      if (tool["type"] != "function") {
        return only(tool["type"], path + ".type",
                    "must be \"function\": this server has no built-in tools");
      }
      renames.add(path + ".function", path);
      out.push_back(nested_function(tool));
    }
    chat["tools"] = std::move(out);
  } else if (tools != nullptr) {
    return bad_value("tools", "must be an array", *tools);
  }
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr) return ok_status();
  const bool is_function =
      choice->is_object() && choice->contains("type") && (*choice)["type"] == "function";
  renames.add("tool_choice.function", "tool_choice");
  chat["tool_choice"] = is_function ? nested_function(*choice) : *choice;
  return ok_status();
}

// The earlier turns of the conversation.
Status add_previous(const FieldReader& fields, ResponseStore& store, Json& messages,
                    PathRenames& renames) {
  std::string id;
  TROUPE_RETURN_IF_ERROR(fields.read("previous_response_id", id));
  if (!fields.has("previous_response_id")) return ok_status();
  const StoredResponse* stored = store.find(id);
  if (stored == nullptr) return not_stored(id, "previous_response_id");
  Json earlier = Json::parse(stored->conversation, nullptr, false);
  TROUPE_ASSERT(earlier.is_array(), id);
  for (Json& message : earlier) {
    renames.add("messages[" + std::to_string(messages.size()) + "]", "previous_response_id");
    messages.push_back(std::move(message));
  }
  return ok_status();
}

void echo_member(std::string& out, const char* name, const Json* value, const char* otherwise) {
  out += ",\"";
  out += name;
  out += "\":";
  out += value == nullptr ? otherwise : value->dump();
}

std::string make_echo(const FieldReader& fields, bool store) {
  std::string out = ",\"background\":false";
  const auto echo = [&](const char* name, const char* otherwise) {
    echo_member(out, name, fields.find(name), otherwise);
  };
  echo("instructions", "null");
  echo("max_output_tokens", "null");
  echo("max_tool_calls", "null");
  echo("metadata", "{}");
  echo("parallel_tool_calls", "true");
  echo("previous_response_id", "null");
  echo("prompt_cache_key", "null");
  echo("reasoning", R"({"effort":null,"summary":null})");
  echo("safety_identifier", "null");
  echo("temperature", "1.0");
  const Json* text = fields.find("text");
  const Json* format = text == nullptr ? nullptr : FieldReader(*text, "").find("format");
  echo_member(out += ",\"text\":{\"verbosity\":\"medium\"", "format", format, R"({"type":"text"})");
  out += '}';
  echo("tool_choice", "\"auto\"");
  echo("tools", "[]");
  echo("top_logprobs", "0");
  echo("top_p", "1.0");
  echo("user", "null");
  out += R"(,"truncation":"disabled","service_tier":"default","store":)";
  out += store ? "true" : "false";
  return out;
}

Result<Json> make_chat(const FieldReader& fields, ResponseStore& store, ResponsesRequest& out) {
  Json chat = Json::object();
  for (const char* name : kShared) {
    if (const Json* value = fields.find(name)) chat[name] = *value;
  }
  out.renames.add("max_completion_tokens", "max_output_tokens");
  if (const Json* value = fields.find("max_output_tokens")) chat["max_completion_tokens"] = *value;
  TROUPE_RETURN_IF_ERROR(add_logprobs(fields, chat));
  TROUPE_RETURN_IF_ERROR(add_text(fields, chat, out.renames));
  TROUPE_RETURN_IF_ERROR(add_reasoning(fields, chat, out.renames));
  TROUPE_RETURN_IF_ERROR(add_tools(fields, chat, out.renames));
  const Json* input = fields.find("input");
  if (input == nullptr) {
    return invalid_argument("input is missing; send a string or an array of items", "input");
  }
  Json messages = Json::array();
  std::string instructions;
  TROUPE_RETURN_IF_ERROR(fields.read("instructions", instructions));
  const bool has_instructions = !instructions.empty();
  if (has_instructions) {
    out.renames.add("messages[0]", "instructions");
    out.renames.add("messages[0].content", "instructions");
    messages.push_back({{"role", "system"}, {"content", std::move(instructions)}});
  }
  TROUPE_RETURN_IF_ERROR(add_previous(fields, store, messages, out.renames));
  TROUPE_RETURN_IF_ERROR(append_input(*input, messages, out.renames));
  out.renames.add("messages", "input");
  if (out.store) {
    out.input = *input;
    out.conversation = messages;
    if (has_instructions) out.conversation.erase(0);
  }
  chat["messages"] = std::move(messages);
  return chat;
}

}  // namespace

std::span<const KnownField> responses_fields() {
  return kFields;
}

Result<ResponsesRequest> parse_responses_body(std::string_view body,
                                              std::span<const RequestRules> models,
                                              ResponseStore& store) {
  TROUPE_ASSIGN_OR_RETURN(const Json object, parse_object(body));
  TROUPE_RETURN_IF_ERROR(check_known_fields(object, "", kFields));
  const FieldReader fields(object, "");
  ResponsesRequest out;
  TROUPE_RETURN_IF_ERROR(fields.read("store", out.store));
  TROUPE_RETURN_IF_ERROR(check_fixed(fields));
  TROUPE_RETURN_IF_ERROR(check_metadata(fields));
  TROUPE_ASSIGN_OR_RETURN(const Json chat, make_chat(fields, store, out));
  Result<GenerationBody> checked = check_chat(chat, models);
  if (!checked.ok()) return out.renames.apply(checked.status());
  out.body = std::move(checked).value();
  out.echo = make_echo(fields, out.store);
  return out;
}

}  // namespace troupe
