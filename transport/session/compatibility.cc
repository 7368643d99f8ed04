#include "transport/session/compatibility.h"

#include <algorithm>
#include <set>

#include "transport/session/limits.h"

namespace troupe {

Status check_record(const CompatibilityRecord& record) {
  if (record.size() > limits::kRecordFieldsMax) {
    return invalid_argument("the compatibility record has " + std::to_string(record.size()) +
                            " fields; at most " + std::to_string(limits::kRecordFieldsMax) +
                            " are allowed");
  }
  std::set<std::string_view> names;
  for (const auto& [name, value] : record) {
    if (name.empty() || name.size() > limits::kRecordNameBytesMax ||
        value.size() > limits::kRecordValueBytesMax || !names.insert(name).second) {
      return invalid_argument("field '" + name +
                              "' of the compatibility record is empty, too long, or there twice");
    }
  }
  return ok_status();
}

Status compare_records(const CompatibilityRecord& ours, const CompatibilityRecord& theirs,
                       std::string_view peer) {
  for (const auto& [name, value] : ours) {
    const auto same_name = [&name = name](const auto& field) { return field.first == name; };
    const auto found = std::find_if(theirs.begin(), theirs.end(), same_name);
    if (found == theirs.end() || found->second == value) continue;
    return {StatusCode::kUnsupported,
            name + ": this node has " + value + ", node " + std::string(peer) + " has " +
                found->second + "; start both with the same",
            name};
  }
  return ok_status();
}

void write_record(const CompatibilityRecord& record, ByteWriter& out) {
  out.u32(static_cast<uint32_t>(record.size()));
  for (const auto& [name, value] : record) {
    out.text(name);
    out.text(value);
  }
}

CompatibilityRecord read_record(ByteReader& in) {
  const uint32_t fields = in.u32();
  CompatibilityRecord record;
  for (uint32_t i = 0; i < fields && i < limits::kRecordFieldsMax && in.good(); ++i) {
    std::string name = in.text(limits::kRecordNameBytesMax);
    std::string value = in.text(limits::kRecordValueBytesMax);
    record.emplace_back(std::move(name), std::move(value));
  }
  return record;  // more fields than allowed are left over, which makes the frame incomplete
}

}  // namespace troupe
