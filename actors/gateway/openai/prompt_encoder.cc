#include "actors/gateway/openai/prompt_encoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "actors/gateway/openai/conversation.h"
#include "actors/gateway/tools/tool_prompt.h"
#include "engine/chat_template/chat_context.h"
#include "engine/chat_template/value_json.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

std::optional<std::string> spelling(const Tokenizer& tokenizer, TokenId token) {
  if (token == kNoToken) return std::nullopt;
  return std::string(tokenizer.token_bytes(token));
}

// The last message, as text, if an answer may go on with it.
Result<std::string> text_to_continue(const Json& messages) {
  const Json& last = messages.back();
  const std::string at = "messages[" + std::to_string(messages.size() - 1) + "]";
  if (last.at("role") != "assistant") {
    return invalid_argument(at + ".role must be assistant when continue_final_message is true",
                            at + ".role");
  }
  const Json& content = last.at("content");
  if (last.contains("tool_calls") || content.is_null()) {
    return invalid_argument(
        at + " must have text and no tool_calls when continue_final_message is true",
        at + ".content");
  }
  // Of several parts, it is the last one that goes on.
  return (content.is_array() ? content.back().at("text") : content).get<std::string>();
}

// Ends the prompt behind the last message's text, without what the template writes after it.
// Templates may trim the text; as far as it stands there with its white space, that stays.
Status cut_behind(std::string_view text, std::vector<TemplatePiece>& pieces) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return invalid_argument(
        "the last message must not be empty when continue_final_message is true", "messages");
  }
  const std::string_view untrimmed_end = text.substr(begin);
  const std::string_view core = untrimmed_end.substr(0, untrimmed_end.find_last_not_of(kSpace) + 1);
  std::string all;
  for (const TemplatePiece& piece : pieces) all += piece.text;
  const size_t at = all.rfind(core);
  if (at == std::string::npos) {
    return Status(StatusCode::kUnsupported,
                  "the model's chat template does not show the last message as it is, so it cannot "
                  "be continued; set continue_final_message to false",
                  "continue_final_message");
  }
  const bool has_space = std::string_view(all).substr(at).starts_with(untrimmed_end);
  size_t keep = at + (has_space ? untrimmed_end.size() : core.size());
  size_t kept = 0;
  while (kept < pieces.size() && keep > 0) {
    std::string& piece = pieces[kept++].text;
    if (piece.size() > keep) piece.resize(keep);
    keep -= piece.size();
  }
  pieces.resize(kept);
  return ok_status();
}

}  // namespace

PromptEncoder::PromptEncoder(const ServedModel& model)
    : model_(model),
      token_bytes_max_(1),
      plain_(prepare(model.chat_template)),
      with_tools_(model.tool_template == nullptr ? plain_ : prepare(model.tool_template)) {
  for (size_t id = 0; id < model.tokenizer.vocab_size(); ++id) {
    const size_t bytes = model.tokenizer.token_bytes(static_cast<TokenId>(id)).size();
    token_bytes_max_ = std::max(token_bytes_max_, bytes);
  }
}

PromptEncoder::Prepared PromptEncoder::prepare(const ChatTemplate* chat_template) const {
  if (chat_template == nullptr) return {};
  const TemplateTraits& traits = chat_template->traits();
  AnswerFormat format;
  format.tools = model_.tool_format ? *model_.tool_format : recognise_tool_format(traits);
  format.reasoning =
      model_.reasoning_format ? *model_.reasoning_format : recognise_reasoning_format(traits);
  return {chat_template, find_habits(*chat_template, token_context()), format};
}

ChatContextOptions PromptEncoder::token_context() const {
  ChatContextOptions context;
  context.bos_token = spelling(model_.tokenizer, model_.tokenizer.bos());
  context.eos_token = spelling(model_.tokenizer, model_.tokenizer.eos());
  return context;
}

Result<std::vector<TokenId>> PromptEncoder::encode_text(std::string_view text,
                                                        BeginToken begin) const {
  TROUPE_RETURN_IF_ERROR(check_text_bytes(text.size(), "prompt"));
  return model_.tokenizer.encode(TextPiece{text, true},
                                 {.add_special = begin == BeginToken::kAsTheModelAsks});
}

Result<std::vector<TemplatePiece>> PromptEncoder::render(const Json& given,
                                                         const ChatPromptOptions& options,
                                                         const Prepared& prepared,
                                                         int64_t unix_seconds) const {
  const TemplateTraits& traits = prepared.chat_template->traits();
  TemplateHabits habits = prepared.habits;
  habits.drops_tools = habits.drops_tools || !traits.reads_tools();
  Json worded;
  Json tools = options.tools;
  if (prepared.format.tools != ToolFormat::kNone && needs_tools_in_words(given, tools, habits)) {
    worded = put_tools_in_words(given, tools, prepared.format.tools, habits);
    if (habits.drops_tools) tools = nullptr;
  }
  const Json& messages = worded.is_null() ? given : worded;
  TROUPE_RETURN_IF_ERROR(
      check_expressible(messages, tools, options.template_kwargs, traits, habits));
  const bool has_effort = !options.reasoning_effort.empty();
  if (has_effort && !traits.reads_variable("reasoning_effort")) {
    return Status(StatusCode::kUnsupported,
                  "reasoning_effort is not a variable of the model's chat template; remove it",
                  "reasoning_effort");
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ChatMessage> conversation,
                          to_conversation(messages, traits, habits));
  ChatContextOptions context = token_context();
  context.add_generation_prompt = options.add_generation_prompt;
  if (tools.is_array()) {
    TROUPE_ASSIGN_OR_RETURN(context.tools, template_value_from_json(tools));
  }
  if (has_effort) {
    context.extra.emplace_back("reasoning_effort", TemplateValue::data(options.reasoning_effort));
  }
  if (options.template_kwargs.is_object()) {
    for (const auto& [name, value] : options.template_kwargs.items()) {
      TROUPE_ASSIGN_OR_RETURN(TemplateValue variable, template_value_from_json(value));
      context.extra.emplace_back(name, std::move(variable));
    }
  }
  return prepared.chat_template->render(make_chat_context(conversation, context), unix_seconds);
}

Result<ChatTokens> PromptEncoder::encode_chat(const Json& messages,
                                              const ChatPromptOptions& options, BeginToken begin,
                                              int64_t unix_seconds) const {
  Prepared prepared = options.tools.is_array() ? with_tools_ : plain_;
  std::optional<ChatTemplate> requested;
  if (!options.chat_template.empty()) {
    Result<ChatTemplate> compiled = ChatTemplate::compile(options.chat_template);
    if (!compiled.ok()) {
      return Status(compiled.status().code(), compiled.status().message(), "chat_template");
    }
    requested = std::move(compiled).value();
    prepared = prepare(&*requested);
  }
  if (prepared.chat_template == nullptr) {
    return Status(StatusCode::kUnsupported,
                  "the model " + model_.name +
                      " has no chat template; send a whole prompt to /v1/completions, or start the "
                      "server with --chat-template",
                  "messages");
  }
  TROUPE_RETURN_IF_ERROR(check_text_bytes(content_bytes(messages), "messages"));
  std::string continued;
  if (options.continue_final_message) {
    TROUPE_ASSIGN_OR_RETURN(continued, text_to_continue(messages));
  }
  Result<std::vector<TemplatePiece>> pieces = render(messages, options, prepared, unix_seconds);
  if (!pieces.ok()) {
    const Status& status = pieces.status();
    if (!status.param().empty()) return status;
    return Status(status.code(),
                  "the model's chat template refused the messages: " + status.message(),
                  "messages");
  }
  if (options.continue_final_message) {
    TROUPE_RETURN_IF_ERROR(cut_behind(continued, pieces.value()));
  }
  std::vector<TextPiece> views;
  size_t bytes = 0;
  for (const TemplatePiece& piece : pieces.value()) {
    views.push_back({piece.text, piece.from_template});
    bytes += piece.text.size();
  }
  TROUPE_RETURN_IF_ERROR(check_text_bytes(bytes, "messages"));
  ChatTokens out;
  out.format = prepared.format;
  const bool ends_by_template = !pieces->empty() && pieces->back().from_template;
  if (ends_by_template) {
    out.end = find_prompt_end(out.format.reasoning, pieces->back().text);
  }
  TROUPE_ASSIGN_OR_RETURN(
      out.tokens,
      model_.tokenizer.encode(views, {.add_special = begin == BeginToken::kAsTheModelAsks}));
  return out;
}

Status PromptEncoder::check_text_bytes(size_t bytes, std::string_view param) const {
  const size_t tokens_min = bytes / token_bytes_max_;
  if (tokens_min <= model_.context_tokens) return ok_status();
  return Status(StatusCode::kContextLength,
                "this model's maximum context length is " + std::to_string(model_.context_tokens) +
                    " tokens; the prompt is too long: its " + std::to_string(bytes) +
                    " bytes are at least " + std::to_string(tokens_min) + " tokens; shorten it",
                std::string(param));
}

// Clients that shorten a conversation by themselves know an overflow by its wording: "maximum
// context length is" and, of the prompt alone, "prompt is too long".
Status context_length_error(size_t prompt_tokens, size_t output_tokens,
                            std::string_view output_field, uint32_t context_tokens,
                            std::string_view param) {
  std::string message = "this model's maximum context length is " + std::to_string(context_tokens) +
                        " tokens; the prompt ";
  if (output_tokens == 0) {
    message += "is too long: it has " + std::to_string(prompt_tokens) +
               ", which leaves no room for an answer; shorten it";
  } else {
    message += "has " + std::to_string(prompt_tokens) + " and " + std::string(output_field) +
               " asks for " + std::to_string(output_tokens) +
               " more; shorten the prompt or lower " + std::string(output_field);
  }
  return Status(StatusCode::kContextLength, message, std::string(param));
}

}  // namespace troupe
