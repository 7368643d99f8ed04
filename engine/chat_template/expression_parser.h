#pragma once
// Parses the expressions of templates, with jinja2's precedences.

#include "engine/chat_template/ast.h"
#include "engine/chat_template/parse_state.h"
#include "troupe/status.h"

namespace troupe::chat_template {

class ExpressionParser {
 public:
  // `state` outlives the parser.
  explicit ExpressionParser(ParseState& state) : state_(state) {}

  // expression, or with top-level commas a tuple. Without conditionals "a if b" ends before the
  // "if", as the clauses of statements need it.
  enum class Conditionals : bool { kForbidden, kAllowed };
  Result<ExprPtr> parse_tuple(Conditionals conditionals);
  Result<ExprPtr> parse_expression();
  // name(arguments) | … of a {% filter %} block, or | … of a {% set %} block, around BlockText.
  Result<ExprPtr> parse_block_filters();

 private:
  using Parsed = Result<ExprPtr>;

  Parsed make(int line, ExprNode node, uint32_t operand_depth);
  Parsed parse_conditional();
  Parsed parse_or();
  Parsed parse_and();
  Parsed parse_not();
  Parsed parse_comparison();
  Parsed parse_sum();
  Parsed parse_concatenation();
  Parsed parse_product();
  Parsed parse_power();
  enum class Filters : bool { kForbidden, kAllowed };
  Parsed parse_unary(Filters filters);
  Parsed parse_primary();
  Parsed parse_name();
  Parsed parse_string();
  Parsed parse_parentheses();
  Parsed parse_list();
  Parsed parse_dict();
  Parsed parse_postfix(ExprPtr node);
  Parsed parse_filters_and_tests(ExprPtr node);
  Parsed parse_filter(ExprPtr input);  // the current token is the filter's name
  Parsed parse_test(ExprPtr input);
  Parsed parse_attribute(ExprPtr object);
  Parsed parse_subscript(ExprPtr object);
  Parsed parse_call(ExprPtr callee);
  // `depth`: of the deepest operand.
  Parsed parse_method_call(Attribute& callee, Arguments arguments, int line, uint32_t depth);
  Status parse_arguments(Arguments& arguments, uint32_t& depth);
  Result<std::string> parse_dotted_name(std::string_view what);

  ParseState& state_;
};

}  // namespace troupe::chat_template
