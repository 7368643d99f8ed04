#include "engine/chat_template/operators.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/assert.h"
#include "engine/chat_template/string_format.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;

std::string_view spelling(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kAdd:
      return "+";
    case BinaryOperator::kSubtract:
      return "-";
    case BinaryOperator::kMultiply:
      return "*";
    case BinaryOperator::kDivide:
      return "/";
    case BinaryOperator::kFloorDivide:
      return "//";
    case BinaryOperator::kModulo:
      return "%";
    case BinaryOperator::kPower:
      return "**";
  }
  return "?";
}

Status operand_error(std::string_view op, const TemplateValue& left, const TemplateValue& right) {
  return invalid_argument("'" + std::string(op) + "' does not work on '" +
                          std::string(left.type_name()) + "' and '" +
                          std::string(right.type_name()) + "'");
}

Status overflow_error() {
  return invalid_argument("an integer does not fit into 64 bits");
}
Status zero_error() {
  return invalid_argument("division by zero");
}

Result<TemplateValue> integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  // Square and multiply: at most 63 rounds. A square that overflows only matters if it is used.
  for (bool square_overflowed = false; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      if (square_overflowed || __builtin_mul_overflow(result, base, &result)) {
        return overflow_error();
      }
    }
    square_overflowed = square_overflowed || __builtin_mul_overflow(base, base, &base);
  }
  return TemplateValue::integer(result);
}

Result<TemplateValue> integer_binary(BinaryOperator op, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case BinaryOperator::kAdd:
      overflows = __builtin_add_overflow(left, right, &result);
      break;
    case BinaryOperator::kSubtract:
      overflows = __builtin_sub_overflow(left, right, &result);
      break;
    case BinaryOperator::kMultiply:
      overflows = __builtin_mul_overflow(left, right, &result);
      break;
    case BinaryOperator::kDivide:
      if (right == 0) return zero_error();
      return TemplateValue::number(static_cast<double>(left) / static_cast<double>(right));
    case BinaryOperator::kFloorDivide:
      if (right == 0) return zero_error();
      if (right == -1) {  // the one quotient that can overflow
        overflows = __builtin_sub_overflow(int64_t{0}, left, &result);
        break;
      }
      result = left / right - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
      break;
    case BinaryOperator::kModulo:
      if (right == 0) return zero_error();
      result = right == -1 ? 0 : left % right;
      if (result != 0 && (result < 0) != (right < 0)) result += right;
      break;
    case BinaryOperator::kPower:
      if (right >= 0) return integer_power(left, right);
      if (left == 0) return zero_error();
      return TemplateValue::number(std::pow(static_cast<double>(left), static_cast<double>(right)));
  }
  if (overflows) return overflow_error();
  return TemplateValue::integer(result);
}

Result<TemplateValue> float_binary(BinaryOperator op, double left, double right) {
  const bool divides = op == BinaryOperator::kDivide || op == BinaryOperator::kFloorDivide ||
                       op == BinaryOperator::kModulo;
  if (divides && right == 0) return zero_error();
  // Python's remainder has the sign of the divisor.
  double remainder = 0;
  if (divides) {
    remainder = std::fmod(left, right);
    if (remainder != 0 && (remainder < 0) != (right < 0)) remainder += right;
  }
  switch (op) {
    case BinaryOperator::kAdd:
      return TemplateValue::number(left + right);
    case BinaryOperator::kSubtract:
      return TemplateValue::number(left - right);
    case BinaryOperator::kMultiply:
      return TemplateValue::number(left * right);
    case BinaryOperator::kDivide:
      return TemplateValue::number(left / right);
    case BinaryOperator::kFloorDivide:
      return TemplateValue::number(std::round((left - remainder) / right));
    case BinaryOperator::kModulo:
      return TemplateValue::number(remainder);
    case BinaryOperator::kPower:
      if (left == 0 && right < 0) return zero_error();
      if (left < 0 && right != std::floor(right)) {
        return invalid_argument("a negative number has no fractional power");
      }
      return TemplateValue::number(std::pow(left, right));
  }
  return operand_error(spelling(op), TemplateValue::number(left), TemplateValue::number(right));
}

Result<TemplateValue> repeat(Budget& budget, const TemplateValue& sequence, int64_t times) {
  const uint64_t count = times > 0 ? static_cast<uint64_t>(times) : 0;
  if (sequence.is(Kind::kText)) {
    const TemplateText& text = sequence.as_text();
    TemplateText result;
    for (uint64_t i = 0; i < count && !text.empty(); ++i) {
      TROUPE_RETURN_IF_ERROR(budget.append(result, text));
      result.append(text);
    }
    return TemplateValue::text(std::move(result));
  }
  const TemplateValue::List& list = sequence.as_list();
  TemplateValue::List result;
  for (uint64_t i = 0; i < count && !list.empty(); ++i) {
    TROUPE_RETURN_IF_ERROR(budget.elements(list.size()));
    result.insert(result.end(), list.begin(), list.end());
  }
  return sequence.is(Kind::kTuple) ? make_tuple(budget, std::move(result))
                                   : make_list(budget, std::move(result));
}

Result<TemplateValue> concatenate(Budget& budget, const TemplateValue& left,
                                  const TemplateValue& right) {
  if (left.is(Kind::kText)) {
    TROUPE_RETURN_IF_ERROR(budget.copy(left.as_text()));
    TemplateText text = left.as_text();
    TROUPE_RETURN_IF_ERROR(budget.append(text, right.as_text()));
    text.append(right.as_text());
    return TemplateValue::text(std::move(text));
  }
  TemplateValue::List list = left.as_list();
  list.insert(list.end(), right.as_list().begin(), right.as_list().end());
  return left.is(Kind::kTuple) ? make_tuple(budget, std::move(list))
                               : make_list(budget, std::move(list));
}

bool is_integer(const TemplateValue& value) {
  return value.is(Kind::kInt) || value.is(Kind::kBool);
}
bool is_sequence(const TemplateValue& value) {
  return value.is(Kind::kText) || value.is_array();
}

Result<bool> equal_dicts(Budget& budget, const TemplateValue& left, const TemplateValue& right) {
  if (left.as_dict().size() != right.as_dict().size()) return false;
  for (const auto& [key, value] : left.as_dict()) {
    TROUPE_ASSIGN_OR_RETURN(const bool has_key, contains(budget, right, key));
    if (!has_key) return false;
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue other, get_item(budget, right, key));
    TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, value, other));
    if (!is_equal) return false;
  }
  return true;
}

}  // namespace

Result<TemplateValue> apply_binary(Budget& budget, BinaryOperator op, const TemplateValue& left,
                                   const TemplateValue& right) {
  if (is_integer(left) && is_integer(right)) {
    return integer_binary(op, left.as_int(), right.as_int());
  }
  if (left.is_number() && right.is_number()) {
    return float_binary(op, left.as_number(), right.as_number());
  }
  if (op == BinaryOperator::kModulo && left.is(Kind::kText)) {
    TROUPE_ASSIGN_OR_RETURN(TemplateText text, format_percent(budget, left.as_text(), right));
    return TemplateValue::text(std::move(text));
  }
  if (op == BinaryOperator::kAdd && is_sequence(left) && left.kind() == right.kind()) {
    return concatenate(budget, left, right);
  }
  if (op == BinaryOperator::kMultiply && is_sequence(left) && is_integer(right)) {
    return repeat(budget, left, right.as_int());
  }
  if (op == BinaryOperator::kMultiply && is_integer(left) && is_sequence(right)) {
    return repeat(budget, right, left.as_int());
  }
  return operand_error(spelling(op), left, right);
}

Result<TemplateValue> apply_sign(UnaryOperator op, const TemplateValue& operand) {
  TROUPE_ASSERT(op != UnaryOperator::kNot, operand.type_name());
  if (!operand.is_number()) {
    return invalid_argument("a sign does not work on '" + std::string(operand.type_name()) + "'");
  }
  const bool negates = op == UnaryOperator::kNegate;
  if (operand.is(Kind::kFloat)) {
    return TemplateValue::number(negates ? -operand.as_number() : operand.as_number());
  }
  if (!negates) return TemplateValue::integer(operand.as_int());
  return integer_binary(BinaryOperator::kSubtract, 0, operand.as_int());
}

Result<bool> equals(Budget& budget, const TemplateValue& left, const TemplateValue& right) {
  TROUPE_RETURN_IF_ERROR(budget.steps(1));
  if (left.is_number() && right.is_number()) {
    if (is_integer(left) && is_integer(right)) return left.as_int() == right.as_int();
    return left.as_number() == right.as_number();
  }
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kText:
      if (left.as_text().size() != right.as_text().size()) return false;
      TROUPE_RETURN_IF_ERROR(budget.work(left.as_text().size()));
      return left.as_text() == right.as_text();
    case Kind::kList:
    case Kind::kTuple:
      if (left.as_list().size() != right.as_list().size()) return false;
      for (size_t i = 0; i < left.as_list().size(); ++i) {
        TROUPE_ASSIGN_OR_RETURN(const bool is_equal,
                                equals(budget, left.as_list()[i], right.as_list()[i]));
        if (!is_equal) return false;
      }
      return true;
    case Kind::kDict:
      return equal_dicts(budget, left, right);
    case Kind::kNamespace:
      return &left.as_namespace() == &right.as_namespace();
    case Kind::kMacro:
      return &left.as_macro() == &right.as_macro();
    case Kind::kLoop:
      return &left.as_loop() == &right.as_loop();
    case Kind::kFunction:
      return left.as_function() == right.as_function();
    default:  // undefined and none equal themselves
      return true;
  }
}

Result<std::partial_ordering> order(Budget& budget, const TemplateValue& left,
                                    const TemplateValue& right) {
  TROUPE_RETURN_IF_ERROR(budget.steps(1));
  if (left.is_number() && right.is_number()) {
    if (is_integer(left) && is_integer(right)) {
      return std::partial_ordering(left.as_int() <=> right.as_int());
    }
    return left.as_number() <=> right.as_number();
  }
  if (left.is(Kind::kText) && right.is(Kind::kText)) {
    TROUPE_RETURN_IF_ERROR(budget.work(std::min(left.as_text().size(), right.as_text().size())));
    // The order of UTF-8 is that of the code points.
    return std::partial_ordering(left.as_text() <=> right.as_text());
  }
  if (!left.is_array() || left.kind() != right.kind()) return operand_error("<", left, right);
  const TemplateValue::List& a = left.as_list();
  const TemplateValue::List& b = right.as_list();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, a[i], b[i]));
    if (!is_equal) return order(budget, a[i], b[i]);
  }
  return std::partial_ordering(a.size() <=> b.size());
}

Result<bool> apply_compare(Budget& budget, CompareOperator op, const TemplateValue& left,
                           const TemplateValue& right) {
  switch (op) {
    case CompareOperator::kEqual:
      return equals(budget, left, right);
    case CompareOperator::kNotEqual: {
      TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, left, right));
      return !is_equal;
    }
    case CompareOperator::kIn:
      return contains(budget, right, left);
    case CompareOperator::kNotIn: {
      TROUPE_ASSIGN_OR_RETURN(const bool is_in, contains(budget, right, left));
      return !is_in;
    }
    default:
      break;
  }
  TROUPE_ASSIGN_OR_RETURN(const std::partial_ordering ordering, order(budget, left, right));
  switch (op) {
    case CompareOperator::kLess:
      return ordering < 0;
    case CompareOperator::kLessEqual:
      return ordering <= 0;
    case CompareOperator::kGreater:
      return ordering > 0;
    default:
      return ordering >= 0;
  }
}

}  // namespace troupe::chat_template
