// What a client demands of an answer's form, from the check to random answers: the first byte is
// the kind, the rest its text. Whatever is accepted compiles and allows something at every step
// until the end, or fails with a status.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/assert.h"
#include "engine/grammar/check_grammar.h"
#include "engine/grammar/grammar_compiler.h"
#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {
namespace {

// One token for every byte, one of two, and an end.
struct World {
  World() {
    const ByteAlphabet alphabet;
    std::vector<std::string> spellings;
    for (int byte = 0; byte < 256; ++byte)
      spellings.push_back(alphabet.spelling(static_cast<uint8_t>(byte)));
    spellings.push_back(spellings['"'] + spellings[',']);
    spellings.emplace_back("<end>");
    TokenizerSpec spec;
    spec.model = "gpt2";
    spec.pre = "gpt-2";
    for (const std::string& spelling : spellings) spec.tokens.push_back(spelling);
    spec.types.assign(spellings.size(), TokenType::kNormal);
    spec.types.back() = TokenType::kControl;
    spec.eos = static_cast<TokenId>(spellings.size() - 1);
    auto tokenizer = Tokenizer::create(spec);
    TROUPE_ASSERT(tokenizer.ok(), tokenizer.status().message());
    auto made =
        make_xgrammar_vocabulary(*tokenizer.value(), static_cast<uint32_t>(spellings.size()));
    TROUPE_ASSERT(made.ok(), made.status().message());
    vocabulary = std::move(made).value();
  }
  std::shared_ptr<const GrammarVocabulary> vocabulary;
};

// Takes the allowed token that the input's bytes lead to, for some steps.
void follow(GrammarMatcher& matcher, size_t vocab_size, const uint8_t* data, size_t size) {
  std::vector<uint32_t> mask(mask_words(vocab_size));
  for (size_t step = 0; step < 40 && !matcher.ended(); ++step) {
    if (!matcher.fill_mask(mask).ok()) return;
    const size_t start = size == 0 ? step : data[step % size] * 7 + step;
    size_t tried = 0;
    while (tried < vocab_size) {
      const size_t token = (start + tried) % vocab_size;
      if ((mask[token / 32] >> (token % 32) & 1U) != 0) break;
      ++tried;
    }
    TROUPE_ASSERT(tried < vocab_size, step);  // every byte has a token: nothing is a dead end
    const auto token = static_cast<TokenId>((start + tried) % vocab_size);
    const Status accepted = matcher.accept(token);
    TROUPE_ASSERT(accepted.ok(), accepted.message());
  }
}

void try_demand(const uint8_t* data, size_t size) {
  static const World world;
  GrammarSpec spec;
  spec.kind = static_cast<GrammarKind>(1 + data[0] % 6);
  spec.text.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!check_grammar(spec).ok()) return;
  const auto compiled = world.vocabulary->make_compiler()->compile(spec);
  if (!compiled.ok()) return;
  auto matcher = compiled.value()->start({});
  if (!matcher.ok()) return;
  follow(*matcher.value(), world.vocabulary->vocab_size(), data, size);
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) troupe::try_demand(data, size);
  return 0;
}
