#pragma once
// What a client may demand of the form of an answer. Value type; travels with the sampling
// parameters from the gateway, which has checked it (check_grammar.h), to the worker, which
// compiles it (grammar_compiler.h).

#include <cstdint>
#include <string>

namespace troupe {

enum class GrammarKind : uint8_t {
  kNone,           // free text
  kJsonObject,     // any JSON object (RFC 8259); no text
  kJsonSchema,     // text: a JSON Schema, of the keywords that docs/structured-output.md lists
  kRegex,          // text: a regular expression that the whole answer matches
  kChoice,         // text: a JSON array of strings, of which the answer is one
  kEbnf,           // text: a grammar in GBNF, whose start rule is `root`
  kStructuralTag,  // text: a structural tag in xgrammar's JSON form: free text with forced parts
};

struct GrammarSpec {
  GrammarKind kind = GrammarKind::kNone;
  std::string text;

  [[nodiscard]] bool empty() const { return kind == GrammarKind::kNone; }
  bool operator==(const GrammarSpec&) const = default;
};

}  // namespace troupe
