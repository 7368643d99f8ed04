#include "base/os/environment.h"

#include <unistd.h>

#include <cstdlib>

namespace troupe {

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::map<std::string, std::string> environment_variables(std::string_view prefix) {
  std::map<std::string, std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t end = text.find('=');
    if (!text.starts_with(prefix) || end == std::string_view::npos) continue;
    found.emplace(text.substr(0, end), text.substr(end + 1));
  }
  return found;
}

}  // namespace troupe
