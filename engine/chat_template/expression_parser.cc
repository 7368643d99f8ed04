#include "engine/chat_template/expression_parser.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/assert.h"
#include "engine/chat_template/changes.h"
#include "engine/chat_template/errors.h"

namespace troupe::chat_template {
namespace {

uint32_t depth_of(const ExprPtr& node) {
  return node ? node->depth : 0;
}

std::optional<CompareOperator> compare_operator(const Token& token) {
  static constexpr std::array<std::pair<std::string_view, CompareOperator>, 6> kOperators = {{
      {"==", CompareOperator::kEqual},
      {"!=", CompareOperator::kNotEqual},
      {"<", CompareOperator::kLess},
      {"<=", CompareOperator::kLessEqual},
      {">", CompareOperator::kGreater},
      {">=", CompareOperator::kGreaterEqual},
  }};
  for (const auto& [sign, op] : kOperators) {
    if (token.is_operator(sign)) return op;
  }
  return std::nullopt;
}

std::optional<BinaryOperator> product_operator(const Token& token) {
  if (token.is_operator("*")) return BinaryOperator::kMultiply;
  if (token.is_operator("/")) return BinaryOperator::kDivide;
  if (token.is_operator("//")) return BinaryOperator::kFloorDivide;
  if (token.is_operator("%")) return BinaryOperator::kModulo;
  return std::nullopt;
}

// map('upper') and select('odd') name a filter or test in a string: that is checked like a direct
// use.
Status check_named_builtin(const std::string& filter, const Arguments& arguments, int line) {
  const bool is_map = filter == "map";
  const bool is_select = filter == "select" || filter == "reject";
  const bool is_selectattr = filter == "selectattr" || filter == "rejectattr";
  const size_t place = is_selectattr ? 1 : 0;
  if ((!is_map && !is_select && !is_selectattr) || arguments.positional.size() <= place) {
    return ok_status();
  }
  const auto* literal = std::get_if<Literal>(&arguments.positional[place]->node);
  if (literal == nullptr || !literal->value.is(TemplateValue::Kind::kText)) return ok_status();
  const std::string& name = literal->value.as_text().bytes();
  if (is_map) {
    return find_filter(name) ? ok_status() : unsupported(line, "the filter " + quoted(name));
  }
  return find_test(name) ? ok_status() : unsupported(line, "the test " + quoted(name));
}

}  // namespace

Result<ExprPtr> ExpressionParser::make(int line, ExprNode node, uint32_t operand_depth) {
  TROUPE_RETURN_IF_ERROR(state_.check_depth(operand_depth + 1, line));
  return ExprPtr(std::make_unique<Expr>(Expr{std::move(node), line, operand_depth + 1}));
}

Result<ExprPtr> ExpressionParser::parse_expression() {
  const ParseState::Level level(state_);
  TROUPE_RETURN_IF_ERROR(level.check());
  return parse_conditional();
}

Result<ExprPtr> ExpressionParser::parse_tuple(Conditionals conditionals) {
  const int line = state_.line();
  const auto is_end = [this] {
    const Token& token = state_.current();
    return token.kind == TokenKind::kPrintEnd || token.kind == TokenKind::kBlockEnd ||
           token.is_operator(")") || token.is_name("recursive");
  };
  ListDisplay tuple{{}, true};
  uint32_t depth = 0;
  bool has_comma = false;
  do {
    if (!tuple.elements.empty() && is_end()) break;  // a comma may close the tuple
    const ParseState::Level level(state_);
    TROUPE_RETURN_IF_ERROR(level.check());
    TROUPE_ASSIGN_OR_RETURN(
        ExprPtr element, conditionals == Conditionals::kAllowed ? parse_conditional() : parse_or());
    depth = std::max(depth, element->depth);
    tuple.elements.push_back(std::move(element));
    if (state_.current().is_operator(",")) has_comma = true;
  } while (state_.skip_operator(","));
  if (!has_comma) return std::move(tuple.elements.front());
  return make(line, std::move(tuple), depth);
}

Result<ExprPtr> ExpressionParser::parse_block_filters() {
  TROUPE_ASSIGN_OR_RETURN(ExprPtr node, make(state_.line(), BlockText{}, 0));
  if (state_.current().kind == TokenKind::kName) {
    TROUPE_ASSIGN_OR_RETURN(node, parse_filter(std::move(node)));
  }
  while (state_.skip_operator("|")) {
    TROUPE_ASSIGN_OR_RETURN(node, parse_filter(std::move(node)));
  }
  return node;
}

Result<ExprPtr> ExpressionParser::parse_conditional() {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(ExprPtr node, parse_or());
  while (state_.skip_name("if")) {
    TROUPE_ASSIGN_OR_RETURN(ExprPtr test, parse_or());
    ExprPtr otherwise;
    if (state_.skip_name("else")) {
      const ParseState::Level level(state_);
      TROUPE_RETURN_IF_ERROR(level.check());
      TROUPE_ASSIGN_OR_RETURN(otherwise, parse_conditional());
    }
    const uint32_t depth = std::max({test->depth, node->depth, depth_of(otherwise)});
    TROUPE_ASSIGN_OR_RETURN(
        node,
        make(line, Conditional{std::move(test), std::move(node), std::move(otherwise)}, depth));
  }
  return node;
}

Result<ExprPtr> ExpressionParser::parse_or() {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(ExprPtr left, parse_and());
  while (state_.skip_name("or")) {
    TROUPE_ASSIGN_OR_RETURN(ExprPtr right, parse_and());
    const uint32_t depth = std::max(left->depth, right->depth);
    TROUPE_ASSIGN_OR_RETURN(
        left, make(line, Logical{LogicalOperator::kOr, std::move(left), std::move(right)}, depth));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_and() {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(ExprPtr left, parse_not());
  while (state_.skip_name("and")) {
    TROUPE_ASSIGN_OR_RETURN(ExprPtr right, parse_not());
    const uint32_t depth = std::max(left->depth, right->depth);
    TROUPE_ASSIGN_OR_RETURN(
        left, make(line, Logical{LogicalOperator::kAnd, std::move(left), std::move(right)}, depth));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_not() {
  const int line = state_.line();
  if (!state_.skip_name("not")) return parse_comparison();
  const ParseState::Level level(state_);
  TROUPE_RETURN_IF_ERROR(level.check());
  TROUPE_ASSIGN_OR_RETURN(ExprPtr operand, parse_not());
  const uint32_t depth = operand->depth;
  return make(line, Unary{UnaryOperator::kNot, std::move(operand)}, depth);
}

Result<ExprPtr> ExpressionParser::parse_comparison() {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(ExprPtr first, parse_sum());
  Comparison comparison;
  uint32_t depth = first->depth;
  while (true) {
    std::optional<CompareOperator> op = compare_operator(state_.current());
    if (op) {
      state_.take();
    } else if (state_.skip_name("in")) {
      op = CompareOperator::kIn;
    } else if (state_.current().is_name("not") && state_.next().is_name("in")) {
      state_.take();
      state_.take();
      op = CompareOperator::kNotIn;
    } else {
      break;
    }
    TROUPE_ASSIGN_OR_RETURN(ExprPtr operand, parse_sum());
    depth = std::max(depth, operand->depth);
    comparison.rest.emplace_back(*op, std::move(operand));
  }
  if (comparison.rest.empty()) return first;
  comparison.first = std::move(first);
  return make(line, std::move(comparison), depth);
}

Result<ExprPtr> ExpressionParser::parse_sum() {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(ExprPtr left, parse_concatenation());
  while (state_.current().is_operator("+") || state_.current().is_operator("-")) {
    const auto op = state_.take().text == "+" ? BinaryOperator::kAdd : BinaryOperator::kSubtract;
    TROUPE_ASSIGN_OR_RETURN(ExprPtr right, parse_concatenation());
    const uint32_t depth = std::max(left->depth, right->depth);
    TROUPE_ASSIGN_OR_RETURN(left, make(line, Binary{op, std::move(left), std::move(right)}, depth));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_concatenation() {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(ExprPtr first, parse_product());
  if (!state_.current().is_operator("~")) return first;
  uint32_t depth = first->depth;
  Concatenation concatenation;
  concatenation.parts.push_back(std::move(first));
  while (state_.skip_operator("~")) {
    TROUPE_ASSIGN_OR_RETURN(ExprPtr part, parse_product());
    depth = std::max(depth, part->depth);
    concatenation.parts.push_back(std::move(part));
  }
  return make(line, std::move(concatenation), depth);
}

Result<ExprPtr> ExpressionParser::parse_product() {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(ExprPtr left, parse_power());
  while (const std::optional<BinaryOperator> op = product_operator(state_.current())) {
    state_.take();
    TROUPE_ASSIGN_OR_RETURN(ExprPtr right, parse_power());
    const uint32_t depth = std::max(left->depth, right->depth);
    TROUPE_ASSIGN_OR_RETURN(left,
                            make(line, Binary{*op, std::move(left), std::move(right)}, depth));
  }
  return left;
}

// Unlike Python's, jinja2's power associates to the left and binds looser than a sign.
Result<ExprPtr> ExpressionParser::parse_power() {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(ExprPtr left, parse_unary(Filters::kAllowed));
  while (state_.skip_operator("**")) {
    TROUPE_ASSIGN_OR_RETURN(ExprPtr right, parse_unary(Filters::kAllowed));
    const uint32_t depth = std::max(left->depth, right->depth);
    TROUPE_ASSIGN_OR_RETURN(
        left, make(line, Binary{BinaryOperator::kPower, std::move(left), std::move(right)}, depth));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_unary(Filters filters) {
  const int line = state_.line();
  ExprPtr node;
  if (state_.current().is_operator("-") || state_.current().is_operator("+")) {
    const auto op = state_.take().text == "-" ? UnaryOperator::kNegate : UnaryOperator::kPlus;
    const ParseState::Level level(state_);
    TROUPE_RETURN_IF_ERROR(level.check());
    TROUPE_ASSIGN_OR_RETURN(ExprPtr operand, parse_unary(Filters::kForbidden));
    const uint32_t depth = operand->depth;
    TROUPE_ASSIGN_OR_RETURN(node, make(line, Unary{op, std::move(operand)}, depth));
  } else {
    TROUPE_ASSIGN_OR_RETURN(node, parse_primary());
  }
  TROUPE_ASSIGN_OR_RETURN(node, parse_postfix(std::move(node)));
  if (filters == Filters::kForbidden) return node;
  return parse_filters_and_tests(std::move(node));
}

Result<ExprPtr> ExpressionParser::parse_primary() {
  const Token& token = state_.current();
  switch (token.kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kString:
      return parse_string();
    case TokenKind::kInteger:
      state_.take();
      return make(token.line, Literal{TemplateValue::integer(token.integer)}, 0);
    case TokenKind::kFloat:
      state_.take();
      return make(token.line, Literal{TemplateValue::number(token.number)}, 0);
    default:
      break;
  }
  if (token.is_operator("(")) return parse_parentheses();
  if (token.is_operator("[")) return parse_list();
  if (token.is_operator("{")) return parse_dict();
  return state_.unexpected("an expression");
}

Result<ExprPtr> ExpressionParser::parse_name() {
  const Token& token = state_.take();
  if (token.text == "true" || token.text == "True") {
    return make(token.line, Literal{TemplateValue::boolean(true)}, 0);
  }
  if (token.text == "false" || token.text == "False") {
    return make(token.line, Literal{TemplateValue::boolean(false)}, 0);
  }
  if (token.text == "none" || token.text == "None") {
    return make(token.line, Literal{TemplateValue::none()}, 0);
  }
  state_.mention(token.text);
  return make(token.line, Variable{token.text}, 0);
}

Result<ExprPtr> ExpressionParser::parse_string() {
  const int line = state_.line();
  std::string text;  // neighbouring strings are one
  while (state_.current().kind == TokenKind::kString) text += state_.take().text;
  return make(line, Literal{TemplateValue::markup(std::move(text))}, 0);
}

Result<ExprPtr> ExpressionParser::parse_parentheses() {
  const int line = state_.line();
  state_.take();
  if (state_.skip_operator(")")) return make(line, ListDisplay{{}, true}, 0);
  TROUPE_ASSIGN_OR_RETURN(ExprPtr node, parse_tuple(Conditionals::kAllowed));
  TROUPE_RETURN_IF_ERROR(state_.expect_operator(")"));
  return node;
}

Result<ExprPtr> ExpressionParser::parse_list() {
  const int line = state_.line();
  state_.take();
  ListDisplay list{{}, false};
  uint32_t depth = 0;
  while (!state_.current().is_operator("]")) {
    if (!list.elements.empty()) TROUPE_RETURN_IF_ERROR(state_.expect_operator(","));
    if (state_.current().is_operator("]")) break;
    TROUPE_ASSIGN_OR_RETURN(ExprPtr element, parse_expression());
    depth = std::max(depth, element->depth);
    list.elements.push_back(std::move(element));
  }
  TROUPE_RETURN_IF_ERROR(state_.expect_operator("]"));
  return make(line, std::move(list), depth);
}

Result<ExprPtr> ExpressionParser::parse_dict() {
  const int line = state_.line();
  state_.take();
  DictDisplay dict;
  uint32_t depth = 0;
  while (!state_.current().is_operator("}")) {
    if (!dict.entries.empty()) TROUPE_RETURN_IF_ERROR(state_.expect_operator(","));
    if (state_.current().is_operator("}")) break;
    TROUPE_ASSIGN_OR_RETURN(ExprPtr key, parse_expression());
    TROUPE_RETURN_IF_ERROR(state_.expect_operator(":"));
    TROUPE_ASSIGN_OR_RETURN(ExprPtr value, parse_expression());
    depth = std::max({depth, key->depth, value->depth});
    dict.entries.emplace_back(std::move(key), std::move(value));
  }
  TROUPE_RETURN_IF_ERROR(state_.expect_operator("}"));
  return make(line, std::move(dict), depth);
}

Result<ExprPtr> ExpressionParser::parse_postfix(ExprPtr node) {
  while (true) {
    if (state_.current().is_operator(".")) {
      TROUPE_ASSIGN_OR_RETURN(node, parse_attribute(std::move(node)));
    } else if (state_.current().is_operator("[")) {
      TROUPE_ASSIGN_OR_RETURN(node, parse_subscript(std::move(node)));
    } else if (state_.current().is_operator("(")) {
      TROUPE_ASSIGN_OR_RETURN(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_filters_and_tests(ExprPtr node) {
  while (true) {
    if (state_.skip_operator("|")) {
      TROUPE_ASSIGN_OR_RETURN(node, parse_filter(std::move(node)));
    } else if (state_.skip_name("is")) {
      TROUPE_ASSIGN_OR_RETURN(node, parse_test(std::move(node)));
    } else if (state_.current().is_operator("(")) {
      TROUPE_ASSIGN_OR_RETURN(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<std::string> ExpressionParser::parse_dotted_name(std::string_view what) {
  TROUPE_ASSIGN_OR_RETURN(std::string name, state_.expect_identifier(what));
  while (state_.skip_operator(".")) {
    TROUPE_ASSIGN_OR_RETURN(const std::string part, state_.expect_identifier(what));
    name += "." + part;
  }
  return name;
}

Result<ExprPtr> ExpressionParser::parse_filter(ExprPtr input) {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(const std::string name, parse_dotted_name("the name of a filter"));
  const FilterFunction filter = find_filter(name);
  if (filter == nullptr) return unsupported(line, "the filter " + quoted(name));
  FilterCall call{std::move(input), name, filter, {}};
  uint32_t depth = call.input->depth;
  if (state_.current().is_operator("(")) {
    TROUPE_RETURN_IF_ERROR(parse_arguments(call.arguments, depth));
  }
  TROUPE_RETURN_IF_ERROR(check_named_builtin(name, call.arguments, line));
  return make(line, std::move(call), depth);
}

Result<ExprPtr> ExpressionParser::parse_test(ExprPtr input) {
  const int line = state_.line();
  const bool is_negated = state_.skip_name("not");
  TROUPE_ASSIGN_OR_RETURN(const std::string name, parse_dotted_name("the name of a test"));
  const TestFunction test = find_test(name);
  if (test == nullptr) return unsupported(line, "the test " + quoted(name));
  TestCall call{std::move(input), name, test, is_negated, {}};
  uint32_t depth = call.input->depth;
  const Token& token = state_.current();
  // An argument may follow without parentheses; the words that may follow a test are none.
  const bool is_argument = token.kind == TokenKind::kString || token.kind == TokenKind::kInteger ||
                           token.kind == TokenKind::kFloat || token.is_operator("[") ||
                           token.is_operator("{") ||
                           (token.kind == TokenKind::kName && !token.is_name("else") &&
                            !token.is_name("or") && !token.is_name("and"));
  if (token.is_operator("(")) {
    TROUPE_RETURN_IF_ERROR(parse_arguments(call.arguments, depth));
  } else if (token.is_name("is")) {
    return syntax_error(line, "tests cannot be chained with 'is'; join them with 'and'");
  } else if (is_argument) {
    const ParseState::Level level(state_);
    TROUPE_RETURN_IF_ERROR(level.check());
    TROUPE_ASSIGN_OR_RETURN(ExprPtr argument, parse_primary());
    TROUPE_ASSIGN_OR_RETURN(argument, parse_postfix(std::move(argument)));
    depth = std::max(depth, argument->depth);
    call.arguments.positional.push_back(std::move(argument));
  }
  return make(line, std::move(call), depth);
}

Result<ExprPtr> ExpressionParser::parse_attribute(ExprPtr object) {
  const int line = state_.take().line;
  const uint32_t depth = object->depth;
  const Token& token = state_.current();
  if (token.kind == TokenKind::kName) {
    state_.take();
    return make(line, Attribute{std::move(object), token.text}, depth);
  }
  if (token.kind != TokenKind::kInteger) return state_.unexpected("a name or a number after '.'");
  state_.take();
  TROUPE_ASSIGN_OR_RETURN(ExprPtr index,
                          make(line, Literal{TemplateValue::integer(token.integer)}, 0));
  return make(line, Subscript{std::move(object), std::move(index)}, depth);
}

Result<ExprPtr> ExpressionParser::parse_subscript(ExprPtr object) {
  const int line = state_.take().line;
  uint32_t depth = object->depth;
  std::array<ExprPtr, 3> parts;  // start, stop, step
  size_t part = 0;
  while (!state_.current().is_operator("]")) {
    if (state_.current().is_operator(":")) {
      state_.take();
      if (++part == parts.size()) return state_.unexpected("']'");
      continue;
    }
    if (parts[part]) return state_.unexpected("']'");
    TROUPE_ASSIGN_OR_RETURN(parts[part], parse_expression());
    depth = std::max(depth, parts[part]->depth);
    if (state_.current().is_operator(","))
      return unsupported(line, "a subscript of several values");
  }
  if (part == 0 && !parts[0]) return state_.unexpected("a subscript");
  TROUPE_RETURN_IF_ERROR(state_.expect_operator("]"));
  if (part == 0) return make(line, Subscript{std::move(object), std::move(parts[0])}, depth);
  return make(
      line, Slice{std::move(object), std::move(parts[0]), std::move(parts[1]), std::move(parts[2])},
      depth);
}

Result<ExprPtr> ExpressionParser::parse_call(ExprPtr callee) {
  const int line = state_.line();
  Arguments arguments;
  uint32_t depth = callee->depth;
  TROUPE_RETURN_IF_ERROR(parse_arguments(arguments, depth));
  if (const auto* variable = std::get_if<Variable>(&callee->node)) {
    if (variable->name == "loop") return unsupported(line, "a recursive loop");
    state_.call(variable->name, line);
    return make(line, FunctionCall{variable->name, std::move(arguments)}, depth);
  }
  if (auto* attribute = std::get_if<Attribute>(&callee->node)) {
    return parse_method_call(*attribute, std::move(arguments), line, depth);
  }
  return make(line, ValueCall{std::move(callee), std::move(arguments)}, depth);
}

Result<ExprPtr> ExpressionParser::parse_method_call(Attribute& callee, Arguments arguments,
                                                    int line, uint32_t depth) {
  const std::string& name = callee.name;
  if (is_mutating_method(name)) {
    const auto* variable = std::get_if<Variable>(&callee.object->node);
    const auto* attribute = std::get_if<Attribute>(&callee.object->node);
    const auto* owner =
        attribute == nullptr ? nullptr : std::get_if<Variable>(&attribute->object->node);
    if (!is_changing_method(name) || (variable == nullptr && owner == nullptr)) {
      return unsupported(line, "the method " + quoted(name) +
                                   " (it changes variables and attributes of a namespace only)");
    }
    return make(line,
                ChangeCall{variable != nullptr ? variable->name : owner->name,
                           variable != nullptr ? "" : attribute->name, name, std::move(arguments)},
                depth);
  }
  if (!is_method(name)) return unsupported(line, "the method " + quoted(name));
  return make(line, MethodCall{std::move(callee.object), name, std::move(arguments)}, depth);
}

Status ExpressionParser::parse_arguments(Arguments& arguments, uint32_t& depth) {
  TROUPE_RETURN_IF_ERROR(state_.expect_operator("("));
  bool is_first = true;
  while (!state_.current().is_operator(")")) {
    if (!is_first) TROUPE_RETURN_IF_ERROR(state_.expect_operator(","));
    is_first = false;
    const Token& token = state_.current();
    if (token.is_operator(")")) break;
    if (token.is_operator("*") || token.is_operator("**")) {
      const bool is_list = token.text == "*";
      ExprPtr& place = is_list ? arguments.unpacked_list : arguments.unpacked_dict;
      if (place != nullptr || arguments.unpacked_dict != nullptr) {
        return syntax_error(token.line, quoted(token.text) + " stands in the wrong place");
      }
      state_.take();
      TROUPE_ASSIGN_OR_RETURN(place, parse_expression());
      depth = std::max(depth, place->depth);
      continue;
    }
    const bool is_named = token.kind == TokenKind::kName && state_.next().is_operator("=");
    if (is_named) {
      if (arguments.unpacked_dict) {
        return syntax_error(token.line, "a named argument follows '**'");
      }
      state_.take();
      state_.take();
    } else if (!arguments.named.empty() || arguments.unpacked_list || arguments.unpacked_dict) {
      return syntax_error(token.line, "a positional argument follows a named or unpacked one");
    }
    TROUPE_ASSIGN_OR_RETURN(ExprPtr value, parse_expression());
    depth = std::max(depth, value->depth);
    if (is_named) {
      arguments.named.emplace_back(token.text, std::move(value));
    } else {
      arguments.positional.push_back(std::move(value));
    }
  }
  return state_.expect_operator(")");
}

}  // namespace troupe::chat_template
