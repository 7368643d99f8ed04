#include <algorithm>
#include <array>

#include "engine/chat_template/arguments.h"
#include "engine/chat_template/attribute_path.h"
#include "engine/chat_template/filters.h"
#include "engine/chat_template/format.h"
#include "engine/chat_template/operators.h"
#include "engine/chat_template/sort_keys.h"
#include "engine/chat_template/text_functions.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;

CaseMatters case_argument(const TemplateValue* value) {
  return bool_argument(value, false) ? CaseMatters::kYes : CaseMatters::kNo;
}

Result<TemplateValue> first_filter(Budget& budget, const TemplateValue& input,
                                   const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List list, elements_of(budget, input));
  return list.empty() ? TemplateValue() : list.front();
}

Result<TemplateValue> last_filter(Budget& budget, const TemplateValue& input,
                                  const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List list, elements_of(budget, input));
  return list.empty() ? TemplateValue() : list.back();
}

Result<TemplateValue> length_filter(Budget& budget, const TemplateValue& input,
                                    const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(const int64_t length, length_of(budget, input));
  return TemplateValue::integer(length);
}

Result<TemplateValue> list_filter(Budget& budget, const TemplateValue& input,
                                  const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(TemplateValue::List list, elements_of(budget, input));
  return make_list(budget, std::move(list));
}

Result<TemplateValue> reverse_filter(Budget& budget, const TemplateValue& input,
                                     const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  if (input.is(Kind::kText)) {
    TROUPE_ASSIGN_OR_RETURN(TemplateText text, reverse(budget, input.as_text()));
    return TemplateValue::text(std::move(text));
  }
  TROUPE_ASSIGN_OR_RETURN(TemplateValue::List list, elements_of(budget, input));
  std::reverse(list.begin(), list.end());
  return make_list(budget, std::move(list));
}

Result<TemplateValue> items_filter(Budget& budget, const TemplateValue& input,
                                   const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  if (input.is(Kind::kUndefined)) return make_list(budget, {});
  if (!input.is(Kind::kDict)) {
    return invalid_argument("needs a dict, not '" + std::string(input.type_name()) + "'");
  }
  return call_method(budget, input, "items", {});
}

Result<TemplateValue> join_filter(Budget& budget, const TemplateValue& input,
                                  const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"d", "attribute"}, 0));
  TROUPE_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::from(bound[1]));
  TemplateText separator;
  if (bound[0] != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(separator, to_text(budget, *bound[0]));
  }
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List list, elements_of(budget, input));
  TemplateText result;
  for (size_t i = 0; i < list.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue part, path.get(budget, list[i]));
    TROUPE_ASSIGN_OR_RETURN(const TemplateText text, to_text(budget, part));
    TROUPE_RETURN_IF_ERROR(budget.append(result, separator));
    if (i > 0) result.append(separator);
    TROUPE_RETURN_IF_ERROR(budget.append(result, text));
    result.append(text);
  }
  return TemplateValue::text(std::move(result));
}

// The sort key of "a,b" is the list of both parts.
Result<TemplateValue> sort_key(Budget& budget, const TemplateValue& element,
                               const std::vector<AttributePath>& paths, CaseMatters case_matters) {
  TemplateValue::List parts;
  for (const AttributePath& path : paths) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue part, path.get(budget, element));
    TROUPE_ASSIGN_OR_RETURN(TemplateValue key, comparable(budget, part, case_matters));
    parts.push_back(std::move(key));
  }
  if (parts.size() == 1) return parts.front();
  return make_list(budget, std::move(parts));
}

Result<std::vector<AttributePath>> sort_paths(Budget& budget, const TemplateValue* attribute) {
  std::vector<AttributePath> paths;
  if (attribute == nullptr || !attribute->is(Kind::kText)) {
    TROUPE_ASSIGN_OR_RETURN(AttributePath path, AttributePath::from(attribute));
    paths.push_back(std::move(path));
    return paths;
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<TemplateText> names,
                          split(budget, attribute->as_text(), ",", -1, Side::kLeft));
  for (const TemplateText& name : names) {
    const TemplateValue value = TemplateValue::text(name);
    TROUPE_ASSIGN_OR_RETURN(AttributePath path, AttributePath::from(&value));
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<TemplateValue> sort_filter(Budget& budget, const TemplateValue& input,
                                  const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound,
                          bind<3>(arguments, {"reverse", "case_sensitive", "attribute"}, 0));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<AttributePath> paths, sort_paths(budget, bound[2]));
  TROUPE_ASSIGN_OR_RETURN(TemplateValue::List list, elements_of(budget, input));
  Keyed keyed;
  for (TemplateValue& element : list) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue key,
                            sort_key(budget, element, paths, case_argument(bound[1])));
    keyed.emplace_back(std::move(key), std::move(element));
  }
  TROUPE_ASSIGN_OR_RETURN(keyed,
                          sorted_by_key(budget, std::move(keyed), bool_argument(bound[0], false)));
  TemplateValue::List sorted;
  for (auto& [key, element] : keyed) sorted.push_back(std::move(element));
  return make_list(budget, std::move(sorted));
}

Result<TemplateValue> dictsort_filter(Budget& budget, const TemplateValue& input,
                                      const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound,
                          bind<3>(arguments, {"case_sensitive", "by", "reverse"}, 0));
  bool is_by_value = false;
  if (bound[1] != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* by, text_argument(*bound[1]));
    is_by_value = by->bytes() == "value";
    if (!is_by_value && by->bytes() != "key") return invalid_argument("sorts by 'key' or 'value'");
  }
  if (!input.is(Kind::kDict)) {
    return invalid_argument("needs a dict, not '" + std::string(input.type_name()) + "'");
  }
  Keyed keyed;
  for (const auto& [key, value] : input.as_dict()) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue sort_by,
                            comparable(budget, is_by_value ? value : key, case_argument(bound[0])));
    TROUPE_ASSIGN_OR_RETURN(TemplateValue pair, make_tuple(budget, {key, value}));
    keyed.emplace_back(std::move(sort_by), std::move(pair));
  }
  TROUPE_ASSIGN_OR_RETURN(keyed,
                          sorted_by_key(budget, std::move(keyed), bool_argument(bound[2], false)));
  TemplateValue::List sorted;
  for (auto& [key, pair] : keyed) sorted.push_back(std::move(pair));
  return make_list(budget, std::move(sorted));
}

template <bool wants_largest>
Result<TemplateValue> extreme_filter(Budget& budget, const TemplateValue& input,
                                     const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"case_sensitive", "attribute"}, 0));
  TROUPE_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::from(bound[1]));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List list, elements_of(budget, input));
  TemplateValue best;
  TemplateValue best_key;
  for (size_t i = 0; i < list.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue part, path.get(budget, list[i]));
    TROUPE_ASSIGN_OR_RETURN(TemplateValue key, comparable(budget, part, case_argument(bound[0])));
    if (i > 0) {
      TROUPE_ASSIGN_OR_RETURN(const std::partial_ordering ordering, order(budget, key, best_key));
      if (wants_largest ? !(ordering > 0) : !(ordering < 0)) continue;
    }
    best = list[i];
    best_key = std::move(key);
  }
  return best;
}

Result<TemplateValue> unique_filter(Budget& budget, const TemplateValue& input,
                                    const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"case_sensitive", "attribute"}, 0));
  TROUPE_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::from(bound[1]));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List list, elements_of(budget, input));
  TemplateValue::List keys;
  TemplateValue::List result;
  for (const TemplateValue& element : list) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue part, path.get(budget, element));
    TROUPE_ASSIGN_OR_RETURN(TemplateValue key, comparable(budget, part, case_argument(bound[0])));
    bool is_new = true;
    for (size_t i = 0; i < keys.size() && is_new; ++i) {
      TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, keys[i], key));
      is_new = !is_equal;
    }
    if (!is_new) continue;
    keys.push_back(std::move(key));
    result.push_back(element);
  }
  return make_list(budget, std::move(result));
}

Result<TemplateValue> sum_filter(Budget& budget, const TemplateValue& input,
                                 const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"attribute", "start"}, 0));
  TROUPE_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::from(bound[0]));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List list, elements_of(budget, input));
  TemplateValue total = bound[1] == nullptr ? TemplateValue::integer(0) : *bound[1];
  for (const TemplateValue& element : list) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue part, path.get(budget, element));
    TROUPE_ASSIGN_OR_RETURN(total, apply_binary(budget, BinaryOperator::kAdd, total, part));
  }
  return total;
}

Result<TemplateValue> batch_filter(Budget& budget, const TemplateValue& input,
                                   const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"linecount", "fill_with"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, int_argument(bound[0], 1));
  if (size < 1) return invalid_argument("needs a 'linecount' of at least 1");
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List list, elements_of(budget, input));
  TemplateValue::List batches;
  TemplateValue::List batch;
  for (const TemplateValue& element : list) {
    batch.push_back(element);
    if (static_cast<int64_t>(batch.size()) < size) continue;
    TROUPE_ASSIGN_OR_RETURN(TemplateValue full, make_list(budget, std::exchange(batch, {})));
    batches.push_back(std::move(full));
  }
  if (!batch.empty()) {
    while (bound[1] != nullptr && static_cast<int64_t>(batch.size()) < size) {
      TROUPE_RETURN_IF_ERROR(budget.elements(1));
      batch.push_back(*bound[1]);
    }
    TROUPE_ASSIGN_OR_RETURN(TemplateValue rest, make_list(budget, std::move(batch)));
    batches.push_back(std::move(rest));
  }
  return make_list(budget, std::move(batches));
}

}  // namespace

std::span<const NamedFilter> sequence_filters() {
  static constexpr std::array<NamedFilter, 15> kFilters = {{
      {"batch", batch_filter},
      {"count", length_filter},
      {"dictsort", dictsort_filter},
      {"first", first_filter},
      {"items", items_filter},
      {"join", join_filter},
      {"last", last_filter},
      {"length", length_filter},
      {"list", list_filter},
      {"max", extreme_filter<true>},
      {"min", extreme_filter<false>},
      {"reverse", reverse_filter},
      {"sort", sort_filter},
      {"sum", sum_filter},
      {"unique", unique_filter},
  }};
  return kFilters;
}

}  // namespace troupe::chat_template
