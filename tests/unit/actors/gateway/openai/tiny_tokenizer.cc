#include <boost/test/unit_test.hpp>

#include "engine/tokenizer/byte_alphabet.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe::test {

std::unique_ptr<Tokenizer> make_tiny_tokenizer() {
  const ByteAlphabet alphabet;
  const auto spell = [&](std::string_view bytes) {
    std::string out;
    for (const char c : bytes) out += alphabet.spelling(static_cast<uint8_t>(c));
    return out;
  };
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(spell(std::string(1, char(byte))));
  tokens.insert(tokens.end(), {"<|im_start|>", "<|im_end|>", spell("Hello"), spell(" world"),
                               spell("\xF0\x9F\xA6"), spell("\xA6!")});
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt-2";
  spec.tokens.assign(tokens.begin(), tokens.end());
  spec.types.assign(tokens.size(), TokenType::kNormal);
  spec.types[kImStart] = TokenType::kControl;
  spec.types[kImEnd] = TokenType::kControl;
  spec.eos = kImEnd;
  Result<std::unique_ptr<Tokenizer>> made = Tokenizer::create(spec);
  BOOST_REQUIRE_MESSAGE(made.ok(), made.status().message());
  return std::move(made).value();
}

std::vector<TokenId> byte_tokens(std::string_view text) {
  std::vector<TokenId> out;
  for (const char c : text) out.push_back(static_cast<uint8_t>(c));
  return out;
}

}  // namespace troupe::test
