// The methods of str, list and dict, and the names of those of loop.
#include <algorithm>
#include <array>
#include <span>

#include "base/assert.h"
#include "engine/chat_template/arguments.h"
#include "engine/chat_template/builtins.h"
#include "engine/chat_template/operators.h"
#include "engine/chat_template/string_format.h"
#include "engine/chat_template/text_functions.h"
#include "engine/chat_template/unicode.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;
using Method = Result<TemplateValue> (*)(Budget&, const TemplateValue&, const CallArguments&);

struct NamedMethod {
  std::string_view name;
  Method method;
};

// ---- str

template <Side side>
Result<TemplateValue> strip_method(Budget& budget, const TemplateValue& object,
                                   const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"chars"}, 0));
  std::optional<std::string_view> characters;
  if (bound[0] != nullptr && !bound[0]->is(Kind::kNone)) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* text, text_argument(*bound[0]));
    characters = text->bytes();
  }
  TROUPE_ASSIGN_OR_RETURN(TemplateText text, strip(budget, object.as_text(), side, characters));
  return TemplateValue::text(std::move(text));
}

Result<TemplateValue> list_of_texts(Budget& budget, std::vector<TemplateText> texts) {
  TemplateValue::List list;
  for (TemplateText& text : texts) list.push_back(TemplateValue::text(std::move(text)));
  return make_list(budget, std::move(list));
}

template <Side from>
Result<TemplateValue> split_method(Budget& budget, const TemplateValue& object,
                                   const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"sep", "maxsplit"}, 0));
  TROUPE_ASSIGN_OR_RETURN(const int64_t max, int_argument(bound[1], -1));
  if (bound[0] == nullptr || bound[0]->is(Kind::kNone)) {
    TROUPE_ASSIGN_OR_RETURN(std::vector<TemplateText> words,
                            split_at_space(budget, object.as_text(), max, from));
    return list_of_texts(budget, std::move(words));
  }
  TROUPE_ASSIGN_OR_RETURN(const TemplateText* separator, text_argument(*bound[0]));
  if (separator->empty()) return invalid_argument("needs a separator that is not empty");
  TROUPE_ASSIGN_OR_RETURN(std::vector<TemplateText> parts,
                          split(budget, object.as_text(), separator->bytes(), max, from));
  return list_of_texts(budget, std::move(parts));
}

Result<TemplateValue> splitlines_method(Budget& budget, const TemplateValue& object,
                                        const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"keepends"}, 0));
  const LineEnds line_ends = bool_argument(bound[0], false) ? LineEnds::kKept : LineEnds::kDropped;
  TROUPE_ASSIGN_OR_RETURN(std::vector<TemplateText> lines,
                          split_lines(budget, object.as_text(), line_ends));
  return list_of_texts(budget, std::move(lines));
}

template <Side from>
Result<TemplateValue> partition_method(Budget& budget, const TemplateValue& object,
                                       const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"sep"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText* separator, text_argument(*bound[0]));
  if (separator->empty()) return invalid_argument("needs a separator that is not empty");
  const TemplateText& text = object.as_text();
  TROUPE_RETURN_IF_ERROR(budget.text(text.size() + separator->size()));
  const size_t at = from == Side::kLeft ? find_first(text.bytes(), separator->bytes())
                                        : find_last(text.bytes(), separator->bytes());
  const TemplateValue nothing = TemplateValue::markup("");
  if (at == std::string_view::npos) {
    return from == Side::kLeft ? make_tuple(budget, {object, nothing, nothing})
                               : make_tuple(budget, {nothing, nothing, object});
  }
  return make_tuple(budget, {TemplateValue::text(text.slice(0, at)), *bound[0],
                             TemplateValue::text(text.slice(at + separator->size(), text.size()))});
}

template <bool (*matches)(std::string_view text, std::string_view affix)>
Result<TemplateValue> affix_test_method(Budget& budget, const TemplateValue& object,
                                        const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"affix"}, 1));
  const TemplateValue::List one = {*bound[0]};
  for (const TemplateValue& affix : bound[0]->is(Kind::kTuple) ? bound[0]->as_list() : one) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* text, text_argument(affix));
    TROUPE_RETURN_IF_ERROR(budget.work(text->size()));
    if (matches(object.as_text().bytes(), text->bytes())) return TemplateValue::boolean(true);
  }
  return TemplateValue::boolean(false);
}

bool has_prefix(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix);
}
bool has_suffix(std::string_view text, std::string_view suffix) {
  return text.ends_with(suffix);
}

template <Side side>
Result<TemplateValue> remove_affix_method(Budget& budget, const TemplateValue& object,
                                          const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"affix"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText* affix, text_argument(*bound[0]));
  const TemplateText& text = object.as_text();
  TROUPE_RETURN_IF_ERROR(budget.copy(text));
  if (side == Side::kLeft && text.bytes().starts_with(affix->bytes())) {
    return TemplateValue::text(text.slice(affix->size(), text.size()));
  }
  if (side == Side::kRight && text.bytes().ends_with(affix->bytes())) {
    return TemplateValue::text(text.slice(0, text.size() - affix->size()));
  }
  return object;
}

Result<TemplateValue> replace_method(Budget& budget, const TemplateValue& object,
                                     const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<3>(arguments, {"old", "new", "count"}, 2));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText* from, text_argument(*bound[0]));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText* to, text_argument(*bound[1]));
  TROUPE_ASSIGN_OR_RETURN(const int64_t count, int_argument(bound[2], -1));
  TROUPE_ASSIGN_OR_RETURN(TemplateText text,
                          replace(budget, object.as_text(), from->bytes(), *to, count));
  return TemplateValue::text(std::move(text));
}

template <Case wanted>
Result<TemplateValue> case_method(Budget& budget, const TemplateValue& object,
                                  const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(TemplateText text, change_case(budget, object.as_text(), wanted));
  return TemplateValue::text(std::move(text));
}

Result<TemplateValue> join_method(Budget& budget, const TemplateValue& object,
                                  const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"iterable"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List list, elements_of(budget, *bound[0]));
  TemplateText result;
  for (size_t i = 0; i < list.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* part, text_argument(list[i]));
    TROUPE_RETURN_IF_ERROR(budget.append(result, object.as_text()));
    if (i > 0) result.append(object.as_text());
    TROUPE_RETURN_IF_ERROR(budget.append(result, *part));
    result.append(*part);
  }
  return TemplateValue::text(std::move(result));
}

// The index as Python counts, in code points, or -1.
template <Side from>
Result<TemplateValue> find_method(Budget& budget, const TemplateValue& object,
                                  const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"sub"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText* needle, text_argument(*bound[0]));
  const std::string_view text = object.as_text().bytes();
  TROUPE_RETURN_IF_ERROR(budget.text(text.size() + needle->size()));
  const size_t at =
      from == Side::kLeft ? find_first(text, needle->bytes()) : find_last(text, needle->bytes());
  if (at == std::string_view::npos) return TemplateValue::integer(-1);
  return TemplateValue::integer(static_cast<int64_t>(code_point_count(text.substr(0, at))));
}

Result<TemplateValue> count_text_method(Budget& budget, const TemplateValue& object,
                                        const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"sub"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText* needle, text_argument(*bound[0]));
  const std::string_view text = object.as_text().bytes();
  TROUPE_RETURN_IF_ERROR(budget.work(text.size()));
  if (needle->empty()) {
    return TemplateValue::integer(static_cast<int64_t>(code_point_count(text)) + 1);
  }
  int64_t count = 0;
  for (size_t at = find_first(text, needle->bytes()); at != std::string_view::npos;
       at = find_first(text, needle->bytes(), at + needle->size())) {
    ++count;
  }
  return TemplateValue::integer(count);
}

bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char32_t c) {
  return is_word(c) && !is_digit(c) && c != '_';
}
bool is_letter_or_digit(char32_t c) {
  return is_letter(c) || is_digit(c);
}

template <bool (*predicate)(char32_t)>
Result<TemplateValue> all_method(Budget& budget, const TemplateValue& object,
                                 const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  const std::string_view text = object.as_text().bytes();
  TROUPE_RETURN_IF_ERROR(budget.work(text.size()));
  bool holds = !text.empty();
  for (size_t at = 0; holds && at < text.size(); at += decode(text, at).bytes) {
    holds = predicate(decode(text, at).value);
  }
  return TemplateValue::boolean(holds);
}

// At least one letter with case, and none of the other case.
template <char32_t (*other_case)(char32_t)>
Result<TemplateValue> is_case_method(Budget& budget, const TemplateValue& object,
                                     const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  const std::string_view text = object.as_text().bytes();
  TROUPE_RETURN_IF_ERROR(budget.work(text.size()));
  bool has_cased = false;
  for (size_t at = 0; at < text.size(); at += decode(text, at).bytes) {
    const char32_t value = decode(text, at).value;
    if (!is_cased(value)) continue;
    // A letter of the wanted case changes when mapped to the other one; ß is lower and does not.
    const bool is_sharp_s = value == 0xDF;
    if (is_sharp_s ? other_case('a') == 'a' : other_case(value) == value) {
      return TemplateValue::boolean(false);
    }
    has_cased = true;
  }
  return TemplateValue::boolean(has_cased);
}

Result<TemplateValue> format_method(Budget& budget, const TemplateValue& object,
                                    const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(TemplateText text, format_braces(budget, object.as_text(), arguments));
  return TemplateValue::text(std::move(text));
}

// Fills with spaces, or with the character given, up to a width; `side` is where the text stays.
template <Side side>
Result<TemplateValue> justify_method(Budget& budget, const TemplateValue& object,
                                     const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"width", "fillchar"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t width, int_argument(bound[0], 0));
  TemplateText fill(" ", TextOrigin::kTemplate);
  if (bound[1] != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* given, text_argument(*bound[1]));
    if (code_point_count(given->bytes()) != 1) {
      return invalid_argument("needs one character to fill with");
    }
    fill = *given;
  }
  const TemplateText& text = object.as_text();
  const auto length = static_cast<int64_t>(code_point_count(text.bytes()));
  const int64_t missing = width > length ? width - length : 0;
  int64_t left = side == Side::kRight ? missing : 0;
  // Where both sides cannot be equal, Python's choice depends on the width.
  if (side == Side::kBoth) left = missing / 2 + (missing & width & 1);
  TROUPE_RETURN_IF_ERROR(budget.text(text.size() + static_cast<uint64_t>(missing) * fill.size()));
  TemplateText out;
  for (int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(text);
  for (int64_t i = left; i < missing; ++i) out.append(fill);
  return TemplateValue::text(std::move(out));
}

constexpr std::array<NamedMethod, 32> kTextMethods = {{
    {"capitalize", case_method<Case::kCapitalized>},
    {"center", justify_method<Side::kBoth>},
    {"count", count_text_method},
    {"endswith", affix_test_method<has_suffix>},
    {"find", find_method<Side::kLeft>},
    {"format", format_method},
    {"isalnum", all_method<is_letter_or_digit>},
    {"isalpha", all_method<is_letter>},
    {"isdecimal", all_method<is_digit>},
    {"isdigit", all_method<is_digit>},
    {"islower", is_case_method<to_upper>},
    {"isspace", all_method<is_space>},
    {"isupper", is_case_method<to_lower>},
    {"join", join_method},
    {"ljust", justify_method<Side::kLeft>},
    {"lower", case_method<Case::kLower>},
    {"lstrip", strip_method<Side::kLeft>},
    {"partition", partition_method<Side::kLeft>},
    {"removeprefix", remove_affix_method<Side::kLeft>},
    {"removesuffix", remove_affix_method<Side::kRight>},
    {"replace", replace_method},
    {"rfind", find_method<Side::kRight>},
    {"rjust", justify_method<Side::kRight>},
    {"rpartition", partition_method<Side::kRight>},
    {"rsplit", split_method<Side::kRight>},
    {"rstrip", strip_method<Side::kRight>},
    {"split", split_method<Side::kLeft>},
    {"splitlines", splitlines_method},
    {"startswith", affix_test_method<has_prefix>},
    {"strip", strip_method<Side::kBoth>},
    {"title", case_method<Case::kTitle>},
    {"upper", case_method<Case::kUpper>},
}};

// ---- list, tuple

Result<TemplateValue> index_method(Budget& budget, const TemplateValue& object,
                                   const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"value"}, 1));
  const TemplateValue::List& list = object.as_list();
  for (size_t i = 0; i < list.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, list[i], *bound[0]));
    if (is_equal) return TemplateValue::integer(static_cast<int64_t>(i));
  }
  return invalid_argument("does not find the value in the list");
}

Result<TemplateValue> count_list_method(Budget& budget, const TemplateValue& object,
                                        const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"value"}, 1));
  int64_t count = 0;
  for (const TemplateValue& element : object.as_list()) {
    TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, element, *bound[0]));
    if (is_equal) ++count;
  }
  return TemplateValue::integer(count);
}

// Values never change, so a copy is the thing itself.
Result<TemplateValue> copy_method(Budget&, const TemplateValue& object,
                                  const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  return object;
}

constexpr std::array<NamedMethod, 3> kListMethods = {{
    {"copy", copy_method},
    {"count", count_list_method},
    {"index", index_method},
}};

// ---- dict

Result<TemplateValue> get_method(Budget& budget, const TemplateValue& object,
                                 const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"key", "default"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const bool has_key, contains(budget, object, *bound[0]));
  if (has_key) return get_item(budget, object, *bound[0]);
  return bound[1] == nullptr ? TemplateValue::none() : *bound[1];
}

Result<TemplateValue> items_method(Budget& budget, const TemplateValue& object,
                                   const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TemplateValue::List list;
  for (const auto& [key, value] : object.as_dict()) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue pair, make_tuple(budget, {key, value}));
    list.push_back(std::move(pair));
  }
  return make_list(budget, std::move(list));
}

Result<TemplateValue> keys_method(Budget& budget, const TemplateValue& object,
                                  const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(TemplateValue::List keys, elements_of(budget, object));
  return make_list(budget, std::move(keys));
}

Result<TemplateValue> values_method(Budget& budget, const TemplateValue& object,
                                    const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TemplateValue::List list;
  for (const auto& [key, value] : object.as_dict()) list.push_back(value);
  return make_list(budget, std::move(list));
}

constexpr std::array<NamedMethod, 5> kDictMethods = {{
    {"copy", copy_method},
    {"get", get_method},
    {"items", items_method},
    {"keys", keys_method},
    {"values", values_method},
}};

Method find_in(std::span<const NamedMethod> table, std::string_view name) {
  for (const NamedMethod& method : table) {
    if (method.name == name) return method.method;
  }
  return nullptr;
}

Method find_method_of(const TemplateValue& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kText:
      return find_in(kTextMethods, name);
    case Kind::kList:
    case Kind::kTuple:
      return find_in(kListMethods, name);
    case Kind::kDict:
      return find_in(kDictMethods, name);
    default:
      return nullptr;
  }
}

bool is_loop_method(std::string_view name) {
  return name == "cycle" || name == "changed";
}

}  // namespace

bool is_method(std::string_view name) {
  return find_in(kTextMethods, name) != nullptr || find_in(kListMethods, name) != nullptr ||
         find_in(kDictMethods, name) != nullptr || is_loop_method(name);
}

bool has_method(const TemplateValue& object, std::string_view name) {
  if (object.is(Kind::kLoop)) return is_loop_method(name);
  return find_method_of(object, name) != nullptr;
}

bool is_mutating_dict_method(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kNames = {"clear", "pop", "popitem",
                                                             "setdefault", "update"};
  return std::ranges::count(kNames, name) > 0;
}

bool is_mutating_method(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kListNames = {"append", "extend",  "insert",
                                                                 "remove", "reverse", "sort"};
  return is_mutating_dict_method(name) || std::ranges::count(kListNames, name) > 0;
}

Result<TemplateValue> call_method(Budget& budget, const TemplateValue& object,
                                  std::string_view name, const CallArguments& arguments) {
  const Method method = find_method_of(object, name);
  TROUPE_ASSERT(method != nullptr, object.type_name(), name);
  return method(budget, object, arguments);
}

}  // namespace troupe::chat_template
