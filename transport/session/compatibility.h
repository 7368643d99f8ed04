#pragma once
// What two nodes must agree on before they work together: an ordered list of named texts ("model
// digest", "block bytes"). A field that only one of them has does not matter: a router without a
// model joins workers with one, and a newer build may add fields.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/session/bytes.h"
#include "troupe/status.h"

namespace troupe {

using CompatibilityRecord = std::vector<std::pair<std::string, std::string>>;

// kInvalidArgument: too many fields, too long ones, or a name that occurs twice.
[[nodiscard]] Status check_record(const CompatibilityRecord& record);

// kUnsupported names the first field, in the order of `ours`, that both have with different values,
// and both values.
[[nodiscard]] Status compare_records(const CompatibilityRecord& ours,
                                     const CompatibilityRecord& theirs, std::string_view peer);

void write_record(const CompatibilityRecord& record, ByteWriter& out);
// Makes `in` bad where the record breaks a limit.
[[nodiscard]] CompatibilityRecord read_record(ByteReader& in);

}  // namespace troupe
