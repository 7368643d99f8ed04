#pragma once
// Finds the end of a JSON value in a text that arrives in pieces.

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe {

// Takes the bytes of one JSON value (RFC 8259), strictly: no white space before it, no trailing
// commas, no raw control characters in strings. Does not look at whether strings are UTF-8. Value
// type.
class JsonScanner {
 public:
  enum class Step : uint8_t {
    kMore,     // the byte belongs to the value, which goes on
    kLast,     // the byte is the value's last one
    kOutside,  // the value, a number, had ended before this byte, which is not part of it
    kBad,      // no JSON value goes on like this, or one nested deeper than kCallDepthMax
  };
  // Not to be called after another answer than kMore.
  [[nodiscard]] Step push(char c);

 private:
  enum class State : uint8_t {
    kValue,         // a value must begin
    kFirstElement,  // a value, or the end of an array
    kFirstKey,      // a key, or the end of an object
    kKey,
    kColon,
    kBehindValue,  // a comma or the end of the container
    kString,
    kEscape,
    kUnicode,  // digits of \u
    kLiteral,  // the rest of true, false or null
    kMinus,
    kZero,
    kInteger,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
  };

  [[nodiscard]] Step begin_value(char c);
  [[nodiscard]] Step in_string(char c);
  [[nodiscard]] Step in_literal(char c);
  [[nodiscard]] Step in_number(char c);
  [[nodiscard]] Step behind_value(char c);
  [[nodiscard]] Step value_ended();
  [[nodiscard]] bool open(char closer);

  State state_ = State::kValue;
  bool string_is_key_ = false;
  uint8_t unicode_digits_ = 0;
  std::string_view literal_rest_;
  std::vector<char> closers_;  // of the open containers
};

}  // namespace troupe
