#pragma once
// Visits a syntax tree from the outside in, in source order.

#include <functional>

#include "engine/chat_template/ast.h"

namespace troupe::chat_template {

// Either may be empty. The recursion is that of the tree, which limits.nesting_max bounds.
struct AstVisitor {
  std::function<void(const Statement&)> on_statement;
  std::function<void(const Expr&)> on_expr;
};

void walk(const Body& body, const AstVisitor& visitor);
void walk(const Expr& expr, const AstVisitor& visitor);

}  // namespace troupe::chat_template
