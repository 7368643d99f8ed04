#include "actors/gateway/tools/json_scanner.h"

#include "actors/gateway/tools/limits.h"

namespace troupe {

namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace

bool JsonScanner::open(char closer) {
  if (closers_.size() >= kCallDepthMax) return false;
  closers_.push_back(closer);
  state_ = closer == '}' ? State::kFirstKey : State::kFirstElement;
  return true;
}

JsonScanner::Step JsonScanner::value_ended() {
  if (closers_.empty()) return Step::kLast;
  state_ = State::kBehindValue;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::begin_value(char c) {
  switch (c) {
    case '{':
      return open('}') ? Step::kMore : Step::kBad;
    case '[':
      return open(']') ? Step::kMore : Step::kBad;
    case '"':
      string_is_key_ = false;
      state_ = State::kString;
      return Step::kMore;
    case 't':
      literal_rest_ = "rue";
      break;
    case 'f':
      literal_rest_ = "alse";
      break;
    case 'n':
      literal_rest_ = "ull";
      break;
    case '-':
      state_ = State::kMinus;
      return Step::kMore;
    default:
      if (!is_digit(c)) return Step::kBad;
      state_ = c == '0' ? State::kZero : State::kInteger;
      return Step::kMore;
  }
  state_ = State::kLiteral;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::in_string(char c) {
  switch (state_) {
    case State::kEscape:
      if (c == 'u') {
        unicode_digits_ = 0;
        state_ = State::kUnicode;
        return Step::kMore;
      }
      state_ = State::kString;
      return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos ? Step::kMore
                                                                              : Step::kBad;
    case State::kUnicode:
      if (!is_hex(c)) return Step::kBad;
      if (++unicode_digits_ == 4) state_ = State::kString;
      return Step::kMore;
    default:
      break;
  }
  if (c == '\\') {
    state_ = State::kEscape;
    return Step::kMore;
  }
  if (c != '"') return static_cast<uint8_t>(c) < 0x20 ? Step::kBad : Step::kMore;
  if (!string_is_key_) return value_ended();
  state_ = State::kColon;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::in_literal(char c) {
  if (c != literal_rest_.front()) return Step::kBad;
  literal_rest_.remove_prefix(1);
  return literal_rest_.empty() ? value_ended() : Step::kMore;
}

JsonScanner::Step JsonScanner::in_number(char c) {
  const State from = state_;
  const bool whole = from == State::kZero || from == State::kInteger;
  if (is_digit(c)) {
    if (from == State::kZero) return Step::kBad;
    if (from == State::kMinus) state_ = c == '0' ? State::kZero : State::kInteger;
    if (from == State::kPoint) state_ = State::kFraction;
    if (from == State::kExponent || from == State::kExponentSign) state_ = State::kExponentDigits;
    return Step::kMore;
  }
  if (c == '.' && whole) {
    state_ = State::kPoint;
    return Step::kMore;
  }
  if ((c == 'e' || c == 'E') && (whole || from == State::kFraction)) {
    state_ = State::kExponent;
    return Step::kMore;
  }
  if ((c == '+' || c == '-') && from == State::kExponent) {
    state_ = State::kExponentSign;
    return Step::kMore;
  }
  if (!whole && from != State::kFraction && from != State::kExponentDigits) return Step::kBad;
  if (closers_.empty()) return Step::kOutside;
  state_ = State::kBehindValue;
  return behind_value(c);
}

JsonScanner::Step JsonScanner::behind_value(char c) {
  if (is_space(c)) return Step::kMore;
  if (c == ',') {
    state_ = closers_.back() == '}' ? State::kKey : State::kValue;
    return Step::kMore;
  }
  if (c != closers_.back()) return Step::kBad;
  closers_.pop_back();
  return value_ended();
}

JsonScanner::Step JsonScanner::push(char c) {
  switch (state_) {
    case State::kString:
    case State::kEscape:
    case State::kUnicode:
      return in_string(c);
    case State::kLiteral:
      return in_literal(c);
    case State::kBehindValue:
      return behind_value(c);
    case State::kColon:
      if (is_space(c)) return Step::kMore;
      state_ = State::kValue;
      return c == ':' ? Step::kMore : Step::kBad;
    case State::kFirstKey:
    case State::kKey:
      if (is_space(c)) return Step::kMore;
      if (c == '}' && state_ == State::kFirstKey) {
        closers_.pop_back();
        return value_ended();
      }
      string_is_key_ = true;
      state_ = State::kString;
      return c == '"' ? Step::kMore : Step::kBad;
    case State::kValue:
    case State::kFirstElement:
      if (is_space(c) && !closers_.empty()) return Step::kMore;
      if (c == ']' && state_ == State::kFirstElement) {
        closers_.pop_back();
        return value_ended();
      }
      return begin_value(c);
    default:
      return in_number(c);
  }
}

}  // namespace troupe
