#include "engine/chat_template/runtime.h"

#include "base/assert.h"

namespace troupe::chat_template {
namespace {

template <class Entries>
auto find_entry(Entries& entries, std::string_view name) -> decltype(&entries.front().second) {
  for (auto& [key, value] : entries) {
    if (key == name) return &value;
  }
  return nullptr;
}

template <class Entries>
void assign_entry(Entries& entries, std::string_view name, TemplateValue value) {
  if (TemplateValue* slot = find_entry(entries, name)) {
    *slot = std::move(value);
  } else {
    entries.emplace_back(name, std::move(value));
  }
}

}  // namespace

const TemplateValue* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
    if (const TemplateValue* value = find_entry(scope->variables, name)) return value;
  }
  return nullptr;
}

TemplateValue* Scope::find_place(std::string_view name) {
  for (Scope* scope = this; scope != nullptr; scope = scope->parent) {
    if (TemplateValue* value = find_entry(scope->variables, name)) return value;
  }
  return nullptr;
}

void Scope::assign(std::string_view name, TemplateValue value) {
  assign_entry(variables, name, std::move(value));
}

const TemplateValue* Namespace::find(std::string_view name) const {
  return find_entry(attributes, name);
}

TemplateValue* Namespace::find_place(std::string_view name) {
  return find_entry(attributes, name);
}

void Namespace::assign(std::string_view name, TemplateValue value) {
  assign_entry(attributes, name, std::move(value));
}

TemplateValue LoopState::attribute(std::string_view name) const {
  TROUPE_ASSERT(index < items.size(), index, items.size());
  const auto at = static_cast<int64_t>(index);
  const auto length = static_cast<int64_t>(items.size());
  if (name == "index") return TemplateValue::integer(at + 1);
  if (name == "index0") return TemplateValue::integer(at);
  if (name == "revindex") return TemplateValue::integer(length - at);
  if (name == "revindex0") return TemplateValue::integer(length - at - 1);
  if (name == "first") return TemplateValue::boolean(at == 0);
  if (name == "last") return TemplateValue::boolean(at + 1 == length);
  if (name == "length") return TemplateValue::integer(length);
  if (name == "depth") return TemplateValue::integer(1);  // loops are never recursive
  if (name == "depth0") return TemplateValue::integer(0);
  if (name == "previtem" && index > 0) return items[index - 1];
  if (name == "nextitem" && index + 1 < items.size()) return items[index + 1];
  return {};
}

}  // namespace troupe::chat_template
