#pragma once
// Reading a JSON Schema's keywords: places, references, what each keyword is. Private to the
// schema's translation.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/status.h"

namespace troupe {

using SchemaJson = nlohmann::ordered_json;

// A value inside the schema, with its path from the top in the form of a request's `param`
// ("properties.a.items").
struct SchemaPlace {
  const SchemaJson* value = nullptr;  // of the document, which outlives the place
  std::string path;

  [[nodiscard]] SchemaPlace at(const std::string& key) const;
  [[nodiscard]] SchemaPlace at(size_t index) const;
  [[nodiscard]] bool has(const char* key) const { return value->contains(key); }
  // "$.properties.a", for messages.
  [[nodiscard]] std::string name() const;
};

[[nodiscard]] Status schema_error(const SchemaPlace& place, const std::string& what);

// What kind of value a keyword constrains; kAnyType: whatever its type is.
enum class KeywordUse : uint8_t {
  kAnnotation,  // says nothing about validity
  kAnyType,
  kString,
  kNumber,
  kArray,
  kObject,
  kUnsupported,
};
// Nothing for a name that JSON Schema does not know.
[[nodiscard]] std::optional<KeywordUse> keyword_use(std::string_view keyword);
// Why an unsupported keyword is, in a clause ("write … instead").
[[nodiscard]] std::string_view keyword_advice(std::string_view keyword);

// Every keyword of the schema is supported. Precondition: place.value is an object.
[[nodiscard]] Status check_keywords(const SchemaPlace& place);
// No keyword but annotations and those named stands beside `keyword`.
[[nodiscard]] Status check_beside(const SchemaPlace& place, std::string_view keyword,
                                  std::initializer_list<std::string_view> allowed);

// A whole number from `least` to `most`; also one that is written like 3.0.
[[nodiscard]] Result<uint32_t> read_count(const SchemaPlace& place, uint32_t least, uint32_t most);
// An integer of 64 bits that a bound of an integer is.
[[nodiscard]] Result<double> read_number(const SchemaPlace& place);

// The value that a `$ref` of `#` or `#/…` (RFC 6901) means.
[[nodiscard]] Result<SchemaPlace> resolve_ref(const SchemaJson& document, const SchemaPlace& ref);

// JSON types as bits.
enum SchemaType : uint8_t {
  kTypeNull = 1,
  kTypeBoolean = 2,
  kTypeInteger = 4,
  kTypeFraction = 8,  // numbers that are no integers
  kTypeString = 16,
  kTypeArray = 32,
  kTypeObject = 64,
  kTypeAny = 127,
};
[[nodiscard]] uint8_t type_of_value(const SchemaJson& value);
// Of the keyword `type`: a name or an array of names.
[[nodiscard]] Result<uint8_t> read_types(const SchemaPlace& place);

// Whether no value is valid for two of the schemas, as far as that can be seen: by their types,
// their constants, or a required property whose constants differ.
[[nodiscard]] Result<bool> are_disjoint(const SchemaJson& document,
                                        const std::vector<SchemaPlace>& members);

}  // namespace troupe
