#pragma once
// What `troupe top` draws: a pure function of the answer to GET /cluster.

#include <string>
#include <string_view>
#include <vector>

#include "troupe/status.h"

namespace troupe {

// The lines of the picture, without line ends: a summary, the workers with totals, and, where the
// answer comes from a monitor, its routers and the latest transitions. Texts of the answer are made
// printable. kDataLoss: `body` is not the answer of a router or monitor.
[[nodiscard]] Result<std::vector<std::string>> top_table(std::string_view url,
                                                         std::string_view body);

}  // namespace troupe
