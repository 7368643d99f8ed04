#pragma once
// Short ways to compile and render in tests.

#include <string>
#include <utility>
#include <vector>

#include "engine/chat_template/chat_template.h"

namespace troupe::chat_template_test {

using Variables = std::vector<std::pair<std::string, TemplateValue>>;

inline Result<std::vector<TemplatePiece>> pieces_of(const std::string& source,
                                                    Variables variables = {},
                                                    ChatTemplateLimits limits = {}) {
  TROUPE_ASSIGN_OR_RETURN(const ChatTemplate compiled, ChatTemplate::compile(source, limits));
  return compiled.render(TemplateValue::dict(std::move(variables)), 0);
}

inline std::string joined(const std::vector<TemplatePiece>& pieces) {
  std::string text;
  for (const TemplatePiece& piece : pieces) text += piece.text;
  return text;
}

// The rendered text, or "error: message".
inline std::string text_of(const std::string& source, Variables variables = {},
                           ChatTemplateLimits limits = {}) {
  const auto pieces = pieces_of(source, std::move(variables), limits);
  return pieces.ok() ? joined(pieces.value()) : "error: " + pieces.status().message();
}

// The pieces with data in «…».
inline std::string marked(const std::string& source, Variables variables = {}) {
  const auto pieces = pieces_of(source, std::move(variables));
  if (!pieces.ok()) return "error: " + pieces.status().message();
  std::string text;
  for (const TemplatePiece& piece : pieces.value()) {
    text += piece.from_template ? piece.text : "«" + piece.text + "»";
  }
  return text;
}

}  // namespace troupe::chat_template_test
