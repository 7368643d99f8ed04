// Encodes any bytes, in pieces and whole, and takes them apart again. The input's first byte says
// where the text is cut and which pieces may spell special tokens; the rest is the text.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/utf8.h"

namespace {

// Every byte, so that nothing is lost; merges that overlap; special tokens that begin alike.
std::unique_ptr<troupe::Tokenizer> make_tokenizer(std::string_view pre) {
  const troupe::ByteAlphabet alphabet;
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(alphabet.spelling(static_cast<uint8_t>(byte)));
  const size_t normal = tokens.size() + 6;
  for (const char* token : {"ab", "abc", "bc", "aa", "aaaa", "\u0120a", "<s>", "<s>>", "</s>", "<"})
    tokens.emplace_back(token);
  troupe::TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = pre;
  spec.tokens.assign(tokens.begin(), tokens.end());
  spec.types.assign(normal, troupe::TokenType::kNormal);
  spec.types.resize(tokens.size(), troupe::TokenType::kControl);
  spec.merges = {"a b", "b c", "ab c", "a a", "aa aa", "\u0120 a"};
  auto made = troupe::Tokenizer::create(spec);
  TROUPE_ASSERT(made.ok(), made.status().message());
  return std::move(made).value();
}

// With scores, some of them equal, user-defined tokens, and a space before text.
std::unique_ptr<troupe::Tokenizer> make_scored_tokenizer() {
  using troupe::TokenType;
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  troupe::TokenizerSpec spec;
  spec.types = {TokenType::kUnknown, TokenType::kControl, TokenType::kControl};
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    tokens.push_back(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
  }
  spec.types.resize(tokens.size(), TokenType::kByte);
  for (const char* token : {"\n\n", "\n\n\n", "  ", "<b>"}) tokens.emplace_back(token);
  spec.types.resize(tokens.size(), TokenType::kUserDefined);
  const size_t first = tokens.size();
  for (const char* token : {"\u2581", "a", "b", "ab", "\u2581a", "aa", "aaaa", "\u00e9", "\u00e9a",
                            "<", "<s", "<s>x", "\u2581\u2581a", "\n", "\nb"})
    tokens.emplace_back(token);
  spec.types.resize(tokens.size(), TokenType::kNormal);
  for (size_t i = 0; i < tokens.size(); ++i)
    spec.scores.push_back(i < first ? -1000.0F : -static_cast<float>(i % 7));
  spec.model = "llama";
  spec.tokens.assign(tokens.begin(), tokens.end());
  spec.unknown = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.add_space_prefix = true;
  auto made = troupe::Tokenizer::create(spec);
  TROUPE_ASSERT(made.ok(), made.status().message());
  return std::move(made).value();
}

// What a vocabulary with scores makes of a text: U+2581 is a space to it.
void check_scored(const troupe::Tokenizer& tokenizer, uint8_t control, std::string_view text) {
  const size_t cut = text.size() * (control & 15U) / 16;
  const std::array<troupe::TextPiece, 2> pieces = {
      troupe::TextPiece{text.substr(0, cut), (control & 16U) != 0},
      troupe::TextPiece{text.substr(cut), (control & 32U) != 0}};
  const auto ids = tokenizer.encode(pieces);
  const bool valid = !troupe::find_invalid_utf8(text).has_value();
  TROUPE_ASSERT(ids.ok() == valid, ids.status().message());
  if (!valid) return;
  std::string expected(text);
  const std::string mark = "\u2581";
  for (size_t at = expected.find(mark); at != std::string::npos; at = expected.find(mark, at))
    expected.replace(at, mark.size(), " ");
  const auto decoded = tokenizer.decode(ids.value());
  TROUPE_ASSERT(decoded.ok() && decoded.value() == expected, text);
  if ((control & 48U) != 0) return;
  const auto whole = tokenizer.encode(troupe::TextPiece{text, false});
  TROUPE_ASSERT(whole.ok() && whole.value() == ids.value(), text);
  for (const troupe::TokenId id : ids.value()) TROUPE_ASSERT(!tokenizer.is_hidden(id), id, text);
}

void check(const troupe::Tokenizer& tokenizer, uint8_t control, std::string_view text) {
  const size_t cut = text.size() * (control & 15U) / 16;
  const std::array<troupe::TextPiece, 2> pieces = {
      troupe::TextPiece{text.substr(0, cut), (control & 16U) != 0},
      troupe::TextPiece{text.substr(cut), (control & 32U) != 0}};
  const auto ids = tokenizer.encode(pieces);
  const bool valid = !troupe::find_invalid_utf8(text).has_value();
  TROUPE_ASSERT(ids.ok() == valid, ids.status().message());
  if (!valid) return;
  const auto decoded = tokenizer.decode(ids.value());
  TROUPE_ASSERT(decoded.ok() && decoded.value() == text, text);

  troupe::IncrementalDetokenizer detokenizer(tokenizer, troupe::SpecialTokens::kSpell);
  std::string streamed;
  for (const troupe::TokenId id : ids.value()) detokenizer.append(id, streamed);
  streamed += detokenizer.flush();
  TROUPE_ASSERT(streamed == text, text);

  if ((control & 48U) != 0) return;
  const auto whole = tokenizer.encode(troupe::TextPiece{text, false});
  TROUPE_ASSERT(whole.ok() && whole.value() == ids.value(), text);
  for (const troupe::TokenId id : ids.value()) TROUPE_ASSERT(!tokenizer.is_hidden(id), id, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto smollm = make_tokenizer("smollm");
  static const auto llama = make_tokenizer("llama-bpe");
  static const auto qwen = make_tokenizer("qwen2");
  static const auto scored = make_scored_tokenizer();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const auto* tokenizer : {smollm.get(), llama.get(), qwen.get()})
    check(*tokenizer, data[0], text);
  check_scored(*scored, data[0], text);
  return 0;
}
