#pragma once
// Cuts a template's source into text and tokens and settles all white space control, so that the
// parser sees text exactly as it is to be printed.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat_template/limits.h"
#include "troupe/status.h"

namespace troupe::chat_template {

enum class TokenKind : uint8_t {
  kText,        // to be printed as it is
  kBlockBegin,  // {%
  kBlockEnd,
  kPrintBegin,  // {{
  kPrintEnd,
  kName,
  kString,  // `text` is unescaped
  kInteger,
  kFloat,
  kOperator,
  kEnd,  // behind the last token
};

struct Token {
  TokenKind kind;
  std::string text;  // also the digits of numbers and the signs of an operator
  int line;          // from 1
  int64_t integer = 0;
  double number = 0;

  [[nodiscard]] bool is_name(std::string_view name) const {
    return kind == TokenKind::kName && text == name;
  }
  [[nodiscard]] bool is_operator(std::string_view sign) const {
    return kind == TokenKind::kOperator && text == sign;
  }
};

// The last token is kEnd and the only one. Errors name the line.
[[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view source,
                                                  const ChatTemplateLimits& limits);

}  // namespace troupe::chat_template
