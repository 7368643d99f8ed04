#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "engine/chat_template/arguments.h"
#include "engine/chat_template/filters.h"
#include "engine/chat_template/format.h"
#include "engine/chat_template/operators.h"
#include "engine/chat_template/unicode.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(leading_space_bytes(text));
  text.remove_suffix(trailing_space_bytes(text));
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

std::optional<double> parse_float(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_int(std::string_view text, int base) {
  text = trimmed(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> truncate(double value) {
  // 2^63 is exact in double; everything below it in size fits.
  if (!(std::fabs(value) < 9223372036854775808.0)) return std::nullopt;
  return static_cast<int64_t>(value);
}

Result<TemplateValue> int_filter(Budget& budget, const TemplateValue& input,
                                 const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"default", "base"}, 0));
  TROUPE_ASSIGN_OR_RETURN(const int64_t base, int_argument(bound[1], 10));
  if (base < 2 || base > 36) return invalid_argument("needs a base from 2 to 36");
  std::optional<int64_t> value;
  if (input.is(Kind::kText)) {
    const std::string& text = input.as_text().bytes();
    TROUPE_RETURN_IF_ERROR(budget.work(text.size()));
    value = parse_int(text, static_cast<int>(base));
    if (!value) {
      if (const std::optional<double> number = parse_float(text)) value = truncate(*number);
    }
  } else if (input.is(Kind::kFloat)) {
    value = truncate(input.as_number());
  } else if (input.is_number()) {
    value = input.as_int();
  }
  if (value) return TemplateValue::integer(*value);
  return bound[0] == nullptr ? TemplateValue::integer(0) : *bound[0];
}

Result<TemplateValue> float_filter(Budget& budget, const TemplateValue& input,
                                   const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"default"}, 0));
  if (input.is_number()) return TemplateValue::number(input.as_number());
  if (input.is(Kind::kText)) {
    TROUPE_RETURN_IF_ERROR(budget.work(input.as_text().size()));
    if (const std::optional<double> number = parse_float(input.as_text().bytes())) {
      return TemplateValue::number(*number);
    }
  }
  return bound[0] == nullptr ? TemplateValue::number(0) : *bound[0];
}

Result<TemplateValue> abs_filter(Budget&, const TemplateValue& input,
                                 const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  if (input.is_number() && input.as_number() < 0) return apply_sign(UnaryOperator::kNegate, input);
  return apply_sign(UnaryOperator::kPlus, input);
}

// Python's round(): exact, ties to even.
double round_common(double value, int64_t precision) {
  if (!std::isfinite(value)) return value;
  if (precision < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    return std::nearbyint(value / scale) * scale;
  }
  char buffer[700];  // 309 digits before the point, 300 behind it
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                          std::chars_format::fixed, static_cast<int>(precision));
  double rounded = value;
  if (error == std::errc()) std::from_chars(buffer, end, rounded);
  return rounded;
}

Result<TemplateValue> round_filter(Budget&, const TemplateValue& input,
                                   const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"precision", "method"}, 0));
  TROUPE_ASSIGN_OR_RETURN(const int64_t precision, int_argument(bound[0], 0));
  if (precision < -300 || precision > 300) {
    return invalid_argument("needs a precision from -300 to 300");
  }
  std::string_view method = "common";
  if (bound[1] != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* text, text_argument(*bound[1]));
    method = text->bytes();
  }
  if (!input.is_number()) {
    return invalid_argument("cannot round '" + std::string(input.type_name()) + "'");
  }
  const double value = input.as_number();
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return TemplateValue::number(std::ceil(value * scale) / scale);
  if (method == "floor") return TemplateValue::number(std::floor(value * scale) / scale);
  if (method != "common") return invalid_argument("needs 'common', 'ceil' or 'floor' to round");
  if (!input.is(Kind::kFloat) && precision >= 0) return TemplateValue::integer(input.as_int());
  const double rounded = round_common(value, precision);
  if (input.is(Kind::kFloat)) return TemplateValue::number(rounded);
  const std::optional<int64_t> whole = truncate(rounded);
  return whole ? TemplateValue::integer(*whole) : TemplateValue::number(rounded);
}

Result<TemplateValue> default_filter(Budget&, const TemplateValue& input,
                                     const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<2>(arguments, {"default_value", "boolean"}, 0));
  const bool is_missing =
      input.is(Kind::kUndefined) || (bool_argument(bound[1], false) && !input.truthy());
  if (!is_missing) return input;
  return bound[0] == nullptr ? TemplateValue::markup("") : *bound[0];
}

}  // namespace

std::span<const NamedFilter> number_filters() {
  static constexpr std::array<NamedFilter, 6> kFilters = {{
      {"abs", abs_filter},
      {"d", default_filter},
      {"default", default_filter},
      {"float", float_filter},
      {"int", int_filter},
      {"round", round_filter},
  }};
  return kFilters;
}

}  // namespace troupe::chat_template
