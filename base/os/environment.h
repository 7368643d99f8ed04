#pragma once
#include <optional>
#include <string>

namespace troupe {

// The variable's value, or nothing when it is not set. Not while another thread changes the
// environment.
[[nodiscard]] std::optional<std::string> environment_variable(const std::string& name);

}  // namespace troupe
