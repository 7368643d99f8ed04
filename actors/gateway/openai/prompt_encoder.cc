#include "actors/gateway/openai/prompt_encoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/chat_template/chat_context.h"
#include "engine/chat_template/value_json.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

Result<ChatMessage> to_chat_message(const Json& message) {
  ChatMessage out;
  out.role = message.at("role").get<std::string>();
  TROUPE_ASSIGN_OR_RETURN(out.content, template_value_from_json(message.at("content")));
  if (message.contains("name")) out.name = message["name"].get<std::string>();
  if (message.contains("tool_call_id")) {
    out.tool_call_id = message["tool_call_id"].get<std::string>();
  }
  if (message.contains("tool_calls")) {
    TROUPE_ASSIGN_OR_RETURN(out.tool_calls, template_value_from_json(message["tool_calls"]));
  }
  return out;
}

std::optional<std::string> spelling(const Tokenizer& tokenizer, TokenId token) {
  if (token == kNoToken) return std::nullopt;
  return std::string(tokenizer.token_bytes(token));
}

}  // namespace

PromptEncoder::PromptEncoder(const ServedModel& model) : model_(model), token_bytes_max_(1) {
  for (size_t id = 0; id < model.tokenizer.vocab_size(); ++id) {
    const size_t bytes = model.tokenizer.token_bytes(static_cast<TokenId>(id)).size();
    token_bytes_max_ = std::max(token_bytes_max_, bytes);
  }
}

Result<std::vector<TokenId>> PromptEncoder::encode_text(std::string_view text,
                                                        BeginToken begin) const {
  TROUPE_RETURN_IF_ERROR(check_text_bytes(text.size(), "prompt"));
  return model_.tokenizer.encode(TextPiece{text, true},
                                 {.add_special = begin == BeginToken::kAsTheModelAsks});
}

Result<std::vector<TokenId>> PromptEncoder::encode_chat(const Json& messages,
                                                        const ChatOptions& options) const {
  if (model_.chat_template == nullptr) {
    return Status(StatusCode::kUnsupported,
                  "the model " + model_.name +
                      " has no chat template; send a whole prompt to /v1/completions",
                  "messages");
  }
  std::vector<ChatMessage> conversation;
  size_t bytes = 0;
  for (const Json& message : messages) {
    bytes += message.at("content").get_ref<const std::string&>().size();
    TROUPE_ASSIGN_OR_RETURN(ChatMessage converted, to_chat_message(message));
    conversation.push_back(std::move(converted));
  }
  TROUPE_RETURN_IF_ERROR(check_text_bytes(bytes, "messages"));
  ChatContextOptions context;
  context.add_generation_prompt = options.add_generation_prompt;
  context.bos_token = spelling(model_.tokenizer, model_.tokenizer.bos());
  context.eos_token = spelling(model_.tokenizer, model_.tokenizer.eos());
  Result<std::vector<TemplatePiece>> pieces =
      model_.chat_template->render(make_chat_context(conversation, context), options.unix_seconds);
  if (!pieces.ok()) {
    const Status& status = pieces.status();
    return Status(status.code(),
                  "the model's chat template refused the messages: " + status.message(),
                  "messages");
  }
  std::vector<TextPiece> views;
  bytes = 0;
  for (const TemplatePiece& piece : pieces.value()) {
    views.push_back({piece.text, piece.from_template});
    bytes += piece.text.size();
  }
  TROUPE_RETURN_IF_ERROR(check_text_bytes(bytes, "messages"));
  return model_.tokenizer.encode(views,
                                 {.add_special = options.begin == BeginToken::kAsTheModelAsks});
}

Status PromptEncoder::check_text_bytes(size_t bytes, std::string_view param) const {
  const size_t tokens_min = bytes / token_bytes_max_;
  if (tokens_min <= model_.context_tokens) return ok_status();
  return Status(StatusCode::kContextLength,
                "this model's context is " + std::to_string(model_.context_tokens) +
                    " tokens; the prompt's " + std::to_string(bytes) + " bytes are at least " +
                    std::to_string(tokens_min) + " tokens; shorten it",
                std::string(param));
}

Status context_length_error(size_t prompt_tokens, size_t output_tokens,
                            std::string_view output_field, uint32_t context_tokens,
                            std::string_view param) {
  std::string message = "this model's context is " + std::to_string(context_tokens) +
                        " tokens; the prompt has " + std::to_string(prompt_tokens);
  if (output_tokens == 0) {
    message += ", which leaves no room for an answer; shorten it";
  } else {
    message += " and " + std::string(output_field) + " asks for " + std::to_string(output_tokens) +
               " more; shorten the prompt or lower " + std::string(output_field);
  }
  return Status(StatusCode::kContextLength, message, std::string(param));
}

}  // namespace troupe
