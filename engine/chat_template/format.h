#pragma once
// How values print: Python's str() and repr(), and JSON.

#include <optional>
#include <string>

#include "engine/chat_template/budget.h"
#include "engine/chat_template/text.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe::chat_template {

// Python's repr of a float: the shortest digits that read back the same.
[[nodiscard]] std::string float_repr(double value);

// str(value). Text keeps its origins; everything else prints as data. Undefined prints nothing.
// Values that live only in a render (namespaces, macros, loops, functions) cannot be printed.
[[nodiscard]] Result<TemplateText> to_text(Budget& budget, const TemplateValue& value);

struct JsonOptions {
  std::optional<std::string> indent;  // of one level; absent: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool is_ascii = false;  // escape everything else
  bool sorts_keys = false;
};

// Python's json.dumps(value). All of it is data: quotes and escapes hide what the template wrote.
[[nodiscard]] Result<std::string> to_json(Budget& budget, const TemplateValue& value,
                                          const JsonOptions& options);

}  // namespace troupe::chat_template
