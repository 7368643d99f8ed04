// The functions that need nothing but their arguments.
#include <array>

#include "engine/chat_template/arguments.h"
#include "engine/chat_template/builtins.h"
#include "engine/chat_template/operators.h"

namespace troupe::chat_template {

std::optional<FunctionId> find_function(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, FunctionId>, 5> kFunctions = {{
      {"range", FunctionId::kRange},
      {"dict", FunctionId::kDict},
      {"namespace", FunctionId::kNamespace},
      {"raise_exception", FunctionId::kRaiseException},
      {"strftime_now", FunctionId::kStrftimeNow},
  }};
  for (const auto& [known, function] : kFunctions) {
    if (known == name) return function;
  }
  return std::nullopt;
}

Result<TemplateValue> make_range(Budget& budget, const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<3>(arguments, {"start", "stop", "step"}, 1));
  TROUPE_ASSIGN_OR_RETURN(int64_t start, int_argument(bound[0], 0));
  TROUPE_ASSIGN_OR_RETURN(int64_t stop, int_argument(bound[1], 0));
  TROUPE_ASSIGN_OR_RETURN(const int64_t step, int_argument(bound[2], 1));
  if (bound[1] == nullptr) stop = std::exchange(start, 0);
  if (step == 0) return invalid_argument("needs a step that is not zero");
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  if (is_empty) return make_list(budget, {});
  // Unsigned, since the distance of two int64 may not fit into one.
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = (distance - 1) / stride + 1;
  if (count > static_cast<uint64_t>(budget.limits().range_max)) {
    return invalid_argument(
        "would make " + std::to_string(count) +
        " numbers, more than range_max = " + std::to_string(budget.limits().range_max));
  }
  TemplateValue::List list;
  list.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    list.push_back(TemplateValue::integer(start));
    // Behind the last number the sum might overflow.
    if (i + 1 < count) start += step;
  }
  return make_list(budget, std::move(list));
}

}  // namespace troupe::chat_template
