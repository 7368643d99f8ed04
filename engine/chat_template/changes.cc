#include "engine/chat_template/changes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/chat_template/arguments.h"
#include "engine/chat_template/operators.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;
using Method = Result<Change> (*)(Budget&, const TemplateValue&, const CallArguments&);

struct NamedMethod {
  std::string_view name;
  Method method;
};

Result<Change> changed_list(Budget& budget, TemplateValue::List list,
                            TemplateValue result = TemplateValue::none()) {
  TROUPE_ASSIGN_OR_RETURN(TemplateValue changed, make_list(budget, std::move(list)));
  return Change{std::move(changed), std::move(result)};
}

Result<Change> changed_dict(Budget& budget, TemplateValue::Dict entries,
                            TemplateValue result = TemplateValue::none()) {
  TROUPE_ASSIGN_OR_RETURN(TemplateValue changed, make_dict(budget, std::move(entries)));
  return Change{std::move(changed), std::move(result)};
}

// ---- list

Result<Change> append_method(Budget& budget, const TemplateValue& object,
                             const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"object"}, 1));
  TemplateValue::List list = object.as_list();
  list.push_back(*bound[0]);
  return changed_list(budget, std::move(list));
}

Result<Change> extend_method(Budget& budget, const TemplateValue& object,
                             const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"iterable"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue::List more, elements_of(budget, *bound[0]));
  TemplateValue::List list = object.as_list();
  list.insert(list.end(), more.begin(), more.end());
  return changed_list(budget, std::move(list));
}

Result<Change> insert_method(Budget& budget, const TemplateValue& object,
                             const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"index", "object"}, 2));
  TROUPE_ASSIGN_OR_RETURN(int64_t at, int_argument(bound[0], 0));
  TemplateValue::List list = object.as_list();
  const auto size = static_cast<int64_t>(list.size());
  if (at < 0) at = std::max<int64_t>(0, at + size);
  list.insert(list.begin() + std::min(at, size), *bound[1]);
  return changed_list(budget, std::move(list));
}

Result<Change> pop_from_list(Budget& budget, const TemplateValue& object,
                             const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"index"}, 0));
  TROUPE_ASSIGN_OR_RETURN(int64_t at, int_argument(bound[0], -1));
  TemplateValue::List list = object.as_list();
  const auto size = static_cast<int64_t>(list.size());
  if (at < 0) at += size;
  if (at < 0 || at >= size) return invalid_argument("has no such element to take out");
  TemplateValue taken = list[static_cast<size_t>(at)];
  list.erase(list.begin() + at);
  return changed_list(budget, std::move(list), std::move(taken));
}

Result<Change> remove_method(Budget& budget, const TemplateValue& object,
                             const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"value"}, 1));
  TemplateValue::List list = object.as_list();
  for (auto element = list.begin(); element != list.end(); ++element) {
    TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, *element, *bound[0]));
    if (!is_equal) continue;
    list.erase(element);
    return changed_list(budget, std::move(list));
  }
  return invalid_argument("does not find the value in the list");
}

Result<Change> reverse_method(Budget& budget, const TemplateValue& object,
                              const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TemplateValue::List list = object.as_list();
  std::ranges::reverse(list);
  return changed_list(budget, std::move(list));
}

Result<Change> clear_list(Budget& budget, const TemplateValue&, const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  return changed_list(budget, {});
}

constexpr std::array<NamedMethod, 7> kListMethods = {{
    {"append", append_method},
    {"clear", clear_list},
    {"extend", extend_method},
    {"insert", insert_method},
    {"pop", pop_from_list},
    {"remove", remove_method},
    {"reverse", reverse_method},
}};

// ---- dict

Result<Change> update_method(Budget& budget, const TemplateValue& object,
                             const CallArguments& arguments) {
  if (arguments.positional.size() > 1) return invalid_argument("takes one dict and names");
  TemplateValue::Dict entries = object.as_dict();
  for (const TemplateValue& other : arguments.positional) {
    if (!other.is(Kind::kDict)) {
      return invalid_argument("needs a dict, not '" + std::string(other.type_name()) + "'");
    }
    entries.insert(entries.end(), other.as_dict().begin(), other.as_dict().end());
  }
  for (const auto& [name, value] : arguments.named) {
    entries.emplace_back(TemplateValue::markup(name), value);
  }
  return changed_dict(budget, std::move(entries));
}

Result<Change> setdefault_method(Budget& budget, const TemplateValue& object,
                                 const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"key", "default"}, 1));
  TROUPE_ASSIGN_OR_RETURN(const bool has_key, contains(budget, object, *bound[0]));
  if (has_key) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue value, get_item(budget, object, *bound[0]));
    return Change{object, std::move(value)};
  }
  TemplateValue::Dict entries = object.as_dict();
  TemplateValue value = bound[1] == nullptr ? TemplateValue::none() : *bound[1];
  entries.emplace_back(*bound[0], value);
  return changed_dict(budget, std::move(entries), std::move(value));
}

Result<Change> pop_from_dict(Budget& budget, const TemplateValue& object,
                             const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"key", "default"}, 1));
  TemplateValue::Dict entries = object.as_dict();
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, entry->first, *bound[0]));
    if (!is_equal) continue;
    TemplateValue taken = entry->second;
    entries.erase(entry);
    return changed_dict(budget, std::move(entries), std::move(taken));
  }
  if (bound[1] == nullptr) return invalid_argument("does not find the key in the dict");
  return Change{object, *bound[1]};
}

Result<Change> clear_dict(Budget& budget, const TemplateValue&, const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  return changed_dict(budget, {});
}

constexpr std::array<NamedMethod, 4> kDictMethods = {{
    {"clear", clear_dict},
    {"pop", pop_from_dict},
    {"setdefault", setdefault_method},
    {"update", update_method},
}};

template <size_t N>
Method find_in(const std::array<NamedMethod, N>& table, std::string_view name) {
  for (const NamedMethod& method : table) {
    if (method.name == name) return method.method;
  }
  return nullptr;
}

}  // namespace

bool is_changing_method(std::string_view name) {
  return find_in(kListMethods, name) != nullptr || find_in(kDictMethods, name) != nullptr;
}

Result<Change> apply_change(Budget& budget, const TemplateValue& object, std::string_view name,
                            const CallArguments& arguments) {
  Method method = nullptr;
  if (object.is(Kind::kList)) method = find_in(kListMethods, name);
  if (object.is(Kind::kDict)) method = find_in(kDictMethods, name);
  if (method == nullptr) {
    return invalid_argument("does not exist for '" + std::string(object.type_name()) + "'");
  }
  return method(budget, object, arguments);
}

}  // namespace troupe::chat_template
