#pragma once
// Prompts to token ids.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/chat_prompt.h"
#include "actors/gateway/openai/served_model.h"
#include "actors/gateway/tools/tool_format.h"
#include "base/ids.h"
#include "engine/chat_template/template_habits.h"
#include "troupe/status.h"

namespace troupe {

// A conversation as a prompt, and what is to be known to read the answer to it.
struct ChatTokens {
  std::vector<TokenId> tokens;
  AnswerFormat format;
  PromptEnd end = PromptEnd::kBeforeAnswer;
};

enum class BeginToken { kAsTheModelAsks, kNone };

// Immutable. A text that cannot fit the context whatever its tokens are is refused with
// kContextLength before it is tokenised, so that nobody can buy much work with a long text.
class PromptEncoder final {
 public:
  // `model` outlives this object.
  explicit PromptEncoder(const ServedModel& model);

  // A raw prompt. Spellings of special tokens in it are these tokens: whoever writes a whole prompt
  // may write its control tokens too.
  [[nodiscard]] Result<std::vector<TokenId>> encode_text(std::string_view text,
                                                         BeginToken begin) const;

  // `messages` as parse_messages() returns them. Only the template's own text can become a special
  // token. The begin token never comes twice, if the template writes it; `unix_seconds` is what
  // the template sees as now. kUnsupported: the model has no template, or its template cannot
  // express the conversation; kInvalidArgument: the template refuses it, in its own words. Tools,
  // calls and results that a template cannot express are put into words.
  [[nodiscard]] Result<ChatTokens> encode_chat(const nlohmann::ordered_json& messages,
                                               const ChatPromptOptions& options, BeginToken begin,
                                               int64_t unix_seconds) const;

 private:
  // A template with what is known of it.
  struct Prepared {
    const ChatTemplate* chat_template = nullptr;
    TemplateHabits habits;
    AnswerFormat format;
  };

  [[nodiscard]] Prepared prepare(const ChatTemplate* chat_template) const;
  // The tokens that templates know by name.
  [[nodiscard]] ChatContextOptions token_context() const;
  [[nodiscard]] Result<std::vector<TemplatePiece>> render(const nlohmann::ordered_json& messages,
                                                          const ChatPromptOptions& options,
                                                          const Prepared& prepared,
                                                          int64_t unix_seconds) const;
  [[nodiscard]] Status check_text_bytes(size_t bytes, std::string_view param) const;

  const ServedModel& model_;
  size_t token_bytes_max_;  // of the longest token of the vocabulary
  Prepared plain_;          // for conversations without tools; null: chats are refused
  Prepared with_tools_;     // for those with tools
};

// The error of a prompt that does not fit, with both numbers. `output_tokens` is what the request
// asked for besides, and `output_field` under which name; 0 when it asked for nothing.
[[nodiscard]] Status context_length_error(size_t prompt_tokens, size_t output_tokens,
                                          std::string_view output_field, uint32_t context_tokens,
                                          std::string_view param);

}  // namespace troupe
