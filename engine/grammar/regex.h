#pragma once
// Regular expressions as clients write them, turned into grammar expressions.

#include <string_view>

#include "engine/grammar/rules.h"
#include "troupe/status.h"

namespace troupe {

enum class RegexUse {
  kText,        // the expression describes what is generated
  kJsonString,  // … what a JSON string holds, without its quotes; characters that JSON does not
                // allow as they are become escapes, or are left out of sets of over 1,000
                // characters
};

// ECMAScript's syntax: characters, `.` (no line ends), classes, \d \w \s and their opposites (\d
// and \w of ASCII), escapes, groups (also named, Python's way too), alternatives, * + ? {n} {n,}
// {n,m}, lazy ones (which makes no difference here). The whole text has to match: `^` at the start
// and `$` at the end of an alternative are allowed and change nothing. kInvalidArgument, with the
// place in the pattern: a syntax error; what cannot be decided character by character (lookaround,
// back-references, word boundaries, flags, \p); an anchor elsewhere; more than grammar_limits.h
// allows.
[[nodiscard]] Result<Expr> parse_regex(std::string_view pattern, RegexUse use);

}  // namespace troupe
