#pragma once
// "a.b.0": how the attribute= parameters of filters reach into elements.

#include <string>
#include <string_view>
#include <vector>

#include "engine/chat_template/budget.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe::chat_template {

class AttributePath {
 public:
  // `value` is a text or an index. nullptr or none: the element itself.
  static Result<AttributePath> from(const TemplateValue* value);
  // The part of the element, `fallback` (or undefined, if that is null) where a step is missing.
  [[nodiscard]] Result<TemplateValue> get(Budget& budget, const TemplateValue& element,
                                          const TemplateValue* fallback = nullptr) const;

 private:
  std::vector<TemplateValue> steps_;
};

}  // namespace troupe::chat_template
