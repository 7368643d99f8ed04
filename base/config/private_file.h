#pragma once
#include <cstddef>
#include <string>

#include "troupe/status.h"

namespace troupe {

// The bytes of a file that holds secrets. kInvalidArgument: it cannot be read, may be used by every
// user of the machine, or has more than `bytes_max`; the message begins with `setting` and the
// path, and ends with `hint` where the file cannot be read.
[[nodiscard]] Result<std::string> read_private_file(const std::string& path,
                                                    const std::string& setting, size_t bytes_max,
                                                    const std::string& hint);

}  // namespace troupe
