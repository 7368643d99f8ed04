// Filters that apply another filter or a test to each element.
#include <array>

#include "engine/chat_template/arguments.h"
#include "engine/chat_template/attribute_path.h"
#include "engine/chat_template/errors.h"
#include "engine/chat_template/filters.h"
#include "engine/chat_template/operators.h"

namespace troupe::chat_template {
namespace {

constexpr size_t kMapArgumentsMax = 8;

// As jinja2 has it: nothing at all, such as none, has no elements.
Result<TemplateValue::List> elements_or_nothing(Budget& budget, const TemplateValue& input) {
  if (!input.truthy()) return TemplateValue::List{};
  return elements_of(budget, input);
}

// The arguments from place `begin` on, for the inner filter or test.
CallArguments rest_of(const CallArguments& arguments, size_t begin) {
  CallArguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(begin));
  return rest;
}

Result<TemplateValue> map_attribute(Budget& budget, const TemplateValue& input,
                                    const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"attribute", "default"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::from(bound[0]));
  TROUPE_ASSIGN_OR_RETURN(TemplateValue::List list, elements_or_nothing(budget, input));
  for (TemplateValue& element : list) {
    TROUPE_ASSIGN_OR_RETURN(element, path.get(budget, element, bound[1]));
  }
  return make_list(budget, std::move(list));
}

Result<TemplateValue> map_filter(Budget& budget, const TemplateValue& input,
                                 const CallArguments& arguments) {
  if (arguments.positional.empty()) return map_attribute(budget, input, arguments);
  TROUPE_ASSIGN_OR_RETURN(const TemplateText* name, text_argument(arguments.positional[0]));
  const FilterFunction filter = find_filter(name->bytes());
  if (filter == nullptr) {
    return Status(StatusCode::kUnsupported,
                  "the filter " + quoted(name->bytes()) + " is not supported");
  }
  // map('map', 'map', …) recurses through here, once per argument.
  if (arguments.positional.size() > kMapArgumentsMax) {
    return invalid_argument("takes at most " + std::to_string(kMapArgumentsMax) + " arguments");
  }
  const CallArguments rest = rest_of(arguments, 1);
  TROUPE_ASSIGN_OR_RETURN(TemplateValue::List list, elements_or_nothing(budget, input));
  for (TemplateValue& element : list) {
    TROUPE_RETURN_IF_ERROR(budget.steps(1));
    TROUPE_ASSIGN_OR_RETURN(element, filter(budget, element, rest));
  }
  return make_list(budget, std::move(list));
}

enum class Keep : bool { kFailing, kPassing };

Result<TemplateValue> filter_by_test(Budget& budget, const TemplateValue& input,
                                     const AttributePath& path, const CallArguments& arguments,
                                     size_t test_place, Keep keep) {
  TestFunction test = nullptr;
  CallArguments rest;
  if (arguments.positional.size() > test_place) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* name,
                            text_argument(arguments.positional[test_place]));
    test = find_test(name->bytes());
    if (test == nullptr) {
      return Status(StatusCode::kUnsupported,
                    "the test " + quoted(name->bytes()) + " is not supported");
    }
    rest = rest_of(arguments, test_place + 1);
  } else if (!arguments.named.empty()) {
    return invalid_argument("needs the name of a test before named arguments");
  }
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List list, elements_or_nothing(budget, input));
  TemplateValue::List kept;
  for (const TemplateValue& element : list) {
    TROUPE_RETURN_IF_ERROR(budget.steps(1));
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue part, path.get(budget, element));
    bool passes = part.truthy();
    if (test != nullptr) {
      TROUPE_ASSIGN_OR_RETURN(passes, test(budget, part, rest));
    }
    if (passes == (keep == Keep::kPassing)) kept.push_back(element);
  }
  return make_list(budget, std::move(kept));
}

template <Keep keep>
Result<TemplateValue> select_filter(Budget& budget, const TemplateValue& input,
                                    const CallArguments& arguments) {
  return filter_by_test(budget, input, AttributePath(), arguments, 0, keep);
}

template <Keep keep>
Result<TemplateValue> selectattr_filter(Budget& budget, const TemplateValue& input,
                                        const CallArguments& arguments) {
  if (arguments.positional.empty()) return invalid_argument("needs the name of an attribute");
  TROUPE_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::from(&arguments.positional[0]));
  return filter_by_test(budget, input, path, arguments, 1, keep);
}

}  // namespace

std::span<const NamedFilter> selection_filters() {
  static constexpr std::array<NamedFilter, 5> kFilters = {{
      {"map", map_filter},
      {"reject", select_filter<Keep::kFailing>},
      {"rejectattr", selectattr_filter<Keep::kFailing>},
      {"select", select_filter<Keep::kPassing>},
      {"selectattr", selectattr_filter<Keep::kPassing>},
  }};
  return kFilters;
}

}  // namespace troupe::chat_template
