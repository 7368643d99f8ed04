#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// The known name that `name` was probably meant to be: the one with the fewest typing mistakes
// (characters added, left out, changed, swapped), if they are few for its length. "_" counts as
// "-".
[[nodiscard]] std::optional<std::string> nearest(std::string_view name,
                                                 const std::vector<std::string>& known);

}  // namespace troupe
