#pragma once
// The objects that live for one render: scopes, namespaces, macros and loops. The Renderer owns all
// of them until its end, so values may point to them freely, in cycles too.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat_template/ast.h"
#include "engine/chat_template/value.h"

namespace troupe::chat_template {

struct Scope {
  Scope* parent = nullptr;  // outlives this one; null for the outermost
  // The names stand in the syntax tree or are literals.
  std::vector<std::pair<std::string_view, TemplateValue>> variables;
  bool is_captured = false;  // a macro refers to it, so it stays until the end of the render

  [[nodiscard]] const TemplateValue* find(std::string_view name) const;
  // The same, to be changed; valid until the next assignment in its scope.
  [[nodiscard]] TemplateValue* find_place(std::string_view name);
  void assign(std::string_view name, TemplateValue value);
};

struct Namespace {
  std::vector<std::pair<std::string, TemplateValue>> attributes;

  [[nodiscard]] const TemplateValue* find(std::string_view name) const;
  [[nodiscard]] TemplateValue* find_place(std::string_view name);
  void assign(std::string_view name, TemplateValue value);
};

struct Macro {
  const MacroDefinition* definition;
  Scope* scope;  // where it was defined: its free names are looked up there
};

// What `loop` means inside a for statement.
struct LoopState {
  TemplateValue::List items;
  size_t index = 0;
  TemplateValue::List last_changed;  // the arguments of the latest loop.changed()
  bool has_changed_before = false;

  // loop.name; undefined for a name that it does not have.
  [[nodiscard]] TemplateValue attribute(std::string_view name) const;
};

}  // namespace troupe::chat_template
