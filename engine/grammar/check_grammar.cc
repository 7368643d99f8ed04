#include "engine/grammar/check_grammar.h"

#include <set>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/ebnf.h"
#include "engine/grammar/json_depth.h"
#include "engine/grammar/json_rules.h"
#include "engine/grammar/json_schema.h"
#include "engine/grammar/limits.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/rules.h"
#include "engine/grammar/structural_tag.h"

namespace troupe {
namespace {

Result<Rules> rules_of_choice(const std::string& text) {
  TROUPE_ASSIGN_OR_RETURN(const auto choices, parse_bounded_json(text, "the list of choices"));
  if (!choices.is_array() || choices.empty())
    return invalid_argument("it must be an array with at least one string");
  if (choices.size() > grammar_limits::kChoicesMax) {
    return invalid_argument("there are " + std::to_string(choices.size()) + " choices, at most " +
                            std::to_string(grammar_limits::kChoicesMax) + " are possible");
  }
  std::vector<Expr> parts;
  std::set<std::string> seen;
  for (size_t i = 0; i < choices.size(); ++i) {
    const std::string param = "[" + std::to_string(i) + "]";
    if (!choices[i].is_string()) return invalid_argument("a choice is not a string", param);
    const auto& one = choices[i].get_ref<const std::string&>();
    if (one.empty()) return invalid_argument("a choice is empty", param);
    if (one.size() > grammar_limits::kChoiceBytesMax) {
      return invalid_argument(
          "a choice has more than " + std::to_string(grammar_limits::kChoiceBytesMax) + " bytes",
          param);
    }
    if (one.find('\0') != std::string::npos)
      return invalid_argument("a choice holds the character U+0000, which is not generated", param);
    if (seen.insert(one).second) parts.push_back(literal(one));
  }
  Rules rules;
  rules.set_root(choice(std::move(parts)));
  return rules;
}

Result<Rules> rules_of(const GrammarSpec& spec) {
  Rules rules;
  switch (spec.kind) {
    case GrammarKind::kJsonObject:
      rules.set_root(JsonRules(rules).object());
      return rules;
    case GrammarKind::kJsonSchema:
      return rules_of_json_schema(spec.text);
    case GrammarKind::kRegex: {
      TROUPE_ASSIGN_OR_RETURN(Expr root, parse_regex(spec.text, RegexUse::kText));
      rules.set_root(std::move(root));
      return rules;
    }
    case GrammarKind::kChoice:
      return rules_of_choice(spec.text);
    case GrammarKind::kEbnf:
      return parse_ebnf(spec.text);
    case GrammarKind::kNone:
    case GrammarKind::kStructuralTag:
      break;
  }
  TROUPE_ASSERT(false, static_cast<int>(spec.kind));
  return rules;
}

}  // namespace

Result<GrammarText> lower_grammar(const GrammarSpec& spec) {
  TROUPE_ASSERT(!spec.empty());
  if (spec.kind == GrammarKind::kStructuralTag) {
    TROUPE_ASSIGN_OR_RETURN(std::string text, lower_structural_tag(spec.text));
    return GrammarText{.is_structural_tag = true, .text = std::move(text)};
  }
  TROUPE_ASSIGN_OR_RETURN(const Rules rules, rules_of(spec));
  TROUPE_RETURN_IF_ERROR(rules.check());
  TROUPE_ASSIGN_OR_RETURN(std::string text, rules.write());
  return GrammarText{.is_structural_tag = false, .text = std::move(text)};
}

Status check_grammar(const GrammarSpec& spec) {
  return spec.empty() ? ok_status() : lower_grammar(spec).status();
}

}  // namespace troupe
