#include "actors/gateway/openai/known_fields.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/text/escape.h"

namespace troupe {

namespace {

constexpr size_t kNameBytesMax = 64;
// A name this near is taken for a slip: one in three letters and one more (two swapped letters are
// two), but fewer in a name that is shorter than this.
constexpr size_t kNearDistanceMax = 3;
constexpr size_t kShortName = 4;

bool is_off(const nlohmann::ordered_json& value) {
  const bool empty = (value.is_array() || value.is_object()) && value.empty();
  return value.is_null() || empty || (value.is_boolean() && !value.get<bool>());
}

Status unknown_field(std::string_view name, std::string_view prefix,
                     std::span<const KnownField> known) {
  const std::string shown =
      std::string(prefix) + (name.empty() ? "\"\"" : printable_excerpt(name, kExcerptBytesMax));
  const KnownField* nearest = nullptr;
  const size_t slips = name.size() / 3 + (name.size() >= kShortName ? 1 : 0);
  size_t distance_min = std::min(kNearDistanceMax, slips) + 1;
  for (const KnownField& field : known) {
    const size_t distance = edit_distance(name, field.name);
    if (distance < distance_min) {
      distance_min = distance;
      nearest = &field;
    }
  }
  std::string message = shown + " is not a known field; ";
  if (nearest != nullptr) {
    message += "did you mean " + std::string(prefix) + std::string(nearest->name) + "?";
  } else {
    message += "remove it";
  }
  return invalid_argument(message, shown);
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kNameBytesMax);
  b = b.substr(0, kNameBytesMax);
  std::array<size_t, kNameBytesMax + 1> row{};
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

Status check_known_fields(const nlohmann::ordered_json& object, std::string_view prefix,
                          std::span<const KnownField> known) {
  for (const auto& [name, value] : object.items()) {
    const auto it = std::find_if(known.begin(), known.end(),
                                 [&name = name](const KnownField& f) { return f.name == name; });
    // Clients write out what they leave to the server, also under names of a later version.
    if (it == known.end() && value.is_null()) continue;
    if (it == known.end()) return unknown_field(name, prefix, known);
    if (it->use == FieldUse::kUnsupported && !is_off(value)) {
      const std::string path = std::string(prefix) + name;
      return Status(StatusCode::kUnsupported, path + " is not supported by this server; remove it",
                    path);
    }
  }
  return ok_status();
}

}  // namespace troupe
