#include "engine/chat_template/string_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "engine/chat_template/errors.h"
#include "engine/chat_template/format.h"
#include "engine/chat_template/operators.h"
#include "engine/chat_template/unicode.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;

constexpr int64_t kWidthMax = 4096;
constexpr int kPrecisionMax = 64;

// How one value is to be written; common to both ways.
struct Spec {
  std::string fill = " ";
  char align = 0;  // <, >, ^, = (behind the sign), or 0 for the type's own
  char sign = '-';
  bool has_commas = false;
  int64_t width = 0;
  int precision = -1;
  char type = 0;
};

Status format_error(const std::string& what) {
  return invalid_argument("cannot format: " + what);
}

bool is_integer_type(char type) {
  return type == 'd' || type == 'x' || type == 'X' || type == 'o' || type == 'b';
}

std::string digits_of(uint64_t value, char type) {
  const int base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, base).ptr;
  std::string digits(buffer.data(), end);
  if (type == 'X')
    std::ranges::transform(digits, digits.begin(), [](char c) {
      return c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
    });
  return digits;
}

std::string with_commas(std::string digits) {
  const size_t whole = std::min(digits.find('.'), digits.size());
  for (size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

// The digits without the sign.
Result<std::string> number_digits(const TemplateValue& value, const Spec& spec) {
  if (value.is(Kind::kFloat) || !is_integer_type(spec.type)) {
    const double number = value.as_number();
    if (spec.type == 0) return float_repr(number < 0 ? -number : number);
    const bool is_percent = spec.type == '%';
    const std::array<char, 6> pattern = {'%', '.', '*', is_percent ? 'f' : spec.type, 0, 0};
    const int precision = spec.precision < 0 ? 6 : spec.precision;
    std::array<char, 512> buffer{};
    const double shown = (number < 0 ? -number : number) * (is_percent ? 100 : 1);
    const int size = std::snprintf(buffer.data(), buffer.size(), pattern.data(), precision, shown);
    if (size < 0 || static_cast<size_t>(size) >= buffer.size()) return format_error("a number");
    return std::string(buffer.data(), static_cast<size_t>(size)) + (is_percent ? "%" : "");
  }
  const int64_t number = value.as_int();
  const auto magnitude = static_cast<uint64_t>(number);
  return digits_of(number < 0 ? 0 - magnitude : magnitude, spec.type);
}

Result<TemplateText> number_text(const TemplateValue& value, const Spec& spec, std::string& sign) {
  if (!value.is_number()) {
    return format_error("'" + std::string(value.type_name()) + "' as a number");
  }
  TROUPE_ASSIGN_OR_RETURN(std::string digits, number_digits(value, spec));
  const bool is_negative = value.is(Kind::kFloat) ? value.as_number() < 0 : value.as_int() < 0;
  if (is_negative) {
    sign = "-";
  } else if (spec.sign != '-') {
    sign = std::string(1, spec.sign);
  }
  if (spec.has_commas) digits = with_commas(std::move(digits));
  return TemplateText(std::move(digits), TextOrigin::kData);
}

// Appends `body` with its sign, filled up to the width.
Status append_padded(Budget& budget, TemplateText& out, const TemplateText& body,
                     const std::string& sign, const Spec& spec, char natural_align) {
  const auto length = static_cast<int64_t>(code_point_count(body.bytes()) + code_point_count(sign));
  const int64_t missing = std::max<int64_t>(0, spec.width - length);
  const char align = spec.align == 0 ? natural_align : spec.align;
  int64_t left = align == '<' ? 0 : missing;
  if (align == '^') left = missing / 2;
  TROUPE_RETURN_IF_ERROR(budget.grow(
      out.size(), body.size() + sign.size() + static_cast<uint64_t>(missing) * spec.fill.size()));
  if (align == '=') out.append(sign, TextOrigin::kData);
  for (int64_t i = 0; i < left; ++i) out.append(spec.fill, TextOrigin::kData);
  if (align != '=') out.append(sign, TextOrigin::kData);
  out.append(body);
  for (int64_t i = left; i < missing; ++i) out.append(spec.fill, TextOrigin::kData);
  return ok_status();
}

Status append_text(Budget& budget, TemplateText& out, TemplateText text, const Spec& spec) {
  if (spec.precision >= 0) {
    text = text.slice(0, byte_offset(text.bytes(), static_cast<size_t>(spec.precision)));
  }
  return append_padded(budget, out, text, "", spec, '<');
}

Result<TemplateText> repr_text(Budget& budget, const TemplateValue& value) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue list, make_list(budget, {value}));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText text, to_text(budget, list));
  return text.slice(1, text.size() - 1);  // without the list's brackets
}

// Reads digits at `at`; -1 where there are none.
int64_t read_number(std::string_view text, size_t& at) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  const bool is_digit = at < text.size() && text[at] >= '0' && text[at] <= '9';
  if (!is_digit || error != std::errc()) return -1;
  at = static_cast<size_t>(end - text.data());
  return value;
}

Status check_sizes(const Spec& spec, int64_t precision) {
  if (spec.width > kWidthMax || precision > kPrecisionMax) {
    return format_error("a width above " + std::to_string(kWidthMax) + " or a precision above " +
                        std::to_string(kPrecisionMax));
  }
  return ok_status();
}

// ---- 'a %s' % value

class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, const TemplateText& format, const TemplateValue& values)
      : budget_(budget), format_(format), text_(format.bytes()), values_(values) {}

  Result<TemplateText> run() {
    size_t literal = 0;
    while (true) {
      at_ = text_.find('%', literal);
      const size_t end = std::min(at_, text_.size());
      TROUPE_RETURN_IF_ERROR(budget_.grow(out_.size(), end - literal));
      out_.append_slice(format_, literal, end);
      if (at_ == std::string_view::npos) break;
      ++at_;
      TROUPE_RETURN_IF_ERROR(budget_.steps(1));
      TROUPE_RETURN_IF_ERROR(place());
      literal = at_;
    }
    const bool is_spent = !values_.is(Kind::kTuple) ? used_ > 0 : used_ == values_.as_list().size();
    if (!is_spent && !values_.is(Kind::kDict)) return format_error("there are values left over");
    return std::move(out_);
  }

 private:
  Status place() {
    Spec spec;
    std::optional<TemplateValue> named;
    if (at_ < text_.size() && text_[at_] == '(') {
      const size_t close = text_.find(')', at_);
      if (close == std::string_view::npos || !values_.is(Kind::kDict)) {
        return format_error("a named place needs a dict");
      }
      const TemplateValue* value = values_.find(text_.substr(at_ + 1, close - at_ - 1));
      if (value == nullptr) return format_error("there is no value for a named place");
      named = *value;
      at_ = close + 1;
    }
    for (; at_ < text_.size() && std::string_view("-+ 0#").find(text_[at_]) != std::string::npos;
         ++at_) {
      if (text_[at_] == '-') spec.align = '<';
      if (text_[at_] == '0') spec.fill = "0";
      if (text_[at_] == '+' || (text_[at_] == ' ' && spec.sign != '+')) spec.sign = text_[at_];
    }
    spec.width = std::max<int64_t>(0, read_number(text_, at_));
    int64_t precision = -1;
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      precision = std::max<int64_t>(0, read_number(text_, at_));
    }
    TROUPE_RETURN_IF_ERROR(check_sizes(spec, precision));
    spec.precision = static_cast<int>(precision);
    if (at_ == text_.size()) return format_error("the last '%' has no letter");
    spec.type = text_[at_++];
    return write(spec, named);
  }

  Status write(Spec spec, const std::optional<TemplateValue>& named) {
    if (spec.type == '%') {
      out_.append_slice(format_, at_ - 1, at_);
      return ok_status();
    }
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue value,
                            named ? Result<TemplateValue>(*named) : next_value());
    if (spec.type == 's' || spec.type == 'r') {
      spec.fill = " ";
      TROUPE_ASSIGN_OR_RETURN(TemplateText text, spec.type == 's' ? to_text(budget_, value)
                                                                  : repr_text(budget_, value));
      if (spec.align == 0) spec.align = '>';
      return append_text(budget_, out_, std::move(text), spec);
    }
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    constexpr std::string_view kTypes = "dxXofFeEgG";
    if (kTypes.find(spec.type) == std::string_view::npos) {
      return format_error("'%" + std::string(1, spec.type) + "' is not known");
    }
    TemplateValue number = value;
    if (spec.type == 'd' && value.is(Kind::kFloat)) {
      if (!(std::abs(value.as_number()) < 9e18)) return format_error("the number is too large");
      number = TemplateValue::integer(static_cast<int64_t>(value.as_number()));
    }
    std::string sign;
    TROUPE_ASSIGN_OR_RETURN(const TemplateText digits, number_text(number, spec, sign));
    return append_padded(budget_, out_, digits, sign, spec, spec.fill == "0" ? '=' : '>');
  }

  Result<TemplateValue> next_value() {
    if (values_.is(Kind::kTuple)) {
      if (used_ == values_.as_list().size()) return format_error("there are too few values");
      return values_.as_list()[used_++];
    }
    if (used_++ > 0) return format_error("there are too few values");
    return values_;
  }

  Budget& budget_;
  const TemplateText& format_;
  std::string_view text_;
  const TemplateValue& values_;
  TemplateText out_;
  size_t at_ = 0;
  size_t used_ = 0;
};

// ---- 'a {}'.format(value)

class BraceFormatter {
 public:
  BraceFormatter(Budget& budget, const TemplateText& format, const CallArguments& arguments)
      : budget_(budget), format_(format), text_(format.bytes()), arguments_(arguments) {}

  Result<TemplateText> run() {
    size_t literal = 0;
    while (true) {
      const size_t brace = std::min(text_.find_first_of("{}", literal), text_.size());
      TROUPE_RETURN_IF_ERROR(budget_.grow(out_.size(), brace - literal));
      out_.append_slice(format_, literal, brace);
      if (brace == text_.size()) return std::move(out_);
      TROUPE_RETURN_IF_ERROR(budget_.steps(1));
      const bool is_doubled = brace + 1 < text_.size() && text_[brace + 1] == text_[brace];
      if (is_doubled) {
        out_.append_slice(format_, brace, brace + 1);
        literal = brace + 2;
        continue;
      }
      if (text_[brace] == '}') return format_error("a single '}' stands in the text");
      const size_t close = text_.find_first_of("{}", brace + 1);
      if (close == std::string_view::npos) return format_error("a '{' is not closed");
      if (text_[close] == '{') return format_error("places inside of places are not supported");
      TROUPE_RETURN_IF_ERROR(place(text_.substr(brace + 1, close - brace - 1)));
      literal = close + 1;
    }
  }

 private:
  Status place(std::string_view field) {
    const size_t colon = std::min(field.find(':'), field.size());
    std::string_view name = field.substr(0, colon);
    char conversion = 0;
    if (const size_t mark = name.find('!'); mark != std::string_view::npos) {
      if (name.size() != mark + 2) return format_error("'!' needs one letter");
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    TROUPE_ASSIGN_OR_RETURN(TemplateValue value, find(name));
    Spec spec;
    if (colon < field.size()) {
      TROUPE_ASSIGN_OR_RETURN(spec, parse_spec(field.substr(colon + 1)));
    }
    if (conversion == 'r' || conversion == 's') {
      TROUPE_ASSIGN_OR_RETURN(TemplateText text, conversion == 'r' ? repr_text(budget_, value)
                                                                   : to_text(budget_, value));
      value = TemplateValue::text(std::move(text));
    } else if (conversion != 0) {
      return format_error("'!" + std::string(1, conversion) + "' is not known");
    }
    return write(value, spec);
  }

  Status write(const TemplateValue& value, Spec spec) {
    const bool is_plain_number = value.is_number() && !value.is(Kind::kBool) && spec.type != 's';
    if (spec.type == 0 && !is_plain_number) spec.type = 's';
    if (spec.type == 's') {
      if (value.is_number() && !value.is(Kind::kBool)) return format_error("a number as a text");
      TROUPE_ASSIGN_OR_RETURN(TemplateText text, to_text(budget_, value));
      return append_text(budget_, out_, std::move(text), spec);
    }
    if (spec.type == 0 && !value.is(Kind::kFloat)) spec.type = 'd';
    if (spec.type == 0 && spec.precision >= 0) spec.type = 'g';
    if (is_integer_type(spec.type) && value.is(Kind::kFloat)) {
      return format_error("a float as an integer");
    }
    std::string sign;
    TROUPE_ASSIGN_OR_RETURN(const TemplateText digits, number_text(value, spec, sign));
    return append_padded(budget_, out_, digits, sign, spec, '>');
  }

  static Result<Spec> parse_spec(std::string_view text) {
    Spec spec;
    constexpr std::string_view kAligns = "<>^=";
    size_t at = 0;
    const size_t first_bytes = text.empty() ? 0 : decode(text, 0).bytes;
    if (first_bytes < text.size() && kAligns.find(text[first_bytes]) != std::string::npos) {
      spec.fill = text.substr(0, first_bytes);
      spec.align = text[first_bytes];
      at = first_bytes + 1;
    } else if (!text.empty() && kAligns.find(text[0]) != std::string::npos) {
      spec.align = text[0];
      at = 1;
    }
    if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) {
      spec.sign = text[at++];
    }
    if (at < text.size() && text[at] == '0') {
      if (spec.align == 0) {
        spec.fill = "0";
        spec.align = '=';
      }
      ++at;
    }
    spec.width = std::max<int64_t>(0, read_number(text, at));
    if (at < text.size() && text[at] == ',') {
      spec.has_commas = true;
      ++at;
    }
    int64_t precision = -1;
    if (at < text.size() && text[at] == '.') {
      ++at;
      precision = read_number(text, at);
      if (precision < 0) return format_error("'.' needs a number");
    }
    TROUPE_RETURN_IF_ERROR(check_sizes(spec, precision));
    spec.precision = static_cast<int>(precision);
    constexpr std::string_view kTypes = "sdxXobfFeEgG%";
    if (at < text.size() && kTypes.find(text[at]) != std::string::npos) spec.type = text[at++];
    if (at < text.size()) return format_error("the form '" + std::string(text) + "' is not known");
    return spec;
  }

  // The argument of a place: {} the next, {0} by number, {name}; then .name and [index].
  Result<TemplateValue> find(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    const std::string_view first = name.substr(0, end);
    size_t at = 0;
    const int64_t number = read_number(first, at);
    TemplateValue value;
    if (first.empty() || (number >= 0 && at == first.size())) {
      if ((first.empty() ? numbered_ : counted_)) {
        return format_error("places with and without numbers are mixed");
      }
      (first.empty() ? counted_ : numbered_) = true;
      const size_t place = first.empty() ? next_++ : static_cast<size_t>(number);
      if (place >= arguments_.positional.size()) return format_error("there are too few values");
      value = arguments_.positional[place];
    } else {
      const auto found =
          std::ranges::find(arguments_.named, first, &std::pair<std::string, TemplateValue>::first);
      if (found == arguments_.named.end()) {
        return format_error("there is no value for " + quoted(first));
      }
      value = found->second;
    }
    return follow(value, name.substr(end));
  }

  Result<TemplateValue> follow(TemplateValue value, std::string_view path) {
    while (!path.empty()) {
      TROUPE_RETURN_IF_ERROR(budget_.steps(1));
      if (value.is(Kind::kUndefined)) return format_error("an undefined value has no parts");
      const bool is_index = path[0] == '[';
      const size_t end =
          is_index ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
      if (end == std::string_view::npos) return format_error("a '[' is not closed");
      const std::string_view step = path.substr(1, end - 1);
      size_t at = 0;
      const int64_t number = read_number(step, at);
      const bool is_number = is_index && number >= 0 && at == step.size();
      TROUPE_ASSIGN_OR_RETURN(
          value, is_number  ? get_item(budget_, value, TemplateValue::integer(number))
                 : is_index ? get_item(budget_, value, TemplateValue::markup(std::string(step)))
                            : get_attribute(budget_, value, step));
      path.remove_prefix(is_index ? end + 1 : end);
    }
    return value;
  }

  Budget& budget_;
  const TemplateText& format_;
  std::string_view text_;
  const CallArguments& arguments_;
  TemplateText out_;
  size_t next_ = 0;
  bool counted_ = false;   // a place without a number was there
  bool numbered_ = false;  // one with a number
};

}  // namespace

Result<TemplateText> format_percent(Budget& budget, const TemplateText& format,
                                    const TemplateValue& values) {
  return PercentFormatter(budget, format, values).run();
}

Result<TemplateText> format_braces(Budget& budget, const TemplateText& format,
                                   const CallArguments& arguments) {
  return BraceFormatter(budget, format, arguments).run();
}

}  // namespace troupe::chat_template
