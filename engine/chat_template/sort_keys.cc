#include "engine/chat_template/sort_keys.h"

#include <algorithm>

#include "engine/chat_template/operators.h"
#include "engine/chat_template/text_functions.h"

namespace troupe::chat_template {

Result<TemplateValue> comparable(Budget& budget, const TemplateValue& value,
                                 CaseMatters case_matters) {
  if (case_matters == CaseMatters::kYes || !value.is(TemplateValue::Kind::kText)) return value;
  TROUPE_ASSIGN_OR_RETURN(TemplateText lower, change_case(budget, value.as_text(), Case::kLower));
  return TemplateValue::text(std::move(lower));
}

Result<Keyed> sorted_by_key(Budget& budget, Keyed elements, bool descending) {
  Status failure;
  // After a failure everything counts as equal, which lets the sort end in order.
  const auto is_before = [&](const auto& a, const auto& b) {
    if (!failure.ok()) return false;
    const Result<std::partial_ordering> ordering =
        descending ? order(budget, b.first, a.first) : order(budget, a.first, b.first);
    if (!ordering.ok()) {
      failure = ordering.status();
      return false;
    }
    return ordering.value() < 0;
  };
  std::stable_sort(elements.begin(), elements.end(), is_before);
  TROUPE_RETURN_IF_ERROR(failure);
  return elements;
}

}  // namespace troupe::chat_template
