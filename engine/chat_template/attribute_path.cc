#include "engine/chat_template/attribute_path.h"

#include <algorithm>
#include <charconv>

#include "engine/chat_template/operators.h"

namespace troupe::chat_template {

using Kind = TemplateValue::Kind;

Result<AttributePath> AttributePath::from(const TemplateValue* value) {
  AttributePath path;
  if (value == nullptr || value->is(Kind::kNone)) return path;
  if (value->is(Kind::kInt)) {
    path.steps_.push_back(*value);
    return path;
  }
  if (!value->is(Kind::kText)) {
    return invalid_argument("needs the name of an attribute, not '" +
                            std::string(value->type_name()) + "'");
  }
  std::string_view rest = value->as_text().bytes();
  while (true) {
    const std::string_view step = rest.substr(0, rest.find('.'));
    int64_t index = 0;
    const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
    const bool is_index =
        !step.empty() && step[0] != '-' && error == std::errc() && end == step.data() + step.size();
    path.steps_.push_back(is_index ? TemplateValue::integer(index)
                                   : TemplateValue::markup(std::string(step)));
    if (step.size() == rest.size()) return path;
    rest.remove_prefix(step.size() + 1);
  }
}

Result<TemplateValue> AttributePath::get(Budget& budget, const TemplateValue& element,
                                         const TemplateValue* fallback) const {
  TemplateValue value = element;
  for (const TemplateValue& step : steps_) {
    TROUPE_RETURN_IF_ERROR(budget.steps(1));
    if (value.is(Kind::kUndefined)) {
      return invalid_argument("an undefined value has no attributes");
    }
    TROUPE_ASSIGN_OR_RETURN(value, get_item(budget, value, step));
    if (value.is(Kind::kUndefined) && fallback != nullptr) value = *fallback;
  }
  return value;
}

}  // namespace troupe::chat_template
