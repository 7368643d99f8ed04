#pragma once
// What the source of a chat template tells about the conversations that it can express.

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

namespace chat_template {
struct Program;
}

// How messages come with `content` as a list of parts.
enum class ContentFormat {
  kText,         // the template wants one text
  kTextOrParts,  // it loops over parts, and takes a text too
  kParts,        // it loops over parts, and would take a text for a list of letters
};

// Found by reading the template, not by running it: true means that the template mentions it
// somewhere, not that it does so for each conversation. Immutable.
class TemplateTraits {
 public:
  TemplateTraits() = default;
  explicit TemplateTraits(const chat_template::Program& program);

  // Whether it reads this variable, e.g. "tools" or "enable_thinking".
  [[nodiscard]] bool reads_variable(std::string_view name) const;
  // Whether it asks a value for this field in some way: message.name, message['name'],
  // message.get('name'), 'name' in message, selectattr('name').
  [[nodiscard]] bool reads_field(std::string_view name) const;
  // Whether this text stands in what it prints or in one of its string literals, e.g. "<tool_call>"
  // or "[TOOL_CALLS]". Comments do not count.
  [[nodiscard]] bool spells(std::string_view text) const;
  // Whether one of its string literals is this text, e.g. the role "developer".
  [[nodiscard]] bool names(std::string_view literal) const;

  [[nodiscard]] bool reads_tools() const { return reads_variable("tools"); }
  [[nodiscard]] bool reads_tool_calls() const { return reads_field("tool_calls"); }
  [[nodiscard]] bool reads_documents() const { return reads_variable("documents"); }
  [[nodiscard]] bool reads_enable_thinking() const { return reads_variable("enable_thinking"); }
  [[nodiscard]] ContentFormat content_format() const { return content_format_; }

 private:
  std::set<std::string, std::less<>> variables_;
  std::set<std::string, std::less<>> attributes_;
  std::set<std::string, std::less<>> literals_;
  std::vector<std::string> printed_;  // the text outside of tags
  ContentFormat content_format_ = ContentFormat::kText;
};

}  // namespace troupe
