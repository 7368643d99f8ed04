#pragma once
// The errors of templates, all in one form: where, what.

#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe::chat_template {

// "chat template line 7: message".
[[nodiscard]] inline std::string at_line(int line, std::string_view message) {
  return "chat template line " + std::to_string(line) + ": " + std::string(message);
}

// The template is wrong, or the conversation does not go with it.
[[nodiscard]] inline Status syntax_error(int line, std::string_view message) {
  return invalid_argument(at_line(line, message));
}
[[nodiscard]] inline Status render_error(int line, std::string_view message) {
  return invalid_argument(at_line(line, message));
}

// The template may be right, but this renderer does not know `construct`.
[[nodiscard]] inline Status unsupported(int line, std::string_view construct) {
  return {
      StatusCode::kUnsupported,
      at_line(line, std::string(construct) + " is not supported; rewrite the template without it")};
}

[[nodiscard]] inline std::string quoted(std::string_view name) {
  return "'" + std::string(name) + "'";
}

}  // namespace troupe::chat_template
