#pragma once
// Python's operators on template values. Errors carry no line; the caller adds it.

#include <compare>
#include <string_view>

#include "engine/chat_template/ast.h"
#include "engine/chat_template/budget.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe::chat_template {

[[nodiscard]] Result<TemplateValue> apply_binary(Budget& budget, BinaryOperator op,
                                                 const TemplateValue& left,
                                                 const TemplateValue& right);
// kNegate and kPlus; kNot is a matter of truthy().
[[nodiscard]] Result<TemplateValue> apply_sign(UnaryOperator op, const TemplateValue& operand);
[[nodiscard]] Result<bool> apply_compare(Budget& budget, CompareOperator op,
                                         const TemplateValue& left, const TemplateValue& right);

[[nodiscard]] Result<bool> equals(Budget& budget, const TemplateValue& left,
                                  const TemplateValue& right);
// An error for values that have no order. `unordered` only for NaN.
[[nodiscard]] Result<std::partial_ordering> order(Budget& budget, const TemplateValue& left,
                                                  const TemplateValue& right);
[[nodiscard]] Result<bool> contains(Budget& budget, const TemplateValue& container,
                                    const TemplateValue& item);

// object.name: a method before a key. Undefined if there is neither; `object` is not undefined.
[[nodiscard]] Result<TemplateValue> get_attribute(Budget& budget, const TemplateValue& object,
                                                  std::string_view name);
// object[index]: a key before a method.
[[nodiscard]] Result<TemplateValue> get_item(Budget& budget, const TemplateValue& object,
                                             const TemplateValue& index);
// object[start:stop:step]; none or undefined stands for a part that is left out.
[[nodiscard]] Result<TemplateValue> get_slice(Budget& budget, const TemplateValue& object,
                                              const TemplateValue& start, const TemplateValue& stop,
                                              const TemplateValue& step);

// The elements that a for loop visits: of a list, the keys of a dict, the characters of a text;
// none for undefined.
[[nodiscard]] Result<TemplateValue::List> elements_of(Budget& budget, const TemplateValue& value);
// As Python's len(); 0 for undefined.
[[nodiscard]] Result<int64_t> length_of(Budget& budget, const TemplateValue& value);

// A list or tuple, charged for and checked for depth.
[[nodiscard]] Result<TemplateValue> make_list(Budget& budget, TemplateValue::List elements);
[[nodiscard]] Result<TemplateValue> make_tuple(Budget& budget, TemplateValue::List elements);
// Later entries of a key replace earlier ones. An error for keys that are containers.
[[nodiscard]] Result<TemplateValue> make_dict(Budget& budget, TemplateValue::Dict entries);

}  // namespace troupe::chat_template
