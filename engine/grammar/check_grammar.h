#pragma once
// Whether a demand on the form of an answer can be met, decided where the request enters.

#include <string>

#include "engine/grammar/grammar_spec.h"
#include "troupe/status.h"

namespace troupe {

// What the compiler gets: every kind of demand in one of two forms.
struct GrammarText {
  bool is_structural_tag = false;  // else EBNF whose root rule is `root`
  std::string text;
};

// Pure; milliseconds at the limits. kInvalidArgument: the demand is malformed, uses what is not
// supported (a keyword by name), can never be met, or is over a limit of grammar_limits.h. `param`
// is the place within the demand's text ("properties.age.minimum"), or empty.
// Precondition: spec is not empty().
[[nodiscard]] Result<GrammarText> lower_grammar(const GrammarSpec& spec);

// As lower_grammar(); ok also for an empty spec.
[[nodiscard]] Status check_grammar(const GrammarSpec& spec);

}  // namespace troupe
