#pragma once
// What the two halves of the parser (expressions, statements) share: the place in the tokens, the
// nesting depth and the names seen so far.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat_template/lexer.h"
#include "engine/chat_template/limits.h"
#include "troupe/status.h"

namespace troupe::chat_template {

class ParseState {
 public:
  // `tokens` end in kEnd.
  ParseState(std::vector<Token> tokens, const ChatTemplateLimits& limits);

  [[nodiscard]] const Token& current() const { return tokens_[position_]; }
  // The token behind the current one; the last one again at the end.
  [[nodiscard]] const Token& next() const;
  [[nodiscard]] int line() const { return current().line; }
  // Returns the current token and steps over it. The end stays where it is.
  const Token& take();
  // Steps over the operator or name if it is there.
  bool skip_operator(std::string_view sign);
  bool skip_name(std::string_view name);
  Status expect_operator(std::string_view sign);
  Status expect_name(std::string_view name);
  Status expect_kind(TokenKind kind, std::string_view what);
  // Any name; `what` says which kind of name is due.
  Result<std::string> expect_identifier(std::string_view what);
  // "unexpected 'x', expected `what`".
  [[nodiscard]] Status unexpected(std::string_view what) const;

  // Fails if a syntax tree of this depth is too deep.
  [[nodiscard]] Status check_depth(uint32_t depth, int line) const;

  void mention(const std::string& name) { ++mentions_[name]; }
  [[nodiscard]] size_t mention_count(const std::string& name) const;
  [[nodiscard]] std::set<std::string> mentioned_names() const;
  void assign(const std::string& name) { assigned_.insert(name); }
  void call(const std::string& name, int line) { calls_.emplace_back(name, line); }
  // Whether each function that is called is built in or assigned somewhere.
  [[nodiscard]] Status check_calls() const;

  // Counts one level of the parser's own recursion while it lives.
  class Level {
   public:
    explicit Level(ParseState& state) : state_(state) { ++state_.level_; }
    ~Level() { --state_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    [[nodiscard]] Status check() const { return state_.check_depth(state_.level_, state_.line()); }

   private:
    ParseState& state_;
  };

 private:
  std::vector<Token> tokens_;
  const ChatTemplateLimits& limits_;
  size_t position_ = 0;
  uint32_t level_ = 0;
  std::map<std::string, size_t> mentions_;
  std::set<std::string> assigned_;
  std::vector<std::pair<std::string, int>> calls_;
};

}  // namespace troupe::chat_template
