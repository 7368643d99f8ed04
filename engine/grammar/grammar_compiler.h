#pragma once
// Grammars, compiled for one vocabulary.

#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"
#include "engine/grammar/grammar_matcher.h"
#include "engine/grammar/grammar_spec.h"
#include "troupe/status.h"

namespace troupe {

class Tokenizer;

// Immutable; shared by the sequences that have the same grammar, on any thread.
class CompiledGrammar {
 public:
  virtual ~CompiledGrammar() = default;
  // A matcher that has followed `output` already: empty for a new answer, else what was generated
  // of it elsewhere. kInvalidArgument: the grammar does not allow `output`, or allows nothing after
  // it because it ends with an end token.
  [[nodiscard]] virtual Result<std::unique_ptr<GrammarMatcher>> start(
      std::span<const TokenId> output) const = 0;
};

// Compiles one grammar at a time, and keeps what it has compiled within kCacheBytesMax.
class GrammarCompiler {
 public:
  virtual ~GrammarCompiler() = default;
  // Blocks for milliseconds to seconds; wants kCompileStackBytes of stack. kInvalidArgument: as
  // check_grammar(), or the library refuses it.
  [[nodiscard]] virtual Result<std::shared_ptr<const CompiledGrammar>> compile(
      const GrammarSpec& spec) = 0;
};

// What all compilers for a vocabulary share. Immutable.
class GrammarVocabulary {
 public:
  virtual ~GrammarVocabulary() = default;
  // A compiler with an empty cache. May outlive this object.
  [[nodiscard]] virtual std::unique_ptr<GrammarCompiler> make_compiler() const = 0;
  [[nodiscard]] virtual size_t vocab_size() const = 0;
};

// By xgrammar. Tokens that are hidden from text (control tokens) are never part of an answer; the
// model's end tokens are allowed where the grammar may end. `vocab_size` is that of the logits:
// tokens beyond the tokenizer's are never allowed. Reads the whole vocabulary: tens of
// milliseconds. The tokenizer is not needed afterwards. kUnsupported: the model has no end token.
[[nodiscard]] Result<std::shared_ptr<const GrammarVocabulary>> make_xgrammar_vocabulary(
    const Tokenizer& tokenizer, uint32_t vocab_size);

}  // namespace troupe
