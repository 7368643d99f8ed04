// The tests behind "is".
#include <array>

#include "engine/chat_template/arguments.h"
#include "engine/chat_template/builtins.h"
#include "engine/chat_template/format.h"
#include "engine/chat_template/operators.h"
#include "engine/chat_template/unicode.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;

bool is_defined(const TemplateValue& v) {
  return !v.is(Kind::kUndefined);
}
bool is_undefined(const TemplateValue& v) {
  return v.is(Kind::kUndefined);
}
bool is_none(const TemplateValue& v) {
  return v.is(Kind::kNone);
}
bool is_boolean(const TemplateValue& v) {
  return v.is(Kind::kBool);
}
bool is_true(const TemplateValue& v) {
  return v.is(Kind::kBool) && v.as_bool();
}
bool is_false(const TemplateValue& v) {
  return v.is(Kind::kBool) && !v.as_bool();
}
bool is_integer(const TemplateValue& v) {
  return v.is(Kind::kInt);
}
bool is_float(const TemplateValue& v) {
  return v.is(Kind::kFloat);
}
bool is_number(const TemplateValue& v) {
  return v.is_number();
}
bool is_string(const TemplateValue& v) {
  return v.is(Kind::kText);
}
bool is_mapping(const TemplateValue& v) {
  return v.is(Kind::kDict);
}
// jinja2's undefined can be iterated over, hence it passes here and in is_sequence.
bool is_iterable(const TemplateValue& v) {
  return v.is(Kind::kText) || v.is_array() || v.is(Kind::kDict) || v.is(Kind::kUndefined) ||
         v.is(Kind::kLoop);
}
bool is_sequence(const TemplateValue& v) {
  return v.is(Kind::kText) || v.is_array() || v.is(Kind::kDict) || v.is(Kind::kUndefined);
}
bool is_callable(const TemplateValue& v) {
  return v.is(Kind::kMacro) || v.is(Kind::kFunction) || v.is(Kind::kLoop);
}

template <bool (*predicate)(const TemplateValue&)>
Result<bool> plain_test(Budget&, const TemplateValue& input, const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  return predicate(input);
}

template <CompareOperator op>
Result<bool> compare_test(Budget& budget, const TemplateValue& input,
                          const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"other"}, 1));
  return apply_compare(budget, op, input, *bound[0]);
}

// Values are immutable and shared, so identity is equality of the same type.
Result<bool> sameas_test(Budget& budget, const TemplateValue& input,
                         const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"other"}, 1));
  if (input.kind() != bound[0]->kind()) return false;
  return equals(budget, input, *bound[0]);
}

Result<bool> has_remainder(Budget& budget, const TemplateValue& input, const TemplateValue& divisor,
                           int64_t remainder) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue rest,
                          apply_binary(budget, BinaryOperator::kModulo, input, divisor));
  return equals(budget, rest, TemplateValue::integer(remainder));
}

template <int64_t remainder>
Result<bool> parity_test(Budget& budget, const TemplateValue& input,
                         const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  return has_remainder(budget, input, TemplateValue::integer(2), remainder);
}

Result<bool> divisibleby_test(Budget& budget, const TemplateValue& input,
                              const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"num"}, 1));
  return has_remainder(budget, input, *bound[0], 0);
}

// Has letters with case, and all of them are of this case.
template <bool wants_upper>
Result<bool> case_test(Budget& budget, const TemplateValue& input, const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText text, to_text(budget, input));
  TROUPE_ASSIGN_OR_RETURN(
      const TemplateValue answer,
      call_method(budget, TemplateValue::text(text), wants_upper ? "isupper" : "islower", {}));
  return answer.truthy();
}

struct NamedTest {
  std::string_view name;
  TestFunction function;
};

constexpr std::array<NamedTest, 36> kTests = {{
    {"defined", plain_test<is_defined>},
    {"undefined", plain_test<is_undefined>},
    {"none", plain_test<is_none>},
    {"boolean", plain_test<is_boolean>},
    {"true", plain_test<is_true>},
    {"false", plain_test<is_false>},
    {"integer", plain_test<is_integer>},
    {"float", plain_test<is_float>},
    {"number", plain_test<is_number>},
    {"string", plain_test<is_string>},
    {"mapping", plain_test<is_mapping>},
    {"iterable", plain_test<is_iterable>},
    {"sequence", plain_test<is_sequence>},
    {"callable", plain_test<is_callable>},
    {"eq", compare_test<CompareOperator::kEqual>},
    {"==", compare_test<CompareOperator::kEqual>},
    {"equalto", compare_test<CompareOperator::kEqual>},
    {"ne", compare_test<CompareOperator::kNotEqual>},
    {"!=", compare_test<CompareOperator::kNotEqual>},
    {"lt", compare_test<CompareOperator::kLess>},
    {"<", compare_test<CompareOperator::kLess>},
    {"lessthan", compare_test<CompareOperator::kLess>},
    {"le", compare_test<CompareOperator::kLessEqual>},
    {"<=", compare_test<CompareOperator::kLessEqual>},
    {"gt", compare_test<CompareOperator::kGreater>},
    {">", compare_test<CompareOperator::kGreater>},
    {"greaterthan", compare_test<CompareOperator::kGreater>},
    {"ge", compare_test<CompareOperator::kGreaterEqual>},
    {">=", compare_test<CompareOperator::kGreaterEqual>},
    {"in", compare_test<CompareOperator::kIn>},
    {"sameas", sameas_test},
    {"even", parity_test<0>},
    {"odd", parity_test<1>},
    {"divisibleby", divisibleby_test},
    {"lower", case_test<false>},
    {"upper", case_test<true>},
}};

}  // namespace

TestFunction find_test(std::string_view name) {
  for (const NamedTest& test : kTests) {
    if (test.name == name) return test.function;
  }
  return nullptr;
}

}  // namespace troupe::chat_template
