#pragma once
// A model's chat template: compiled once at start-up, then turns conversations into prompts.
//
// The language is Jinja2 as Hugging Face runs it (immutable sandbox, trim_blocks, lstrip_blocks,
// break and continue, raise_exception, strftime_now, their tojson). What is not supported
// (inheritance, include and import, recursive loops, str % formatting) is refused by compile() by
// name and line.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat_template/limits.h"
#include "engine/chat_template/template_traits.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe {

namespace chat_template {
struct Program;
}

// A run of the prompt with one origin. Control tokens may be recognised only inside one piece with
// from_template; otherwise pieces mean nothing: they are no word or token boundaries, so whoever
// tokenises joins the ordinary text of neighbouring pieces again.
struct TemplatePiece {
  std::string text;
  bool from_template = false;
  bool operator==(const TemplatePiece&) const = default;
};

// Immutable after compile(); render() may run on any number of threads at once.
class ChatTemplate {
 public:
  // kInvalidArgument: a syntax error, or a limit; kUnsupported: a statement, filter, test, function
  // or method that this renderer does not know. The message names it and its line.
  [[nodiscard]] static Result<ChatTemplate> compile(std::string source,
                                                    ChatTemplateLimits limits = {});

  // `context` is a dict of the template's variables (make_chat_context builds the usual one).
  // `unix_seconds` is the time that strftime_now() shows, in UTC. Neighbouring pieces differ in
  // from_template and none is empty.
  // kInvalidArgument: the template's own raise_exception text, verbatim; or an operation that the
  // conversation does not allow, or an exceeded limit, each with the template's line.
  [[nodiscard]] Result<std::vector<TemplatePiece>> render(const TemplateValue& context,
                                                          int64_t unix_seconds) const;
  // The same within limits other than those of compile().
  [[nodiscard]] Result<std::vector<TemplatePiece>> render(const TemplateValue& context,
                                                          int64_t unix_seconds,
                                                          const ChatTemplateLimits& limits) const;

  // What the template can express, read from its syntax tree: one that does not ask for tools
  // silently drops them, which a caller may want to refuse.
  [[nodiscard]] const TemplateTraits& traits() const;
  // As given to compile().
  [[nodiscard]] const std::string& source() const;

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

 private:
  ChatTemplate(std::string source, std::unique_ptr<const chat_template::Program> program,
               ChatTemplateLimits limits);

  std::string source_;
  std::unique_ptr<const chat_template::Program> program_;
  TemplateTraits traits_;
  ChatTemplateLimits limits_;
};

}  // namespace troupe
