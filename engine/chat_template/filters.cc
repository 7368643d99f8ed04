#include "engine/chat_template/filters.h"

namespace troupe::chat_template {

FilterFunction find_filter(std::string_view name) {
  for (const auto table :
       {text_filters(), number_filters(), sequence_filters(), selection_filters()}) {
    for (const NamedFilter& filter : table) {
      if (filter.name == name) return filter.function;
    }
  }
  return nullptr;
}

}  // namespace troupe::chat_template
