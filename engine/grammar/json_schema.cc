#include "engine/grammar/json_schema.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/formats.h"
#include "engine/grammar/json_depth.h"
#include "engine/grammar/json_rules.h"
#include "engine/grammar/limits.h"
#include "engine/grammar/number_rules.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/schema_reader.h"

namespace troupe {
namespace {

using grammar_limits::kRepetitionMax;

// JSON Schema's integers are mathematical ones; these are the ones that every reader keeps.
constexpr double kIntegerBound = 9.2e18;

class Translator {
 public:
  explicit Translator(const SchemaJson& document) : document_(document), json_(rules_) {}

  Result<Rules> translate() {
    TROUPE_ASSIGN_OR_RETURN(Expr root, rule_of({&document_, ""}));
    // References are followed here, not where they stand: a chain of them is no recursion.
    for (size_t next = 0; next < waiting_.size(); ++next) {
      const auto [place, rule] = waiting_[next];
      TROUPE_ASSIGN_OR_RETURN(Expr body, schema(place, 0));
      rules_.define(rule, std::move(body));
    }
    rules_.set_root(std::move(root));
    return std::move(rules_);
  }

 private:
  // The rule of a schema that is referred to, or will be.
  Result<Expr> rule_of(const SchemaPlace& place) {
    const auto known = rules_of_.find(place.value);
    if (known != rules_of_.end()) return Rules::ref(known->second);
    const uint32_t rule = rules_.declare(place.name());
    rules_of_.emplace(place.value, rule);
    waiting_.emplace_back(place, rule);
    return Rules::ref(rule);
  }

  Result<Expr> schema(const SchemaPlace& place, uint32_t depth) {
    if (depth > grammar_limits::kDepthMax) {
      return schema_error(place, "it is nested more than " +
                                     std::to_string(grammar_limits::kDepthMax) + " levels deep");
    }
    if (place.value->is_boolean()) {
      if (place.value->get<bool>()) return json_.value();
      return schema_error(place, "no value is valid for the schema false");
    }
    if (!place.value->is_object())
      return schema_error(place, "a schema is an object, true or false");
    TROUPE_RETURN_IF_ERROR(check_keywords(place));
    if (place.has("$ref")) {
      TROUPE_RETURN_IF_ERROR(check_beside(place, "$ref", {}));
      TROUPE_ASSIGN_OR_RETURN(const SchemaPlace target, resolve_ref(document_, place.at("$ref")));
      return rule_of(target);
    }
    if (place.has("const")) return constant(place);
    if (place.has("enum")) return enumeration(place);
    if (place.has("anyOf")) return any_of(place, "anyOf", depth);
    if (place.has("oneOf")) return one_of_them(place, depth);
    if (place.has("allOf")) return all_of(place, depth);
    return typed(place, depth);
  }

  Result<Expr> constant(const SchemaPlace& place) {
    TROUPE_RETURN_IF_ERROR(check_beside(place, "const", {"type"}));
    TROUPE_ASSIGN_OR_RETURN(const uint8_t types, types_of(place));
    const SchemaPlace value = place.at("const");
    if ((types & type_of_value(*value.value)) == 0)
      return schema_error(value, "the constant is not of the type beside it");
    return literal(value.value->dump());
  }

  Result<Expr> enumeration(const SchemaPlace& place) {
    TROUPE_RETURN_IF_ERROR(check_beside(place, "enum", {"type"}));
    TROUPE_ASSIGN_OR_RETURN(const uint8_t types, types_of(place));
    const SchemaPlace values = place.at("enum");
    if (!values.value->is_array() || values.value->empty())
      return schema_error(values, "it must be an array with at least one value");
    enum_values_ += values.value->size();
    if (enum_values_ > grammar_limits::kEnumValuesMax) {
      return schema_error(values, "a schema may have " +
                                      std::to_string(grammar_limits::kEnumValuesMax) +
                                      " values of enum in all");
    }
    std::vector<Expr> parts;
    std::set<std::string> seen;
    for (const SchemaJson& value : *values.value) {
      if ((types & type_of_value(value)) == 0) continue;
      if (seen.insert(value.dump()).second) parts.push_back(literal(value.dump()));
    }
    if (parts.empty()) return schema_error(values, "no value is of the type beside it");
    return choice(std::move(parts));
  }

  Result<Expr> any_of(const SchemaPlace& place, const char* keyword, uint32_t depth) {
    TROUPE_RETURN_IF_ERROR(check_beside(place, keyword, {}));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<SchemaPlace> members, members_of(place.at(keyword)));
    std::vector<Expr> parts;
    for (const SchemaPlace& member : members) {
      TROUPE_ASSIGN_OR_RETURN(Expr part, schema(member, depth + 1));
      parts.push_back(std::move(part));
    }
    return choice(std::move(parts));
  }

  Result<Expr> one_of_them(const SchemaPlace& place, uint32_t depth) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<SchemaPlace> members, members_of(place.at("oneOf")));
    TROUPE_ASSIGN_OR_RETURN(const bool disjoint, are_disjoint(document_, members));
    if (!disjoint) {
      return schema_error(place.at("oneOf"),
                          "a value might be valid for two of them, and oneOf wants exactly one: "
                          "use anyOf, or give each a required property with its own const");
    }
    return any_of(place, "oneOf", depth);
  }

  Result<Expr> all_of(const SchemaPlace& place, uint32_t depth) {
    TROUPE_RETURN_IF_ERROR(check_beside(place, "allOf", {}));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<SchemaPlace> members, members_of(place.at("allOf")));
    if (members.size() != 1) {
      return schema_error(place.at("allOf"),
                          "several schemas at once are not supported: write them as one");
    }
    return schema(members[0], depth + 1);
  }

  static Result<std::vector<SchemaPlace>> members_of(const SchemaPlace& place) {
    if (!place.value->is_array() || place.value->empty())
      return schema_error(place, "it must be an array with at least one schema");
    std::vector<SchemaPlace> members;
    for (size_t i = 0; i < place.value->size(); ++i) members.push_back(place.at(i));
    return members;
  }

  // Of the keyword `type`; any where it is missing.
  static Result<uint8_t> types_of(const SchemaPlace& place) {
    if (!place.has("type")) return uint8_t{kTypeAny};
    return read_types(place.at("type"));
  }

  // Without `type`, keywords that constrain one type mean that type. (A value of another type would
  // be valid, too, and is not what was meant.)
  Result<uint8_t> meant_types(const SchemaPlace& place) {
    if (place.has("type")) return read_types(place.at("type"));
    uint8_t types = 0;
    for (const auto& [key, value] : place.value->items()) {
      switch (keyword_use(key).value_or(KeywordUse::kAnnotation)) {
        case KeywordUse::kString:
          types |= kTypeString;
          break;
        case KeywordUse::kNumber:
          types |= kTypeInteger | kTypeFraction;
          break;
        case KeywordUse::kArray:
          types |= kTypeArray;
          break;
        case KeywordUse::kObject:
          types |= kTypeObject;
          break;
        default:
          break;
      }
    }
    return types == 0 ? uint8_t{kTypeAny} : types;
  }

  Result<Expr> typed(const SchemaPlace& place, uint32_t depth) {
    TROUPE_ASSIGN_OR_RETURN(const uint8_t types, meant_types(place));
    std::vector<Expr> parts;
    if ((types & kTypeString) != 0) {
      TROUPE_ASSIGN_OR_RETURN(Expr part, string(place));
      parts.push_back(std::move(part));
    }
    if ((types & kTypeFraction) != 0) {
      TROUPE_ASSIGN_OR_RETURN(Expr part, number(place));
      parts.push_back(std::move(part));
    } else if ((types & kTypeInteger) != 0) {
      TROUPE_ASSIGN_OR_RETURN(Expr part, integer(place));
      parts.push_back(std::move(part));
    }
    if ((types & kTypeObject) != 0) {
      TROUPE_ASSIGN_OR_RETURN(Expr part, object(place, depth));
      parts.push_back(std::move(part));
    }
    if ((types & kTypeArray) != 0) {
      TROUPE_ASSIGN_OR_RETURN(Expr part, array(place, depth));
      parts.push_back(std::move(part));
    }
    if ((types & kTypeBoolean) != 0) parts.push_back(JsonRules::boolean());
    if ((types & kTypeNull) != 0) parts.push_back(literal("null"));
    return choice(std::move(parts));
  }

  Result<Expr> string(const SchemaPlace& place) {
    const bool has_length = place.has("minLength") || place.has("maxLength");
    if (place.has("pattern") || place.has("format")) {
      const char* keyword = place.has("pattern") ? "pattern" : "format";
      for (const char* other : {"format", "minLength", "maxLength"}) {
        if (std::string_view(other) == keyword || !place.has(other)) continue;
        return schema_error(place.at(other), std::string("the keyword '") + other +
                                                 "' is not supported beside '" + keyword +
                                                 "': say it in a pattern alone");
      }
      return pattern(place.at(keyword), std::string_view(keyword) == "format");
    }
    if (!has_length) return json_.string();
    uint32_t least = 0;
    uint32_t most = Expr::kUnbounded;
    TROUPE_RETURN_IF_ERROR(read_range(place, "minLength", "maxLength", least, most));
    return JsonRules::string_of_length(least, most);
  }

  Result<Expr> pattern(const SchemaPlace& place, bool is_format) {
    if (!place.value->is_string()) return schema_error(place, "it must be a string");
    std::string_view text = place.value->get_ref<const std::string&>();
    if (is_format) {
      const auto known = pattern_of_format(text);
      if (!known) {
        return schema_error(place,
                            "the format '" + utf8_prefix(text, kQuotedBytesMax) +
                                "' is not supported; these are: " + std::string(format_names()));
      }
      text = *known;
    }
    auto characters = parse_regex(text, RegexUse::kJsonString);
    if (!characters.ok()) return schema_error(place, characters.status().message());
    return sequence({literal("\""), std::move(characters).value(), literal("\"")});
  }

  // Leaves a bound as it is when its keyword is missing.
  static Status read_range(const SchemaPlace& place, const char* least_name, const char* most_name,
                           uint32_t& least, uint32_t& most) {
    if (place.has(least_name)) {
      TROUPE_ASSIGN_OR_RETURN(least, read_count(place.at(least_name), 0, kRepetitionMax));
    }
    if (place.has(most_name)) {
      TROUPE_ASSIGN_OR_RETURN(most, read_count(place.at(most_name), 0, kRepetitionMax));
    }
    if (least <= most) return ok_status();
    return schema_error(place.at(most_name),
                        std::string("it is below ") + least_name + ", so that no value is valid");
  }

  // The stricter of a keyword and its exclusive form.
  Result<std::optional<NumberBounds::Bound>> bound(const SchemaPlace& place, bool is_low) {
    const char* names[] = {is_low ? "minimum" : "maximum",
                           is_low ? "exclusiveMinimum" : "exclusiveMaximum"};
    std::optional<NumberBounds::Bound> found;
    for (const char* name : names) {
      if (!place.has(name)) continue;
      const bool is_exclusive = name == names[1];
      if (place.at(name).value->is_boolean()) {
        return schema_error(place.at(name), std::string("the boolean form of draft 4 is not "
                                                        "supported: give the bound itself"));
      }
      TROUPE_ASSIGN_OR_RETURN(const double value, read_number(place.at(name)));
      const bool is_stricter = !found || (is_low ? value > found->value : value < found->value) ||
                               (value == found->value && is_exclusive);
      if (is_stricter) found = NumberBounds::Bound{value, is_exclusive};
    }
    return found;
  }

  // 64-bit integers keep their last digits, which a double does not.
  static int64_t exact(const SchemaJson& value, double as_double) {
    if (value.is_number_unsigned()) {
      const auto number = value.get<uint64_t>();
      return static_cast<int64_t>(std::min<uint64_t>(number, std::numeric_limits<int64_t>::max()));
    }
    return value.is_number_integer() ? value.get<int64_t>() : static_cast<int64_t>(as_double);
  }

  // The bound as the first (last) integer that it allows.
  Result<std::optional<int64_t>> integer_bound(const SchemaPlace& place, bool is_low) {
    std::optional<int64_t> found;
    for (const char* name :
         {is_low ? "minimum" : "maximum", is_low ? "exclusiveMinimum" : "exclusiveMaximum"}) {
      if (!place.has(name)) continue;
      const SchemaPlace at = place.at(name);
      TROUPE_ASSIGN_OR_RETURN(const double value, read_number(at));
      const bool fits = at.value->is_number_unsigned()
                            ? at.value->get<uint64_t>() <=
                                  static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
                            : at.value->is_number_integer() || std::fabs(value) < kIntegerBound;
      if (!fits) return schema_error(at, "the bound does not fit 64 bits: leave it out");
      const double whole = is_low ? std::ceil(value) : std::floor(value);
      int64_t integer = exact(*at.value, whole);
      const bool is_exclusive = std::string_view(name).starts_with("exclusive");
      if (is_exclusive && (at.value->is_number_integer() || whole == value)) {
        const int64_t end =
            is_low ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
        if (integer == end) return schema_error(at, "no integer of 64 bits lies beyond it");
        integer += is_low ? 1 : -1;
      }
      if (!found || (is_low ? integer > *found : integer < *found)) found = integer;
    }
    return found;
  }

  Result<Expr> integer(const SchemaPlace& place) {
    // Names what is wrong with a keyword's form before its value is used.
    TROUPE_RETURN_IF_ERROR(bound(place, true).status());
    TROUPE_RETURN_IF_ERROR(bound(place, false).status());
    TROUPE_ASSIGN_OR_RETURN(const std::optional<int64_t> low, integer_bound(place, true));
    TROUPE_ASSIGN_OR_RETURN(const std::optional<int64_t> high, integer_bound(place, false));
    if (low && high && *low > *high)
      return schema_error(place, "no integer lies between its bounds");
    if (place.has("multipleOf")) return multiple(place, low, high);
    if (!low && !high) return json_.integer();
    constexpr int64_t kFree = 999'999'999'999'999'999;  // kIntegerDigitsMax digits
    // An open side goes as far as other integers go, or to the type's end where the bound is
    // beyond.
    int64_t from = -kFree;
    int64_t to = kFree;
    if (low) {
      from = *low;
      if (from > kFree) to = std::numeric_limits<int64_t>::max();
    }
    if (high) {
      to = *high;
      if (!low && to < -kFree) from = std::numeric_limits<int64_t>::min();
    }
    return integers_between(from, to);
  }

  Result<Expr> multiple(const SchemaPlace& place, std::optional<int64_t> low,
                        std::optional<int64_t> high) {
    const SchemaPlace at = place.at("multipleOf");
    TROUPE_ASSIGN_OR_RETURN(const double value, read_number(at));
    const bool is_whole = value == std::floor(value);
    if (value <= 0.0) return schema_error(at, "it must be above 0");
    if (!is_whole || value > 1e15)
      return schema_error(at, "only whole numbers up to 10^15 are supported");
    const auto step = static_cast<int64_t>(value);
    if (low && high) {
      auto several = multiples_between(step, *low, *high);
      if (!several.ok()) return schema_error(at, several.status().message());
      return several;
    }
    if (low || high) {
      return schema_error(at, "it is supported with both bounds or with none: add the other one");
    }
    if (step > kMultipleMax) {
      return schema_error(at, "without bounds, only multiples of up to " +
                                  std::to_string(kMultipleMax) +
                                  " are supported: add minimum and maximum");
    }
    return multiples(step, place.name(), rules_);
  }

  Result<Expr> number(const SchemaPlace& place) {
    NumberBounds bounds;
    TROUPE_ASSIGN_OR_RETURN(bounds.low, bound(place, true));
    TROUPE_ASSIGN_OR_RETURN(bounds.high, bound(place, false));
    if (place.has("multipleOf")) return integer(place);  // multiples of whole numbers are integers
    if (!bounds.low && !bounds.high) return json_.number();
    auto numbers = numbers_between(bounds);
    if (!numbers.ok()) return schema_error(place, numbers.status().message());
    return numbers;
  }

  Result<Expr> array(const SchemaPlace& place, uint32_t depth) {
    uint32_t least = 0;
    uint32_t most = Expr::kUnbounded;
    TROUPE_RETURN_IF_ERROR(read_range(place, "minItems", "maxItems", least, most));
    std::vector<Expr> first;
    if (place.has("prefixItems")) {
      TROUPE_ASSIGN_OR_RETURN(const std::vector<SchemaPlace> items,
                              members_of(place.at("prefixItems")));
      for (const SchemaPlace& item : items) {
        TROUPE_ASSIGN_OR_RETURN(Expr expr, schema(item, depth + 1));
        first.push_back(rules_.add(item.name(), std::move(expr)));
      }
    }
    std::optional<Expr> more;
    if (place.has("items")) {
      const SchemaPlace items = place.at("items");
      if (items.value->is_array())
        return schema_error(items, "the array form is not supported: use prefixItems");
      const bool is_closed = items.value->is_boolean() && !items.value->get<bool>();
      if (!is_closed) {
        TROUPE_ASSIGN_OR_RETURN(Expr expr, schema(items, depth + 1));
        more = rules_.add(items.name(), std::move(expr));
      }
    } else if (first.empty() && least == 0 && most == Expr::kUnbounded) {
      return json_.array();
    } else {
      more = json_.value();
    }
    if (!more && least > first.size()) {
      return schema_error(place.at("minItems"),
                          "more items are wanted than prefixItems has, and "
                          "further ones are not possible");
    }
    return json_.array_of(place.name(), std::move(first), more ? &*more : nullptr, least, most);
  }

  Result<Expr> object(const SchemaPlace& place, uint32_t depth) {
    const bool is_plain = !place.has("properties") && !place.has("required") &&
                          !place.has("additionalProperties") && !place.has("minProperties") &&
                          !place.has("maxProperties");
    if (is_plain) return json_.object();
    std::set<std::string> required;
    if (place.has("required")) {
      TROUPE_ASSIGN_OR_RETURN(required, names_in(place.at("required")));
    }
    std::vector<JsonRules::Member> members;
    if (place.has("properties")) {
      TROUPE_ASSIGN_OR_RETURN(members, declared(place.at("properties"), required, depth));
    }
    std::optional<JsonRules::Further> further;
    TROUPE_RETURN_IF_ERROR(read_further(place, depth, members.empty(), further));
    for (const std::string& name : required) {
      const bool is_declared =
          std::any_of(members.begin(), members.end(),
                      [&name](const JsonRules::Member& member) { return member.name == name; });
      if (is_declared) continue;
      if (is_closed(place)) {
        return schema_error(place.at("required"),
                            "'" + utf8_prefix(name, kQuotedBytesMax) +
                                "' is required, but neither declared nor allowed: declare it");
      }
      members.push_back({name, further ? further->value : json_.value(), true});
    }
    TROUPE_RETURN_IF_ERROR(apply_counts(place, members, further));
    TROUPE_RETURN_IF_ERROR(check_optional(place, members));
    if (further && !members.empty()) TROUPE_RETURN_IF_ERROR(check_avoided(place, members));
    return json_.object_of(place.name(), std::move(members), further ? &*further : nullptr);
  }

  static Result<std::set<std::string>> names_in(const SchemaPlace& place) {
    if (!place.value->is_array()) return schema_error(place, "it must be an array of names");
    std::set<std::string> names;
    for (const SchemaJson& name : *place.value) {
      if (!name.is_string()) return schema_error(place, "it must be an array of names");
      names.insert(name.get<std::string>());
    }
    return names;
  }

  Result<std::vector<JsonRules::Member>> declared(const SchemaPlace& place,
                                                  const std::set<std::string>& required,
                                                  uint32_t depth) {
    if (!place.value->is_object())
      return schema_error(place, "it must be an object of schemas by name");
    properties_ += place.value->size();
    if (properties_ > grammar_limits::kPropertiesMax) {
      return schema_error(place, "a schema may declare " +
                                     std::to_string(grammar_limits::kPropertiesMax) +
                                     " properties in all");
    }
    std::vector<JsonRules::Member> members;
    for (const auto& [name, value] : place.value->items()) {
      const SchemaPlace property = place.at(name);
      TROUPE_ASSIGN_OR_RETURN(Expr expr, schema(property, depth + 1));
      members.push_back(
          {name, rules_.add(property.name(), std::move(expr)), required.contains(name)});
    }
    return members;
  }

  static bool is_closed(const SchemaPlace& place) {
    if (!place.has("additionalProperties")) return false;
    const SchemaJson& value = place.value->at("additionalProperties");
    return value.is_boolean() && !value.get<bool>();
  }

  // Undeclared members: where the schema speaks of them, or declares none.
  Status read_further(const SchemaPlace& place, uint32_t depth, bool declares_none,
                      std::optional<JsonRules::Further>& further) {
    if (is_closed(place)) return ok_status();
    if (!place.has("additionalProperties")) {
      if (declares_none && !place.has("required"))
        further = JsonRules::Further{.value = json_.value()};
      return ok_status();
    }
    const SchemaPlace at = place.at("additionalProperties");
    TROUPE_ASSIGN_OR_RETURN(Expr value, schema(at, depth + 1));
    further = JsonRules::Further{.value = rules_.add(at.name(), std::move(value))};
    return ok_status();
  }

  static Status apply_counts(const SchemaPlace& place, std::vector<JsonRules::Member>& members,
                             std::optional<JsonRules::Further>& further) {
    uint32_t least = 0;
    uint32_t most = Expr::kUnbounded;
    TROUPE_RETURN_IF_ERROR(read_range(place, "minProperties", "maxProperties", least, most));
    const auto required = static_cast<uint32_t>(
        std::count_if(members.begin(), members.end(),
                      [](const JsonRules::Member& member) { return member.is_required; }));
    if (most < required)
      return schema_error(place.at("maxProperties"), "more properties than that are required");
    if (least > required) {
      // Two further members might have one name, and then they are one.
      const bool is_possible = members.empty() && further && least == 1;
      if (!is_possible) {
        return schema_error(place.at("minProperties"),
                            "it is supported up to the number of required properties, or as 1 "
                            "where none are declared: require properties by name");
      }
      further->least = 1;
    }
    if (most == Expr::kUnbounded) return ok_status();
    if (most == required) {
      std::erase_if(members, [](const JsonRules::Member& member) { return !member.is_required; });
      further.reset();
    } else if (members.empty() && further) {
      further->most = most;
    } else if (further || most < members.size()) {
      return schema_error(place.at("maxProperties"),
                          "it is supported where no properties are declared, or where it is the "
                          "number of the required or of all: leave it out");
    }
    return ok_status();
  }

  static Status check_optional(const SchemaPlace& place,
                               const std::vector<JsonRules::Member>& members) {
    const auto optional = std::count_if(members.begin(), members.end(),
                                        [](const auto& member) { return !member.is_required; });
    if (optional <= grammar_limits::kOptionalPropertiesMax) return ok_status();
    return schema_error(place.at("properties"),
                        std::to_string(optional) + " of its properties are optional, at most " +
                            std::to_string(grammar_limits::kOptionalPropertiesMax) +
                            " can be: require the others");
  }

  static Status check_avoided(const SchemaPlace& place,
                              const std::vector<JsonRules::Member>& members) {
    size_t bytes = 0;
    for (const JsonRules::Member& member : members) bytes += member.name.size();
    if (bytes <= grammar_limits::kAvoidedNameCharsMax) return ok_status();
    return schema_error(place, "its properties' names have " + std::to_string(bytes) +
                                   " bytes; further properties are only possible up to " +
                                   std::to_string(grammar_limits::kAvoidedNameCharsMax) +
                                   ": set additionalProperties to false");
  }

  const SchemaJson& document_;
  Rules rules_;
  JsonRules json_;
  std::map<const SchemaJson*, uint32_t> rules_of_;
  std::vector<std::pair<SchemaPlace, uint32_t>> waiting_;
  size_t properties_ = 0, enum_values_ = 0;
};

}  // namespace

Result<Rules> rules_of_json_schema(std::string_view schema) {
  TROUPE_ASSIGN_OR_RETURN(const SchemaJson document, parse_bounded_json(schema, "the JSON schema"));
  return Translator(document).translate();
}

}  // namespace troupe
