#include "engine/chat_template/parse_state.h"

#include "base/assert.h"
#include "engine/chat_template/builtins.h"
#include "engine/chat_template/errors.h"

namespace troupe::chat_template {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kPrintBegin:
      return "'{{'";
    case TokenKind::kPrintEnd:
      return "'}}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return quoted(token.text);
  }
}

}  // namespace

ParseState::ParseState(std::vector<Token> tokens, const ChatTemplateLimits& limits)
    : tokens_(std::move(tokens)), limits_(limits) {
  TROUPE_ASSERT(!tokens_.empty() && tokens_.back().kind == TokenKind::kEnd, tokens_.size());
}

const Token& ParseState::next() const {
  return tokens_[std::min(position_ + 1, tokens_.size() - 1)];
}

const Token& ParseState::take() {
  const Token& token = tokens_[position_];
  if (token.kind != TokenKind::kEnd) ++position_;
  return token;
}

bool ParseState::skip_operator(std::string_view sign) {
  if (!current().is_operator(sign)) return false;
  take();
  return true;
}

bool ParseState::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

Status ParseState::expect_operator(std::string_view sign) {
  return skip_operator(sign) ? ok_status() : unexpected(quoted(sign));
}

Status ParseState::expect_name(std::string_view name) {
  return skip_name(name) ? ok_status() : unexpected(quoted(name));
}

Status ParseState::expect_kind(TokenKind kind, std::string_view what) {
  if (current().kind != kind) return unexpected(what);
  take();
  return ok_status();
}

Result<std::string> ParseState::expect_identifier(std::string_view what) {
  if (current().kind != TokenKind::kName) return unexpected(what);
  return take().text;
}

Status ParseState::unexpected(std::string_view what) const {
  return syntax_error(line(),
                      "unexpected " + describe(current()) + ", expected " + std::string(what));
}

Status ParseState::check_depth(uint32_t depth, int line) const {
  if (depth <= limits_.nesting_max) return ok_status();
  return syntax_error(line, "the template is nested deeper than nesting_max = " +
                                std::to_string(limits_.nesting_max) + "; flatten it");
}

size_t ParseState::mention_count(const std::string& name) const {
  const auto found = mentions_.find(name);
  return found == mentions_.end() ? 0 : found->second;
}

std::set<std::string> ParseState::mentioned_names() const {
  std::set<std::string> names;
  for (const auto& [name, count] : mentions_) names.insert(name);
  return names;
}

Status ParseState::check_calls() const {
  for (const auto& [name, line] : calls_) {
    if (find_function(name) || assigned_.contains(name)) continue;
    return unsupported(line, "the function " + quoted(name));
  }
  return ok_status();
}

}  // namespace troupe::chat_template
