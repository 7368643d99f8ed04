#pragma once
// Typed access to the fields of a JSON object from a client, with one wording for all errors.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

// "<path> <rule>; got <value>", with `path` as the error's param.
[[nodiscard]] Status bad_value(const std::string& path, std::string_view rule,
                               const nlohmann::ordered_json& value);

// Absent fields and null leave `out` unchanged and are no error, unless said otherwise. Types are
// strict: no string is taken for a number, no 3.0 for an integer, no 1 for true.
class FieldReader final {
 public:
  // `object` is a JSON object that outlives the reader; `prefix` is the path of it, "" or "a.b.".
  FieldReader(const nlohmann::ordered_json& object, std::string prefix);

  // Null when absent or null.
  [[nodiscard]] const nlohmann::ordered_json* find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  [[nodiscard]] std::string path(std::string_view name) const;

  [[nodiscard]] Status read(std::string_view name, bool& out) const;
  [[nodiscard]] Status read(std::string_view name, std::string& out) const;
  // `low_rule` says whether the lower bound itself is allowed.
  enum class Bound { kClosed, kOpen };
  [[nodiscard]] Status read(std::string_view name, double low, double high, float& out,
                            Bound low_rule = Bound::kClosed) const;
  [[nodiscard]] Status read(std::string_view name, int64_t low, int64_t high,
                            std::optional<int64_t>& out) const;

 private:
  const nlohmann::ordered_json& object_;
  std::string prefix_;
};

// The number as a person writes it: 0.5, not 0.500000.
[[nodiscard]] std::string format_number(double value);

}  // namespace troupe
