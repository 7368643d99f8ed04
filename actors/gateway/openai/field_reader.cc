#include "actors/gateway/openai/field_reader.h"

#include <charconv>
#include <utility>

#include "actors/gateway/openai/json_parse.h"
#include "base/assert.h"

namespace troupe {

using Json = nlohmann::ordered_json;

Status bad_value(const std::string& path, std::string_view rule, const Json& value) {
  return invalid_argument(path + " " + std::string(rule) + "; got " + json_excerpt(value), path);
}

std::string format_number(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  TROUPE_ASSERT(result.ec == std::errc(), value);
  return std::string(buffer, result.ptr);
}

FieldReader::FieldReader(const Json& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {
  TROUPE_ASSERT(object.is_object(), object.type_name());
}

const Json* FieldReader::find(std::string_view name) const {
  const auto it = object_.find(std::string(name));
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

std::string FieldReader::path(std::string_view name) const {
  return prefix_ + std::string(name);
}

Status FieldReader::read(std::string_view name, bool& out) const {
  const Json* value = find(name);
  if (value == nullptr) return ok_status();
  if (!value->is_boolean()) return bad_value(path(name), "must be true or false", *value);
  out = value->get<bool>();
  return ok_status();
}

Status FieldReader::read(std::string_view name, std::string& out) const {
  const Json* value = find(name);
  if (value == nullptr) return ok_status();
  if (!value->is_string()) return bad_value(path(name), "must be a string", *value);
  out = value->get_ref<const std::string&>();
  return ok_status();
}

Status FieldReader::read(std::string_view name, double low, double high, float& out,
                         Bound low_rule) const {
  const Json* value = find(name);
  if (value == nullptr) return ok_status();
  const bool number = value->is_number();
  const double d = number ? value->get<double>() : 0.0;
  // What is taken is the nearest float: 1e-60 is 0.
  const auto taken = static_cast<float>(d);
  const bool above = low_rule == Bound::kClosed ? d >= low : taken > static_cast<float>(low);
  // Written so that a NaN, should one ever arrive, is refused.
  if (!number || !(above && d <= high)) {
    const char* open = low_rule == Bound::kClosed ? "[" : "(";
    return bad_value(path(name),
                     std::string("must be a number in ") + open + format_number(low) + ", " +
                         format_number(high) + "]",
                     *value);
  }
  out = taken;
  return ok_status();
}

Status FieldReader::read(std::string_view name, int64_t low, int64_t high,
                         std::optional<int64_t>& out) const {
  const Json* value = find(name);
  if (value == nullptr) return ok_status();
  const bool too_big =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const bool integer = value->is_number_integer() && !too_big;
  if (!integer || value->get<int64_t>() < low || value->get<int64_t>() > high) {
    return bad_value(
        path(name),
        "must be an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]",
        *value);
  }
  out = value->get<int64_t>();
  return ok_status();
}

}  // namespace troupe
