#include "engine/chat_template/parser.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/assert.h"
#include "engine/chat_template/errors.h"
#include "engine/chat_template/expression_parser.h"
#include "engine/chat_template/lexer.h"
#include "engine/chat_template/parse_state.h"

namespace troupe::chat_template {
namespace {

using Conditionals = ExpressionParser::Conditionals;
using StatementPtr = std::unique_ptr<const Statement>;
using Names = std::span<const std::string_view>;

class Parser {
 public:
  Parser(std::vector<Token> tokens, const ChatTemplateLimits& limits)
      : state_(std::move(tokens), limits), expressions_(state_) {}

  Result<std::unique_ptr<const Program>> run();

 private:
  using Parsed = Result<StatementPtr>;

  static StatementPtr make(int line, StatementNode node) {
    return std::make_unique<const Statement>(Statement{std::move(node), line});
  }

  // Statements up to a tag with one of these names, whose '{%' is stepped over and whose name is
  // then current. No names: up to the end of the template.
  Result<Body> parse_body(Names ends, std::string_view opened_by, int opened_at);
  // The same for a body with a single end, whose whole tag is stepped over. The rest of the opening
  // tag is '%}'.
  Result<Body> parse_closed_body(std::string_view end, std::string_view opened_by, int line);
  Parsed parse_print();
  Parsed parse_tag();
  Parsed parse_if(int line);
  Parsed parse_for(int line);
  Parsed parse_set(int line);
  Parsed parse_macro(int line);
  Parsed parse_call_block(int line);
  Parsed parse_filter_block(int line);
  Parsed parse_with(int line);
  Parsed parse_group(int line);
  Parsed parse_print_tag(int line);
  Parsed parse_loop_exit(int line, StatementNode node, std::string_view name);
  Status parse_parameters(MacroDefinition& macro);
  Status parse_macro_body(MacroDefinition& macro, std::string_view end, std::string_view opened_by,
                          int line);
  Result<Target> parse_target(bool allows_attribute);
  Result<Target> parse_target_element(bool allows_attribute);
  Status end_tag() { return state_.expect_kind(TokenKind::kBlockEnd, "'%}'"); }

  ParseState state_;
  ExpressionParser expressions_;
  uint32_t loops_open_ = 0;  // of the innermost macro
};

Result<std::unique_ptr<const Program>> Parser::run() {
  Program program;
  TROUPE_ASSIGN_OR_RETURN(program.body, parse_body({}, "", 1));
  TROUPE_RETURN_IF_ERROR(state_.check_calls());
  program.variables = state_.mentioned_names();
  return std::unique_ptr<const Program>(std::make_unique<Program>(std::move(program)));
}

Result<Body> Parser::parse_body(Names ends, std::string_view opened_by, int opened_at) {
  const ParseState::Level level(state_);
  TROUPE_RETURN_IF_ERROR(level.check());
  Body body;
  while (true) {
    const Token& token = state_.current();
    switch (token.kind) {
      case TokenKind::kText:
        state_.take();
        body.push_back(make(token.line, TextOutput{TemplateValue::markup(token.text)}));
        continue;
      case TokenKind::kPrintBegin: {
        TROUPE_ASSIGN_OR_RETURN(StatementPtr print, parse_print());
        body.push_back(std::move(print));
        continue;
      }
      case TokenKind::kBlockBegin: {
        state_.take();
        const Token& name = state_.current();
        if (name.kind == TokenKind::kName && std::ranges::count(ends, name.text) > 0) return body;
        TROUPE_ASSIGN_OR_RETURN(StatementPtr statement, parse_tag());
        body.push_back(std::move(statement));
        continue;
      }
      default:
        break;
    }
    TROUPE_ASSERT(token.kind == TokenKind::kEnd, token.text);
    if (ends.empty()) return body;
    return syntax_error(opened_at, "{% " + std::string(opened_by) + " %} is not closed by {% " +
                                       std::string(ends.back()) + " %}");
  }
}

Result<Body> Parser::parse_closed_body(std::string_view end, std::string_view opened_by, int line) {
  TROUPE_RETURN_IF_ERROR(end_tag());
  TROUPE_ASSIGN_OR_RETURN(Body body, parse_body({&end, 1}, opened_by, line));
  state_.take();
  TROUPE_RETURN_IF_ERROR(end_tag());
  return body;
}

Result<StatementPtr> Parser::parse_print() {
  const int line = state_.take().line;
  Print print;
  TROUPE_ASSIGN_OR_RETURN(ExprPtr value, expressions_.parse_tuple(Conditionals::kAllowed));
  print.values.push_back(std::move(value));
  TROUPE_RETURN_IF_ERROR(state_.expect_kind(TokenKind::kPrintEnd, "'}}'"));
  return make(line, std::move(print));
}

// The current token is the tag's name.
Result<StatementPtr> Parser::parse_tag() {
  const int line = state_.line();
  TROUPE_ASSIGN_OR_RETURN(const std::string name,
                          state_.expect_identifier("the name of a statement after '{%'"));
  if (name == "if") return parse_if(line);
  if (name == "for") return parse_for(line);
  if (name == "set") return parse_set(line);
  if (name == "macro") return parse_macro(line);
  if (name == "call") return parse_call_block(line);
  if (name == "filter") return parse_filter_block(line);
  if (name == "with") return parse_with(line);
  if (name == "generation") return parse_group(line);
  if (name == "print") return parse_print_tag(line);
  if (name == "break") return parse_loop_exit(line, Break{}, name);
  if (name == "continue") return parse_loop_exit(line, Continue{}, name);
  static constexpr std::array<std::string_view, 11> kContinuations = {
      "else",   "elif",    "endif",     "endfor",  "endset",       "endmacro",
      "endraw", "endcall", "endfilter", "endwith", "endgeneration"};
  if (std::ranges::count(kContinuations, name) > 0) {
    return syntax_error(line, "{% " + name + " %} closes nothing that is open here");
  }
  return unsupported(line, "the statement " + quoted(name));
}

Result<StatementPtr> Parser::parse_if(int line) {
  static constexpr std::array<std::string_view, 3> kEnds = {"elif", "else", "endif"};
  If node;
  do {
    TROUPE_ASSIGN_OR_RETURN(ExprPtr test, expressions_.parse_tuple(Conditionals::kForbidden));
    TROUPE_RETURN_IF_ERROR(end_tag());
    TROUPE_ASSIGN_OR_RETURN(Body body, parse_body(kEnds, "if", line));
    node.branches.emplace_back(std::move(test), std::move(body));
  } while (state_.skip_name("elif"));
  if (state_.skip_name("else")) {
    TROUPE_ASSIGN_OR_RETURN(node.otherwise, parse_closed_body("endif", "if", line));
  } else {
    state_.take();
    TROUPE_RETURN_IF_ERROR(end_tag());
  }
  return make(line, std::move(node));
}

Result<StatementPtr> Parser::parse_for(int line) {
  static constexpr std::array<std::string_view, 2> kEnds = {"else", "endfor"};
  For node{};
  TROUPE_ASSIGN_OR_RETURN(node.target, parse_target(false));
  TROUPE_RETURN_IF_ERROR(state_.expect_name("in"));
  TROUPE_ASSIGN_OR_RETURN(node.iterable, expressions_.parse_tuple(Conditionals::kForbidden));
  if (state_.skip_name("if")) {
    TROUPE_ASSIGN_OR_RETURN(node.condition, expressions_.parse_expression());
  }
  if (state_.current().is_name("recursive")) return unsupported(line, "a recursive loop");
  TROUPE_RETURN_IF_ERROR(end_tag());
  const size_t loop_mentions = state_.mention_count("loop");
  ++loops_open_;
  TROUPE_ASSIGN_OR_RETURN(node.body, parse_body(kEnds, "for", line));
  --loops_open_;
  node.mentions_loop = state_.mention_count("loop") > loop_mentions;
  if (state_.skip_name("else")) {
    TROUPE_ASSIGN_OR_RETURN(node.otherwise, parse_closed_body("endfor", "for", line));
  } else {
    state_.take();
    TROUPE_RETURN_IF_ERROR(end_tag());
  }
  return make(line, std::move(node));
}

Result<StatementPtr> Parser::parse_set(int line) {
  TROUPE_ASSIGN_OR_RETURN(Target target, parse_target(true));
  if (state_.skip_operator("=")) {
    TROUPE_ASSIGN_OR_RETURN(ExprPtr value, expressions_.parse_tuple(Conditionals::kAllowed));
    TROUPE_RETURN_IF_ERROR(end_tag());
    return make(line, Set{std::move(target), std::move(value)});
  }
  if (state_.current().kind == TokenKind::kName) return state_.unexpected("'=', '|' or '%}'");
  TROUPE_ASSIGN_OR_RETURN(ExprPtr filters, expressions_.parse_block_filters());
  TROUPE_ASSIGN_OR_RETURN(Body body, parse_closed_body("endset", "set", line));
  return make(line, SetBlock{std::move(target), std::move(filters), std::move(body)});
}

Result<StatementPtr> Parser::parse_macro(int line) {
  MacroDefinition macro{};
  TROUPE_ASSIGN_OR_RETURN(macro.name, state_.expect_identifier("the name of a macro"));
  state_.assign(macro.name);
  TROUPE_RETURN_IF_ERROR(parse_parameters(macro));
  TROUPE_RETURN_IF_ERROR(parse_macro_body(macro, "endmacro", "macro", line));
  return make(line, std::move(macro));
}

Status Parser::parse_parameters(MacroDefinition& macro) {
  TROUPE_RETURN_IF_ERROR(state_.expect_operator("("));
  while (!state_.current().is_operator(")")) {
    if (!macro.parameters.empty()) TROUPE_RETURN_IF_ERROR(state_.expect_operator(","));
    const int line = state_.line();
    TROUPE_ASSIGN_OR_RETURN(std::string name, state_.expect_identifier("a parameter"));
    state_.assign(name);
    ExprPtr fallback;
    if (state_.skip_operator("=")) {
      TROUPE_ASSIGN_OR_RETURN(fallback, expressions_.parse_expression());
    } else if (!macro.parameters.empty() && macro.parameters.back().fallback) {
      return syntax_error(line, "the parameter " + quoted(name) + " needs a default value too");
    }
    macro.parameters.push_back({std::move(name), std::move(fallback)});
  }
  return state_.expect_operator(")");
}

Status Parser::parse_macro_body(MacroDefinition& macro, std::string_view end,
                                std::string_view opened_by, int line) {
  static constexpr std::array<const char*, 3> kImplicit = {"varargs", "kwargs", "caller"};
  std::array<size_t, 3> mentions{};
  for (size_t i = 0; i < kImplicit.size(); ++i) {
    mentions[i] = state_.mention_count(kImplicit[i]);
    state_.assign(kImplicit[i]);
  }
  const uint32_t loops_outside = std::exchange(loops_open_, 0);
  TROUPE_ASSIGN_OR_RETURN(macro.body, parse_closed_body(end, opened_by, line));
  loops_open_ = loops_outside;
  macro.takes_varargs = state_.mention_count(kImplicit[0]) > mentions[0];
  macro.takes_kwargs = state_.mention_count(kImplicit[1]) > mentions[1];
  macro.takes_caller = state_.mention_count(kImplicit[2]) > mentions[2];
  return ok_status();
}

Result<StatementPtr> Parser::parse_call_block(int line) {
  CallBlock node{};
  node.caller.name = "caller";
  if (state_.current().is_operator("(")) {
    TROUPE_RETURN_IF_ERROR(parse_parameters(node.caller));
  }
  TROUPE_ASSIGN_OR_RETURN(node.call, expressions_.parse_expression());
  if (!std::holds_alternative<FunctionCall>(node.call->node)) {
    return syntax_error(line, "{% call %} needs the call of a macro");
  }
  TROUPE_RETURN_IF_ERROR(parse_macro_body(node.caller, "endcall", "call", line));
  return make(line, std::move(node));
}

Result<StatementPtr> Parser::parse_filter_block(int line) {
  if (state_.current().kind != TokenKind::kName) return state_.unexpected("the name of a filter");
  FilterBlock node;
  TROUPE_ASSIGN_OR_RETURN(node.filters, expressions_.parse_block_filters());
  TROUPE_ASSIGN_OR_RETURN(node.body, parse_closed_body("endfilter", "filter", line));
  return make(line, std::move(node));
}

Result<StatementPtr> Parser::parse_with(int line) {
  With node;
  while (state_.current().kind != TokenKind::kBlockEnd) {
    if (!node.variables.empty()) TROUPE_RETURN_IF_ERROR(state_.expect_operator(","));
    TROUPE_ASSIGN_OR_RETURN(Target target, parse_target_element(false));
    TROUPE_RETURN_IF_ERROR(state_.expect_operator("="));
    TROUPE_ASSIGN_OR_RETURN(ExprPtr value, expressions_.parse_expression());
    node.variables.emplace_back(std::move(target), std::move(value));
  }
  TROUPE_ASSIGN_OR_RETURN(node.body, parse_closed_body("endwith", "with", line));
  return make(line, std::move(node));
}

Result<StatementPtr> Parser::parse_group(int line) {
  Group node;
  TROUPE_ASSIGN_OR_RETURN(node.body, parse_closed_body("endgeneration", "generation", line));
  return make(line, std::move(node));
}

Result<StatementPtr> Parser::parse_print_tag(int line) {
  Print print;
  while (state_.current().kind != TokenKind::kBlockEnd) {
    if (!print.values.empty()) TROUPE_RETURN_IF_ERROR(state_.expect_operator(","));
    TROUPE_ASSIGN_OR_RETURN(ExprPtr value, expressions_.parse_expression());
    print.values.push_back(std::move(value));
  }
  TROUPE_RETURN_IF_ERROR(end_tag());
  return make(line, std::move(print));
}

Result<StatementPtr> Parser::parse_loop_exit(int line, StatementNode node, std::string_view name) {
  if (loops_open_ == 0) {
    return syntax_error(line, "{% " + std::string(name) + " %} stands outside of a loop");
  }
  TROUPE_RETURN_IF_ERROR(end_tag());
  return make(line, std::move(node));
}

Result<Target> Parser::parse_target(bool allows_attribute) {
  const auto is_end = [this] {
    const Token& token = state_.current();
    return token.kind == TokenKind::kBlockEnd || token.is_operator(")") || token.is_operator("=") ||
           token.is_name("in");
  };
  Target tuple;
  bool has_comma = false;
  do {
    if (!tuple.elements.empty() && is_end()) break;
    TROUPE_ASSIGN_OR_RETURN(Target element, parse_target_element(allows_attribute));
    tuple.elements.push_back(std::move(element));
    if (state_.current().is_operator(",")) has_comma = true;
  } while (state_.skip_operator(","));
  if (has_comma) return tuple;
  Target only = std::move(tuple.elements.front());
  return only;
}

Result<Target> Parser::parse_target_element(bool allows_attribute) {
  if (state_.skip_operator("(")) {
    const ParseState::Level level(state_);
    TROUPE_RETURN_IF_ERROR(level.check());
    TROUPE_ASSIGN_OR_RETURN(Target target, parse_target(allows_attribute));
    TROUPE_RETURN_IF_ERROR(state_.expect_operator(")"));
    return target;
  }
  static constexpr std::array<std::string_view, 6> kConstants = {"true",  "True", "false",
                                                                 "False", "none", "None"};
  const int line = state_.line();
  Target target;
  TROUPE_ASSIGN_OR_RETURN(target.name, state_.expect_identifier("a variable to assign to"));
  if (std::ranges::count(kConstants, target.name) > 0) {
    return syntax_error(line, quoted(target.name) + " cannot be assigned to");
  }
  if (allows_attribute && state_.skip_operator(".")) {
    TROUPE_ASSIGN_OR_RETURN(target.attribute, state_.expect_identifier("an attribute"));
  } else {
    state_.assign(target.name);
  }
  return target;
}

}  // namespace

Result<std::unique_ptr<const Program>> parse(std::string_view source,
                                             const ChatTemplateLimits& limits) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(source, limits));
  return Parser(std::move(tokens), limits).run();
}

}  // namespace troupe::chat_template
