#pragma once
// The syntax tree of a compiled template. Immutable once parsed; its depth, and with it the
// recursion of everything that walks or destroys it, is bounded by limits.nesting_max.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/chat_template/builtins.h"
#include "engine/chat_template/value.h"

namespace troupe::chat_template {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;
struct Statement;
using Body = std::vector<std::unique_ptr<const Statement>>;

// ---- expressions

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr unpacked_list;  // *x, behind the positional ones; null where there is none
  ExprPtr unpacked_dict;  // **x, behind the named ones; null where there is none
};

struct Literal {
  TemplateValue value;
};
struct Variable {
  std::string name;
};
// The text that a {% filter %} or {% set %} block has produced; innermost in its chain of filters.
struct BlockText {};
struct Attribute {  // object.name
  ExprPtr object;
  std::string name;
};
struct Subscript {  // object[index]
  ExprPtr object;
  ExprPtr index;
};
struct Slice {  // object[start:stop:step], each of the three may be null
  ExprPtr object;
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
};
struct FunctionCall {  // name(...): a built-in function or a macro
  std::string name;
  Arguments arguments;
};
struct MethodCall {  // object.name(...)
  ExprPtr object;
  std::string name;
  Arguments arguments;
};
struct ValueCall {  // f(...), where f is an expression whose value is a macro or a function
  ExprPtr callee;
  Arguments arguments;
};
struct ChangeCall {  // name.method(...) or name.attribute.method(...), which changes a list or dict
  std::string name;
  std::string attribute;  // of a namespace; empty for a plain variable
  std::string method;
  Arguments arguments;
};
struct FilterCall {  // input | name(...)
  ExprPtr input;
  std::string name;
  FilterFunction filter;
  Arguments arguments;
};
struct TestCall {  // input is [not] name(...)
  ExprPtr input;
  std::string name;
  TestFunction test;
  bool is_negated;
  Arguments arguments;
};
enum class UnaryOperator : uint8_t { kNot, kNegate, kPlus };
struct Unary {
  UnaryOperator op;
  ExprPtr operand;
};
enum class BinaryOperator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
};
struct Binary {
  BinaryOperator op;
  ExprPtr left;
  ExprPtr right;
};
enum class LogicalOperator : uint8_t { kAnd, kOr };
struct Logical {
  LogicalOperator op;
  ExprPtr left;
  ExprPtr right;
};
enum class CompareOperator : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};
struct Comparison {  // first op operand op operand …, as in Python
  ExprPtr first;
  std::vector<std::pair<CompareOperator, ExprPtr>> rest;
};
struct Concatenation {  // a ~ b ~ c
  std::vector<ExprPtr> parts;
};
struct Conditional {  // then if test else otherwise; `otherwise` may be null
  ExprPtr test;
  ExprPtr then;
  ExprPtr otherwise;
};
struct ListDisplay {
  std::vector<ExprPtr> elements;
  bool is_tuple;
};
struct DictDisplay {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

using ExprNode =
    std::variant<Literal, Variable, BlockText, Attribute, Subscript, Slice, FunctionCall,
                 MethodCall, ValueCall, ChangeCall, FilterCall, TestCall, Unary, Binary, Logical,
                 Comparison, Concatenation, Conditional, ListDisplay, DictDisplay>;

struct Expr {
  ExprNode node;
  int line;
  uint32_t depth;  // 1 + the deepest operand's
};

// ---- statements

// What a value is assigned to.
struct Target {
  std::string name;
  std::string attribute;         // of a namespace; empty for a plain variable
  std::vector<Target> elements;  // not empty: unpack a list into these; the name is empty
};

struct TextOutput {
  TemplateValue text;
};
struct Print {
  std::vector<ExprPtr> values;
};
struct If {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  // may be null
  Body body;
  Body otherwise;
  bool mentions_loop;  // the body reads `loop`, so its length must be known in advance
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filters;  // ends in BlockText
  Body body;
};
struct FilterBlock {
  ExprPtr filters;  // ends in BlockText
  Body body;
};
struct Parameter {
  std::string name;
  ExprPtr fallback;  // null: undefined
};
struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  bool takes_varargs;  // the body reads these names; only then may there be surplus arguments
  bool takes_kwargs;
  bool takes_caller;
};
struct CallBlock {  // {% call macro(...) %} body {% endcall %}
  ExprPtr call;     // a FunctionCall
  MacroDefinition caller;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> variables;
  Body body;
};
struct Group {  // a body without a scope of its own, such as {% generation %}
  Body body;
};
struct Break {};
struct Continue {};

using StatementNode = std::variant<TextOutput, Print, If, For, Set, SetBlock, FilterBlock,
                                   MacroDefinition, CallBlock, With, Group, Break, Continue>;

struct Statement {
  StatementNode node;
  int line;
};

struct Program {
  Body body;
  std::set<std::string> variables;  // every name that is read somewhere
};

}  // namespace troupe::chat_template
