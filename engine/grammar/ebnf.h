#pragma once
// Grammars that clients write, in the EBNF that llama.cpp and xgrammar read.

#include <string_view>

#include "engine/grammar/rules.h"
#include "troupe/status.h"

namespace troupe {

// Lines `name ::= alternatives`, of which one is `root`; "…" with escapes, [classes], (groups),
// `.` for any character but a line end, * + ? {n} {n,} {n,m}; # begins a comment. Names are
// letters, digits, `_` and `-`. A rule ends where the next `name ::=` begins. kInvalidArgument,
// with the line: a syntax error, a rule that is missing or defined twice, more than
// grammar_limits.h allows.
[[nodiscard]] Result<Rules> parse_ebnf(std::string_view text);

}  // namespace troupe
