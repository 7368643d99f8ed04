#pragma once
// The methods that change a list or dict, such as append and update. Values never change; what
// these make is a new value, which the renderer puts in the place of the old one.

#include <string_view>

#include "engine/chat_template/budget.h"
#include "engine/chat_template/builtins.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe::chat_template {

struct Change {
  TemplateValue changed;  // the list or dict afterwards
  TemplateValue result;   // what the method returns
};

// Whether there is such a method of a list or dict; sort and popitem are left out.
[[nodiscard]] bool is_changing_method(std::string_view name);
// kInvalidArgument also where `object` does not have the method.
[[nodiscard]] Result<Change> apply_change(Budget& budget, const TemplateValue& object,
                                          std::string_view name, const CallArguments& arguments);

}  // namespace troupe::chat_template
