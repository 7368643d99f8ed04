#include "actors/gateway/openai/chat_prompt.h"

#include <algorithm>
#include <array>

#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/text/escape.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

// Variables that the server sets, or that mean something else to clients of other servers.
constexpr std::array<std::string_view, 9> kReservedKwargs = {
    "messages",
    "tools",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
    "bos_token",
    "eos_token",
    "chat_template",
    "tokenize",
};

constexpr std::array<const char*, 7> kReasoningEfforts = {"none", "minimal", "low", "medium",
                                                          "high", "xhigh",   "max"};

Status check_kwargs(const Json& kwargs) {
  const std::string path = "chat_template_kwargs";
  if (!kwargs.is_object()) {
    return bad_value(path, "must be an object of the template's variables", kwargs);
  }
  if (kwargs.size() > kTemplateKwargsMax) {
    return invalid_argument(path + " must have at most " + std::to_string(kTemplateKwargsMax) +
                                " variables; got " + std::to_string(kwargs.size()),
                            path);
  }
  for (const auto& [name, value] : kwargs.items()) {
    const std::string at = path + "." + printable_excerpt(name, kExcerptBytesMax);
    if (std::ranges::count(kReservedKwargs, name) > 0) {
      return invalid_argument(
          at + " is set by the server; use the field of the request of this name, if there is one",
          at);
    }
  }
  return ok_status();
}

Status parse_reasoning_effort(const FieldReader& fields, ChatPromptOptions& out) {
  const Json* value = fields.find("reasoning_effort");
  if (value == nullptr) return ok_status();
  const bool known =
      std::ranges::any_of(kReasoningEfforts, [&](const char* effort) { return *value == effort; });
  if (!known) {
    return bad_value("reasoning_effort",
                     "must be one of none, minimal, low, medium, high, xhigh, max", *value);
  }
  if (out.template_kwargs.is_object() && out.template_kwargs.contains("reasoning_effort")) {
    return invalid_argument(
        "reasoning_effort is in chat_template_kwargs too; send it in one of these places",
        "reasoning_effort");
  }
  out.reasoning_effort = value->get<std::string>();
  return ok_status();
}

Status check_request_template(const FieldReader& fields, RequestTemplates templates,
                              std::string& out) {
  if (!fields.has("chat_template")) return ok_status();
  if (templates == RequestTemplates::kRefused) {
    return Status(StatusCode::kUnsupported,
                  "chat_template is not taken from requests by this server, because a template can "
                  "write control tokens; remove it, or start the server with "
                  "--trust-request-chat-template",
                  "chat_template");
  }
  TROUPE_RETURN_IF_ERROR(fields.read("chat_template", out));
  if (out.empty()) return invalid_argument("chat_template must not be empty", "chat_template");
  return ok_status();
}

}  // namespace

Result<ChatPromptOptions> parse_chat_prompt(const FieldReader& fields, RequestTemplates templates) {
  ChatPromptOptions out;
  TROUPE_RETURN_IF_ERROR(fields.read("continue_final_message", out.continue_final_message));
  out.add_generation_prompt = !out.continue_final_message;
  TROUPE_RETURN_IF_ERROR(fields.read("add_generation_prompt", out.add_generation_prompt));
  if (out.continue_final_message && out.add_generation_prompt) {
    return invalid_argument(
        "add_generation_prompt must be false or left out when continue_final_message is true: the "
        "answer goes on with the last message",
        "add_generation_prompt");
  }
  if (const Json* kwargs = fields.find("chat_template_kwargs"); kwargs != nullptr) {
    TROUPE_RETURN_IF_ERROR(check_kwargs(*kwargs));
    if (!kwargs->empty()) out.template_kwargs = *kwargs;
  }
  TROUPE_RETURN_IF_ERROR(parse_reasoning_effort(fields, out));
  TROUPE_RETURN_IF_ERROR(check_request_template(fields, templates, out.chat_template));
  return out;
}

}  // namespace troupe
