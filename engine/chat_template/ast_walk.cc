#include "engine/chat_template/ast_walk.h"

namespace troupe::chat_template {
namespace {

class Walker {
 public:
  explicit Walker(const AstVisitor& visitor) : visitor_(visitor) {}

  void body(const Body& statements) {
    for (const auto& statement : statements) {
      if (visitor_.on_statement) visitor_.on_statement(*statement);
      std::visit([this](const auto& node) { inside(node); }, statement->node);
    }
  }

  void expr(const Expr& expr) {
    if (visitor_.on_expr) visitor_.on_expr(expr);
    std::visit([this](const auto& node) { inside(node); }, expr.node);
  }

 private:
  void optional(const ExprPtr& pointer) {
    if (pointer) expr(*pointer);
  }
  void arguments(const Arguments& arguments) {
    for (const ExprPtr& value : arguments.positional) expr(*value);
    for (const auto& [name, value] : arguments.named) expr(*value);
    optional(arguments.unpacked_list);
    optional(arguments.unpacked_dict);
  }
  void macro(const MacroDefinition& definition) {
    for (const Parameter& parameter : definition.parameters) optional(parameter.fallback);
    body(definition.body);
  }

  void inside(const Literal&) {}
  void inside(const Variable&) {}
  void inside(const BlockText&) {}
  void inside(const Attribute& node) { expr(*node.object); }
  void inside(const Subscript& node) {
    expr(*node.object);
    expr(*node.index);
  }
  void inside(const Slice& node) {
    expr(*node.object);
    optional(node.start);
    optional(node.stop);
    optional(node.step);
  }
  void inside(const FunctionCall& node) { arguments(node.arguments); }
  void inside(const MethodCall& node) {
    expr(*node.object);
    arguments(node.arguments);
  }
  void inside(const ValueCall& node) {
    expr(*node.callee);
    arguments(node.arguments);
  }
  void inside(const ChangeCall& node) { arguments(node.arguments); }
  void inside(const FilterCall& node) {
    expr(*node.input);
    arguments(node.arguments);
  }
  void inside(const TestCall& node) {
    expr(*node.input);
    arguments(node.arguments);
  }
  void inside(const Unary& node) { expr(*node.operand); }
  void inside(const Binary& node) {
    expr(*node.left);
    expr(*node.right);
  }
  void inside(const Logical& node) {
    expr(*node.left);
    expr(*node.right);
  }
  void inside(const Comparison& node) {
    expr(*node.first);
    for (const auto& [op, operand] : node.rest) expr(*operand);
  }
  void inside(const Concatenation& node) {
    for (const ExprPtr& part : node.parts) expr(*part);
  }
  void inside(const Conditional& node) {
    expr(*node.test);
    expr(*node.then);
    optional(node.otherwise);
  }
  void inside(const ListDisplay& node) {
    for (const ExprPtr& element : node.elements) expr(*element);
  }
  void inside(const DictDisplay& node) {
    for (const auto& [key, value] : node.entries) {
      expr(*key);
      expr(*value);
    }
  }

  void inside(const TextOutput&) {}
  void inside(const Print& node) {
    for (const ExprPtr& value : node.values) expr(*value);
  }
  void inside(const If& node) {
    for (const auto& [test, branch] : node.branches) {
      expr(*test);
      body(branch);
    }
    body(node.otherwise);
  }
  void inside(const For& node) {
    expr(*node.iterable);
    optional(node.condition);
    body(node.body);
    body(node.otherwise);
  }
  void inside(const Set& node) { expr(*node.value); }
  void inside(const SetBlock& node) {
    optional(node.filters);
    body(node.body);
  }
  void inside(const FilterBlock& node) {
    optional(node.filters);
    body(node.body);
  }
  void inside(const MacroDefinition& node) { macro(node); }
  void inside(const CallBlock& node) {
    expr(*node.call);
    macro(node.caller);
  }
  void inside(const With& node) {
    for (const auto& [target, value] : node.variables) expr(*value);
    body(node.body);
  }
  void inside(const Group& node) { body(node.body); }
  void inside(const Break&) {}
  void inside(const Continue&) {}

  const AstVisitor& visitor_;
};

}  // namespace

void walk(const Body& body, const AstVisitor& visitor) {
  Walker(visitor).body(body);
}

void walk(const Expr& expr, const AstVisitor& visitor) {
  Walker(visitor).expr(expr);
}

}  // namespace troupe::chat_template
