#include "engine/chat_template/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/assert.h"
#include "engine/chat_template/unicode.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;

// Code points that Python's repr() escapes, as far as texts have them: controls, separators and
// invisible format characters.
bool is_printable(char32_t value) {
  if (value == ' ') return true;
  if (value < 0x20 || (value >= 0x7F && value <= 0xA0) || value == 0xAD) return false;
  const bool is_invisible = (value >= 0x200B && value <= 0x200F) ||
                            (value >= 0x202A && value <= 0x202E) ||
                            (value >= 0x2060 && value <= 0x206F) || value == 0xFEFF;
  return !is_invisible && !is_space(value) && value < kBadByte;
}

void append_hex(std::string& out, char32_t value, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i) out.push_back(kDigits[value >> (4 * i) & 0xF]);
}

void append_escape(std::string& out, char32_t value) {
  if (value >= kBadByte) {
    out += "\\x";
    append_hex(out, value - kBadByte, 2);
  } else if (value <= 0xFF) {
    out += "\\x";
    append_hex(out, value, 2);
  } else if (value <= 0xFFFF) {
    out += "\\u";
    append_hex(out, value, 4);
  } else {
    out += "\\U";
    append_hex(out, value, 8);
  }
}

void append_quoted_repr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.push_back(quote);
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    const char c = text[at];
    if (c == '\\' || c == quote) {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(point.value)) {
      out.append(text.substr(at, point.bytes));
    } else {
      append_escape(out, point.value);
    }
    at += point.bytes;
  }
  out.push_back(quote);
}

Status append_repr(Budget& budget, std::string& out, const TemplateValue& value);

Status append_array_repr(Budget& budget, std::string& out, const TemplateValue& value) {
  const bool is_tuple = value.is(Kind::kTuple);
  out.push_back(is_tuple ? '(' : '[');
  bool is_first = true;
  for (const TemplateValue& element : value.as_list()) {
    if (!is_first) out += ", ";
    is_first = false;
    TROUPE_RETURN_IF_ERROR(append_repr(budget, out, element));
  }
  if (is_tuple && value.as_list().size() == 1) out.push_back(',');
  out.push_back(is_tuple ? ')' : ']');
  return ok_status();
}

Status append_dict_repr(Budget& budget, std::string& out, const TemplateValue& value) {
  out.push_back('{');
  bool is_first = true;
  for (const auto& [key, entry] : value.as_dict()) {
    if (!is_first) out += ", ";
    is_first = false;
    TROUPE_RETURN_IF_ERROR(append_repr(budget, out, key));
    out += ": ";
    TROUPE_RETURN_IF_ERROR(append_repr(budget, out, entry));
  }
  out.push_back('}');
  return ok_status();
}

// The recursion is bounded by limits.value_depth_max, which every container has passed.
Status append_repr(Budget& budget, std::string& out, const TemplateValue& value) {
  TROUPE_RETURN_IF_ERROR(budget.steps(1));
  switch (value.kind()) {
    case Kind::kUndefined:
      out += "Undefined";
      return ok_status();
    case Kind::kNone:
      out += "None";
      return ok_status();
    case Kind::kBool:
      out += value.as_bool() ? "True" : "False";
      return ok_status();
    case Kind::kInt:
      out += std::to_string(value.as_int());
      return ok_status();
    case Kind::kFloat:
      out += float_repr(value.as_number());
      return ok_status();
    case Kind::kText:
      // An escaped character takes up to ten.
      TROUPE_RETURN_IF_ERROR(budget.grow(out.size(), value.as_text().size()));
      append_quoted_repr(out, value.as_text().bytes());
      return ok_status();
    case Kind::kList:
    case Kind::kTuple:
      return append_array_repr(budget, out, value);
    case Kind::kDict:
      return append_dict_repr(budget, out, value);
    default:
      return invalid_argument("a " + std::string(value.type_name()) + " cannot be printed");
  }
}

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonOptions& options) : budget_(budget), options_(options) {}

  // The recursion is bounded like that of append_repr.
  Status write(const TemplateValue& value);
  std::string take() && { return std::move(out_); }

 private:
  Status write_array(const TemplateValue& value);
  Status write_dict(const TemplateValue& value);
  Status write_string(std::string_view text);
  void write_escape(char32_t value);
  Status write_key(const TemplateValue& key);
  Status write_line_begin();
  Result<TemplateValue::Dict> ordered_entries(const TemplateValue& value);

  Budget& budget_;
  const JsonOptions& options_;
  std::string out_;
  size_t level_ = 0;
};

Status JsonWriter::write_line_begin() {
  if (!options_.indent) return ok_status();
  TROUPE_RETURN_IF_ERROR(budget_.grow(out_.size(), level_ * options_.indent->size() + 1));
  out_.push_back('\n');
  for (size_t i = 0; i < level_; ++i) out_ += *options_.indent;
  return ok_status();
}

void JsonWriter::write_escape(char32_t value) {
  if (value > 0xFFFF) {  // as two surrogates
    write_escape(0xD800 + ((value - 0x10000) >> 10));
    write_escape(0xDC00 + ((value - 0x10000) & 0x3FF));
    return;
  }
  out_ += "\\u";
  append_hex(out_, value, 4);
}

Status JsonWriter::write_string(std::string_view text) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  TROUPE_RETURN_IF_ERROR(budget_.grow(out_.size(), text.size() + 2));
  out_.push_back('"');
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    const size_t escape = kEscaped.find(text[at]);
    if (escape != std::string_view::npos) {
      out_.push_back('\\');
      out_.push_back(kLetters[escape]);
    } else if (point.value < 0x20 ||
               (options_.is_ascii && point.value > 0x7E && point.value < kBadByte)) {
      write_escape(point.value);
    } else {
      out_.append(text.substr(at, point.bytes));
    }
    at += point.bytes;
  }
  out_.push_back('"');
  return ok_status();
}

Status JsonWriter::write_key(const TemplateValue& key) {
  if (key.is(Kind::kText)) return write_string(key.as_text().bytes());
  out_.push_back('"');
  TROUPE_RETURN_IF_ERROR(write(key));
  out_.push_back('"');
  return ok_status();
}

Status JsonWriter::write_array(const TemplateValue& value) {
  out_.push_back('[');
  ++level_;
  bool is_first = true;
  for (const TemplateValue& element : value.as_list()) {
    if (!is_first) out_ += options_.item_separator;
    is_first = false;
    TROUPE_RETURN_IF_ERROR(write_line_begin());
    TROUPE_RETURN_IF_ERROR(write(element));
  }
  --level_;
  if (!is_first) TROUPE_RETURN_IF_ERROR(write_line_begin());
  out_.push_back(']');
  return ok_status();
}

Result<TemplateValue::Dict> JsonWriter::ordered_entries(const TemplateValue& value) {
  TemplateValue::Dict entries = value.as_dict();
  TROUPE_RETURN_IF_ERROR(budget_.elements(entries.size() * 8));
  for (const auto& [key, entry] : entries) {
    if (!key.is(Kind::kText)) return invalid_argument("only str keys can be sorted");
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.first.as_text().bytes() < b.first.as_text().bytes();
  });
  return entries;
}

Status JsonWriter::write_dict(const TemplateValue& value) {
  TemplateValue::Dict sorted;
  if (options_.sorts_keys) {
    TROUPE_ASSIGN_OR_RETURN(sorted, ordered_entries(value));
  }
  out_.push_back('{');
  ++level_;
  bool is_first = true;
  for (const auto& [key, entry] : options_.sorts_keys ? sorted : value.as_dict()) {
    if (!is_first) out_ += options_.item_separator;
    is_first = false;
    TROUPE_RETURN_IF_ERROR(write_line_begin());
    TROUPE_RETURN_IF_ERROR(write_key(key));
    out_ += options_.key_separator;
    TROUPE_RETURN_IF_ERROR(write(entry));
  }
  --level_;
  if (!is_first) TROUPE_RETURN_IF_ERROR(write_line_begin());
  out_.push_back('}');
  return ok_status();
}

Status JsonWriter::write(const TemplateValue& value) {
  TROUPE_RETURN_IF_ERROR(budget_.steps(1));
  TROUPE_RETURN_IF_ERROR(budget_.grow(out_.size(), 1));
  switch (value.kind()) {
    case Kind::kNone:
      out_ += "null";
      return ok_status();
    case Kind::kBool:
      out_ += value.as_bool() ? "true" : "false";
      return ok_status();
    case Kind::kInt:
      out_ += std::to_string(value.as_int());
      return ok_status();
    case Kind::kFloat: {
      const double number = value.as_number();
      if (std::isnan(number)) {
        out_ += "NaN";
      } else if (std::isinf(number)) {
        out_ += number > 0 ? "Infinity" : "-Infinity";
      } else {
        out_ += float_repr(number);
      }
      return ok_status();
    }
    case Kind::kText:
      return write_string(value.as_text().bytes());
    case Kind::kList:
    case Kind::kTuple:
      return write_array(value);
    case Kind::kDict:
      return write_dict(value);
    default:
      return invalid_argument("'" + std::string(value.type_name()) + "' is no JSON value");
  }
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  TROUPE_ASSERT(scientific.ec == std::errc(), value);
  const std::string_view text(buffer, scientific.ptr - buffer);
  const size_t mark = text.find('e');
  const size_t sign_bytes = text[mark + 1] == '+' ? 1 : 0;
  int exponent = 0;
  std::from_chars(text.data() + mark + 1 + sign_bytes, scientific.ptr, exponent);
  // Python writes plain decimals from 1e-4 up to below 1e16.
  if (exponent < -4 || exponent >= 16) return std::string(text);
  char plain[64];
  const auto fixed = std::to_chars(plain, plain + sizeof(plain), value, std::chars_format::fixed);
  TROUPE_ASSERT(fixed.ec == std::errc(), value);
  std::string result(plain, fixed.ptr);
  if (result.find('.') == std::string::npos) result += ".0";
  return result;
}

Result<TemplateText> to_text(Budget& budget, const TemplateValue& value) {
  if (value.is(Kind::kUndefined)) return TemplateText();
  if (value.is(Kind::kText)) {
    TROUPE_RETURN_IF_ERROR(budget.copy(value.as_text()));
    return value.as_text();
  }
  std::string out;
  TROUPE_RETURN_IF_ERROR(append_repr(budget, out, value));
  return TemplateText(std::move(out), TextOrigin::kData);
}

Result<std::string> to_json(Budget& budget, const TemplateValue& value,
                            const JsonOptions& options) {
  JsonWriter writer(budget, options);
  TROUPE_RETURN_IF_ERROR(writer.write(value));
  return std::move(writer).take();
}

}  // namespace troupe::chat_template
