#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// The variable's value, or nothing when it is not set. Not while another thread changes the
// environment.
[[nodiscard]] std::optional<std::string> environment_variable(const std::string& name);

// All variables whose names begin with `prefix`, by name. Not while another thread changes the
// environment.
[[nodiscard]] std::map<std::string, std::string> environment_variables(std::string_view prefix);

}  // namespace troupe
