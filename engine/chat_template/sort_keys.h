#pragma once
// What sort, dictsort, min, max and unique compare: a part of each element, case ignored on
// request.

#include <string>
#include <utility>
#include <vector>

#include "engine/chat_template/budget.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe::chat_template {

enum class CaseMatters : bool { kNo, kYes };

// Without kYes a text is compared in lower case; other values stay.
[[nodiscard]] Result<TemplateValue> comparable(Budget& budget, const TemplateValue& value,
                                               CaseMatters case_matters);

// (key, element) pairs in ascending order of the keys; equal ones keep their order, also where
// `descending` turns the order around. An error if two keys have no order.
using Keyed = std::vector<std::pair<TemplateValue, TemplateValue>>;
[[nodiscard]] Result<Keyed> sorted_by_key(Budget& budget, Keyed elements, bool descending);

}  // namespace troupe::chat_template
