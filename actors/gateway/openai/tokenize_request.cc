#include "actors/gateway/openai/request.h"

#include <utility>

#include "actors/gateway/openai/common_fields.h"
#include "actors/gateway/openai/field_tables.h"
#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/messages.h"
#include "actors/gateway/openai/tool_fields.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kTokenizeFields[] = {
    {"model"},
    {"prompt"},
    {"messages"},
    {"add_special_tokens"},
    {"add_generation_prompt"},
    {"return_token_strs"},
    {"tools"},
    {"chat_template"},
    {"chat_template_kwargs"},
    {"continue_final_message"},
    {"documents", kUnsupported},
};

// What shapes a conversation; a prompt has no use for it.
constexpr const char* kChatFields[] = {"tools", "chat_template", "chat_template_kwargs",
                                       "continue_final_message"};

constexpr KnownField kDetokenizeFields[] = {{"model"}, {"tokens"}};

}  // namespace

std::span<const KnownField> tokenize_fields() {
  return kTokenizeFields;
}

std::span<const KnownField> detokenize_fields() {
  return kDetokenizeFields;
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
  TROUPE_RETURN_IF_ERROR(fields.read("return_token_strs", out.return_token_strs));
  TROUPE_RETURN_IF_ERROR(fields.read("add_generation_prompt", out.chat.add_generation_prompt));
  if (fields.has("prompt") == fields.has("messages")) {
    return invalid_argument("send either prompt or messages", "prompt");
  }
  for (const char* name : kChatFields) {
    if (fields.has("prompt") && fields.has(name)) {
      return invalid_argument(std::string(name) + " goes with messages, not with a prompt", name);
    }
  }
  if (fields.has("messages")) {
    TROUPE_ASSIGN_OR_RETURN(out.chat, parse_chat_prompt(fields, models[out.model].templates));
    TROUPE_ASSIGN_OR_RETURN(const ToolRequest tools, parse_tools(fields));
    out.chat.tools = tools_for_template(tools);
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
