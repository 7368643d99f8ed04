#pragma once
// JSON as a grammar: the parts that every schema is made of. What they match is RFC 8259's JSON, in
// a form that every reader takes: strings are UTF-8 without lone surrogates, numbers finite. White
// space between tokens is as long as it likes: the matcher bounds it (kWhiteSpaceMax).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/rules.h"

namespace troupe {

// The text as a JSON string, quotes included, in its one spelling without needless escapes.
[[nodiscard]] std::string json_quoted(std::string_view text);
// Characters that stand for themselves in a JSON string.
[[nodiscard]] const CodePointSet& plain_json_characters();

// Makes the shared rules when they are first asked for.
class JsonRules {
 public:
  // `rules` must outlive this object.
  explicit JsonRules(Rules& rules) : rules_(rules) {}

  [[nodiscard]] static Expr white_space();
  [[nodiscard]] Expr string();
  // Of `least` to `most` characters (kUnbounded: any number), none of them escaped.
  [[nodiscard]] static Expr string_of_length(uint32_t least, uint32_t most);
  [[nodiscard]] Expr number();
  [[nodiscard]] Expr integer();
  [[nodiscard]] static Expr boolean();
  [[nodiscard]] Expr value();   // any
  [[nodiscard]] Expr object();  // with any members
  [[nodiscard]] Expr array();   // of any items

  // `first` items one after the other, of which at least `least` come, then up to `more_most` of
  // `more`, at least as many as `least` leaves. `more` null: none.
  [[nodiscard]] Expr array_of(const std::string& place, std::vector<Expr> first, const Expr* more,
                              uint32_t least, uint32_t most);

  struct Member {
    std::string name;
    Expr value;
    bool is_required = false;
  };
  struct Further {  // members that are not declared
    Expr value;
    uint32_t least = 0, most = Expr::kUnbounded;  // how many; only without declared ones
  };
  // The members in their order, then further ones, whose names are none of the declared.
  [[nodiscard]] Expr object_of(const std::string& place, std::vector<Member> members,
                               const Further* further);

 private:
  [[nodiscard]] static Expr comma();
  // A key that is none of these names, with its quotes.
  [[nodiscard]] Expr other_key(const std::string& place, const std::vector<Member>& members);

  Rules& rules_;
  std::optional<Expr> string_, number_, integer_, value_, object_, array_;
};

}  // namespace troupe
