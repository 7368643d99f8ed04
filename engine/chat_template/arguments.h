#pragma once
// Distributes the arguments of a call to the parameters of a built-in, as Python does.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/chat_template/builtins.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe::chat_template {

// One value per parameter, nullptr where none was given. Points into the arguments.
template <size_t N>
using Bound = std::array<const TemplateValue*, N>;

// The first `required` parameters must be given. Errors name the parameter.
template <size_t N>
Result<Bound<N>> bind(const CallArguments& arguments, const std::array<std::string_view, N>& names,
                      size_t required) {
  Bound<N> bound{};
  if (arguments.positional.size() > N) {
    return invalid_argument("takes at most " + std::to_string(N) + " arguments, not " +
                            std::to_string(arguments.positional.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    size_t place = 0;
    while (place < N && names[place] != name) ++place;
    if (place == N) return invalid_argument("has no parameter '" + name + "'");
    if (bound[place] != nullptr) return invalid_argument("got '" + name + "' twice");
    bound[place] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (bound[i] == nullptr) {
      return invalid_argument("needs the argument '" + std::string(names[i]) + "'");
    }
  }
  return bound;
}

// For built-ins without parameters.
[[nodiscard]] Status expect_no_arguments(const CallArguments& arguments);

// nullptr and none give the fallback.
[[nodiscard]] Result<int64_t> int_argument(const TemplateValue* value, int64_t fallback);
[[nodiscard]] bool bool_argument(const TemplateValue* value, bool fallback);
[[nodiscard]] Result<const TemplateText*> text_argument(const TemplateValue& value);

}  // namespace troupe::chat_template
