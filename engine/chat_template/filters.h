#pragma once
// The tables that find_filter() searches, by what the filters work on.

#include <span>
#include <string_view>

#include "engine/chat_template/builtins.h"

namespace troupe::chat_template {

struct NamedFilter {
  std::string_view name;
  FilterFunction function;
};

[[nodiscard]] std::span<const NamedFilter> text_filters();
[[nodiscard]] std::span<const NamedFilter> number_filters();
[[nodiscard]] std::span<const NamedFilter> sequence_filters();
[[nodiscard]] std::span<const NamedFilter> selection_filters();

}  // namespace troupe::chat_template
