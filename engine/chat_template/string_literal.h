#pragma once
// The escapes of a quoted string in a template: those of Python.

#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe::chat_template {

// `quoted` is what stands between the quotes, at `line`. A backslash before a character that it
// does not escape stays.
[[nodiscard]] Result<std::string> unescape(std::string_view quoted, int line);

}  // namespace troupe::chat_template
