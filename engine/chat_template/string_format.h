#pragma once
// Python's two ways to put values into a text: 'a %s' % value, and 'a {}'.format(value). The text
// keeps its origins, and each value those of its own.

#include "engine/chat_template/budget.h"
#include "engine/chat_template/builtins.h"
#include "engine/chat_template/text.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe::chat_template {

// `values`: a tuple for several places, a dict for named ones, else the value of the one place.
[[nodiscard]] Result<TemplateText> format_percent(Budget& budget, const TemplateText& format,
                                                  const TemplateValue& values);

[[nodiscard]] Result<TemplateText> format_braces(Budget& budget, const TemplateText& format,
                                                 const CallArguments& arguments);

}  // namespace troupe::chat_template
