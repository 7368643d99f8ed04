#pragma once
// Dates in the words of strftime, in UTC and in English whatever the process's locale.

#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe::chat_template {

// The directives of C's strftime that name parts of a date and a time, "%-d" and the like included.
[[nodiscard]] Result<std::string> format_time(int64_t unix_seconds, std::string_view format);

}  // namespace troupe::chat_template
