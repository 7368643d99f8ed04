#pragma once
// The filters, tests, methods and functions that templates may name. All of them are known when a
// template is compiled; none has side effects. Their errors carry no line; the caller adds it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat_template/budget.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe::chat_template {

struct CallArguments {
  std::vector<TemplateValue> positional;
  std::vector<std::pair<std::string, TemplateValue>> named;
};

using FilterFunction = Result<TemplateValue> (*)(Budget&, const TemplateValue& input,
                                                 const CallArguments& arguments);
using TestFunction = Result<bool> (*)(Budget&, const TemplateValue& input,
                                      const CallArguments& arguments);

// nullptr for a name that is not known.
[[nodiscard]] FilterFunction find_filter(std::string_view name);
[[nodiscard]] TestFunction find_test(std::string_view name);

enum class FunctionId : uint8_t {
  kRange,
  kDict,
  kNamespace,
  kRaiseException,
  kStrftimeNow,
  kMethod,  // a method that is named but not called: it exists, and that is all
};
[[nodiscard]] std::optional<FunctionId> find_function(std::string_view name);

// Whether str, list, dict or loop has a method of this name.
[[nodiscard]] bool is_method(std::string_view name);
// Whether `object` has it, e.g. a dict has "items". Python finds methods before keys in `a.items`.
[[nodiscard]] bool has_method(const TemplateValue& object, std::string_view name);
// Methods that would change a list or dict. They are known in order to say why they are refused.
[[nodiscard]] bool is_mutating_method(std::string_view name);
// The same of a dict alone: such a name hides a key in `a.name`, as in jinja2's sandbox.
[[nodiscard]] bool is_mutating_dict_method(std::string_view name);
// `object` is a str, list, tuple or dict that has the method.
[[nodiscard]] Result<TemplateValue> call_method(Budget& budget, const TemplateValue& object,
                                                std::string_view name,
                                                const CallArguments& arguments);

// range(stop), range(start, stop), range(start, stop, step), as a list.
[[nodiscard]] Result<TemplateValue> make_range(Budget& budget, const CallArguments& arguments);

}  // namespace troupe::chat_template
