#include "engine/grammar/json_rules.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/limits.h"
#include "engine/grammar/number_rules.h"

namespace troupe {
namespace {

Expr hex_digit() {
  return one_of({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
}

// What follows the backslash of an escaped unit: the digits of one that is no surrogate, or of a
// pair of surrogates in their order.
Expr unicode_escape() {
  const Expr d = one_of({{'d', 'd'}, {'D', 'D'}});
  const Expr other = one_of({{'0', '9'}, {'a', 'c'}, {'e', 'f'}, {'A', 'C'}, {'E', 'F'}});
  const Expr high = one_of({{'8', '9'}, {'a', 'b'}, {'A', 'B'}});
  const Expr low = one_of({{'c', 'f'}, {'C', 'F'}});
  const Expr two = repeat(hex_digit(), 2, 2);
  return sequence({literal("u"), choice({sequence({other, repeat(hex_digit(), 3, 3)}),
                                         sequence({d, one_of({{'0', '7'}}), two}),
                                         sequence({d, high, two, literal("\\u"), d, low, two})})});
}

// After the opening quote. Right-recursive and never empty, because the compiler then decides most
// tokens beforehand; a repetition of alternatives would have it try them all at each step.
Expr string_rest(const Expr& itself) {
  const Expr simple = one_of(CodePointSet::of("\"\\/bfnrt"));
  return choice({literal("\""), sequence({one_of(plain_json_characters()), itself}),
                 sequence({literal("\\"), choice({simple, unicode_escape()}), itself})});
}

}  // namespace

std::string json_quoted(std::string_view text) {
  return nlohmann::json(std::string(text)).dump();
}

const CodePointSet& plain_json_characters() {
  static const CodePointSet kPlain = [] {
    CodePointSet special{{1, 0x1F}};
    special.add(CodePointSet::of("\"\\"));
    return special.complement();
  }();
  return kPlain;
}

Expr JsonRules::white_space() {
  return repeat(one_of({{' ', ' '}, {'\n', '\n'}, {'\t', '\t'}}), 0, Expr::kUnbounded);
}

Expr JsonRules::string() {
  if (!string_) {
    const uint32_t rest = rules_.declare("a string");
    rules_.define(rest, string_rest(Rules::ref(rest)));
    string_ = rules_.add("a string", sequence({literal("\""), Rules::ref(rest)}));
  }
  return *string_;
}

Expr JsonRules::string_of_length(uint32_t least, uint32_t most) {
  return sequence(
      {literal("\""), repeat(one_of(plain_json_characters()), least, most), literal("\"")});
}

Expr JsonRules::number() {
  if (!number_) number_ = rules_.add("a number", any_number());
  return *number_;
}

Expr JsonRules::integer() {
  if (!integer_) integer_ = rules_.add("an integer", any_integer());
  return *integer_;
}

Expr JsonRules::boolean() {
  return choice({literal("true"), literal("false")});
}

Expr JsonRules::value() {
  if (!value_) {
    const uint32_t rule = rules_.declare("a value");
    value_ = Rules::ref(rule);
    rules_.define(rule,
                  choice({string(), number(), object(), array(), boolean(), literal("null")}));
  }
  return *value_;
}

Expr JsonRules::object() {
  if (!object_) {
    const uint32_t rule = rules_.declare("an object");
    object_ = Rules::ref(rule);
    const Expr member = rules_.add(
        "a member", sequence({string(), literal(":"), white_space(), value(), white_space()}));
    const Expr members =
        sequence({member, repeat(sequence({comma(), member}), 0, Expr::kUnbounded)});
    rules_.define(rule, sequence({literal("{"), white_space(), optional(members), literal("}")}));
  }
  return *object_;
}

Expr JsonRules::array() {
  if (!array_) {
    const uint32_t rule = rules_.declare("an array");
    array_ = Rules::ref(rule);
    const Expr item = sequence({value(), white_space()});
    const Expr items = sequence({item, repeat(sequence({comma(), item}), 0, Expr::kUnbounded)});
    rules_.define(rule, sequence({literal("["), white_space(), optional(items), literal("]")}));
  }
  return *array_;
}

Expr JsonRules::comma() {
  return sequence({literal(","), white_space()});
}

// From the end: after item k, what may still come. As many rules as there are optional items.
Expr JsonRules::array_of(const std::string& place, std::vector<Expr> first, const Expr* more,
                         uint32_t least, uint32_t most) {
  const auto count = static_cast<uint32_t>(first.size());
  TROUPE_ASSERT(least <= most && (more != nullptr || least <= count), place, least, most, count);
  const auto item = [this](Expr value) { return sequence({std::move(value), white_space()}); };
  Expr rest = literal("");
  const uint32_t declared = std::min(count, most);
  if (more != nullptr && most > count) {
    const uint32_t more_most = most == Expr::kUnbounded ? most : most - count;
    const uint32_t more_least = least > count ? least - count : 0;
    if (count == 0) {
      const Expr next =
          repeat(sequence({comma(), item(*more)}), more_least > 0 ? more_least - 1 : 0,
                 more_most == Expr::kUnbounded ? more_most : more_most - 1);
      rest = sequence({item(*more), next});
      if (more_least == 0) rest = optional(std::move(rest));
    } else {
      rest = repeat(sequence({comma(), item(*more)}), more_least, more_most);
    }
  }
  for (uint32_t k = declared; k-- > 0;) {
    Expr here = item(std::move(first[k]));
    if (k > 0) here = sequence({comma(), std::move(here)});
    rest = sequence({std::move(here), std::move(rest)});
    if (k >= least) rest = rules_.add(place, optional(std::move(rest)));
  }
  return sequence({literal("["), white_space(), std::move(rest), literal("]")});
}

Expr JsonRules::object_of(const std::string& place, std::vector<Member> members,
                          const Further* further) {
  const auto member = [this](Expr key, Expr value) {
    return sequence({std::move(key), literal(":"), white_space(), std::move(value), white_space()});
  };
  // `first`: nothing has been written yet; `rest`: something has, so that a comma comes first.
  Expr first = literal("");
  Expr rest = literal("");
  if (further != nullptr && further->most > 0) {
    TROUPE_ASSERT(members.empty() || (further->least == 0 && further->most == Expr::kUnbounded));
    const Expr one = rules_.add(place, member(other_key(place, members), further->value));
    const bool has_bound = further->most != Expr::kUnbounded;
    first =
        sequence({one, repeat(sequence({comma(), one}), further->least > 0 ? further->least - 1 : 0,
                              has_bound ? further->most - 1 : further->most)});
    if (further->least == 0) first = optional(std::move(first));
    rest = rules_.add(place, repeat(sequence({comma(), one}), 0, Expr::kUnbounded));
    first = rules_.add(place, std::move(first));
  }
  for (size_t k = members.size(); k-- > 0;) {
    Expr here = member(literal(json_quoted(members[k].name)), std::move(members[k].value));
    if (!members[k].is_required) here = rules_.add(place, std::move(here));
    const Expr follows =
        k + 1 < members.size() || further != nullptr ? rules_.add(place, rest) : rest;
    const Expr as_first = sequence({here, follows});
    const Expr as_rest = sequence({comma(), here, follows});
    if (members[k].is_required) {
      first = as_first;
      rest = as_rest;
    } else {
      first = rules_.add(place, choice({as_first, first}));
      rest = choice({as_rest, follows});
    }
  }
  return sequence({literal("{"), white_space(), std::move(first), literal("}")});
}

namespace {

// Names by their characters.
struct NameTrie {
  std::map<uint32_t, NameTrie> next;
  bool ends_here = false;
};

// After some characters that begin a name: every way to go on that does not end up at one.
// `depth` is bounded by the longest name.
Expr avoid(const NameTrie& node, const Expr& anything, Rules& rules, const std::string& place) {
  std::vector<Expr> parts;
  CodePointSet taken;
  for (const auto& [code_point, next] : node.next) {
    std::string text;
    append_utf8(code_point, text);
    parts.push_back(sequence({literal(text), avoid(next, anything, rules, place)}));
    taken.add(code_point, code_point);
  }
  parts.push_back(sequence({one_of(plain_json_characters().without(taken)), anything}));
  if (!node.ends_here) parts.push_back(literal("\""));
  return rules.add(place, choice(std::move(parts)));
}

}  // namespace

// Such a key has no escapes: one that spelled a declared name with them would be that name again.
Expr JsonRules::other_key(const std::string& place, const std::vector<Member>& members) {
  if (members.empty()) return string();
  NameTrie names;
  for (const Member& member : members) {
    std::vector<uint32_t> code_points;
    const bool is_utf8 = decode_utf8(member.name, code_points);
    TROUPE_ASSERT(is_utf8, place);
    // A name that needs escapes cannot be spelled without.
    const bool is_plain = std::all_of(
        code_points.begin(), code_points.end(),
        [](uint32_t code_point) { return plain_json_characters().contains(code_point); });
    if (!is_plain) continue;
    NameTrie* node = &names;
    for (const uint32_t code_point : code_points) node = &node->next[code_point];
    node->ends_here = true;
  }
  const Expr anything = rules_.add(
      place,
      sequence({repeat(one_of(plain_json_characters()), 0, Expr::kUnbounded), literal("\"")}));
  return sequence({literal("\""), avoid(names, anything, rules_, place)});
}

}  // namespace troupe
