#include "engine/tokenizer/tokenizer.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/detokenizer.h"

namespace troupe {
namespace {

// A vocabulary small enough to reason about: all bytes, some merges, some special tokens.
struct SmallVocabulary {
  SmallVocabulary() {
    const ByteAlphabet alphabet;
    for (int byte = 0; byte < 256; ++byte)
      strings.push_back(alphabet.spelling(static_cast<uint8_t>(byte)));
    types.assign(256, TokenType::kNormal);
    ab = add("ab");
    abc = add("abc");
    space_ab = add("\u0120ab");
    bos = add("<s>", TokenType::kControl);
    eos = add("</s>", TokenType::kControl);
    tool = add("<tool>", TokenType::kUserDefined);
    tools = add("<tool>s", TokenType::kUserDefined);
    merges = {"a b", "ab c", "\u0120 ab"};
  }
  TokenId add(const std::string& spelling, TokenType type = TokenType::kNormal) {
    strings.push_back(spelling);
    types.push_back(type);
    return static_cast<TokenId>(strings.size() - 1);
  }
  [[nodiscard]] TokenizerSpec spec() const {
    TokenizerSpec spec;
    spec.model = "gpt2";
    spec.pre = "gpt-2";
    spec.tokens.assign(strings.begin(), strings.end());
    spec.types = types;
    spec.merges.assign(merges.begin(), merges.end());
    spec.bos = bos;
    spec.eos = eos;
    return spec;
  }
  std::vector<std::string> strings;
  std::vector<TokenType> types;
  std::vector<std::string> merges;
  TokenId ab, abc, space_ab, bos, eos, tool, tools;
};

std::unique_ptr<Tokenizer> make(const TokenizerSpec& spec) {
  auto made = Tokenizer::create(spec);
  BOOST_REQUIRE_MESSAGE(made.ok(), made.status().message());
  return std::move(made).value();
}

StatusCode creation_code(const TokenizerSpec& spec) {
  return Tokenizer::create(spec).status().code();
}

bool mentions(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokenizer)

BOOST_AUTO_TEST_CASE(the_pair_of_lowest_rank_is_merged_first) {
  const SmallVocabulary words;
  const auto tokenizer = make(words.spec());
  using Ids = std::vector<TokenId>;
  BOOST_TEST(tokenizer->encode(TextPiece{"abc"}).value() == (Ids{words.abc}));
  BOOST_TEST(tokenizer->encode(TextPiece{"ab abc"}).value() == (Ids{words.ab, ' ', words.abc}));
  BOOST_TEST(tokenizer->encode(TextPiece{"x ab"}).value() == (Ids{'x', words.space_ab}));
  BOOST_TEST(tokenizer->encode(TextPiece{""}).value() == Ids{});
}

BOOST_AUTO_TEST_CASE(special_tokens_count_only_where_asked_for) {
  const SmallVocabulary words;
  const auto tokenizer = make(words.spec());
  using Ids = std::vector<TokenId>;
  BOOST_TEST(tokenizer->encode(TextPiece{"<s>x</s>", true}).value() ==
             (Ids{words.bos, 'x', words.eos}));
  BOOST_TEST(tokenizer->encode(TextPiece{"<s>", false}).value() == (Ids{'<', 's', '>'}));
  BOOST_TEST(tokenizer->encode(TextPiece{"<tool>", false}).value().size() == 6U);
  // Two pieces that both parse are one text; a user's text between them keeps them apart.
  const std::vector<TextPiece> joined = {{"<", true}, {"", false}, {"s>", true}};
  BOOST_TEST(tokenizer->encode(joined).value() == (Ids{words.bos}));
  const std::vector<TextPiece> mixed = {{"<", true}, {"s", false}, {">", true}};
  BOOST_TEST(tokenizer->encode(mixed).value() == (Ids{'<', 's', '>'}));
  const std::vector<TextPiece> border = {{"<s", true}, {">", false}};
  BOOST_TEST(tokenizer->encode(border).value() == (Ids{'<', 's', '>'}));
}

BOOST_AUTO_TEST_CASE(the_longest_special_token_wins) {
  const SmallVocabulary words;
  const auto tokenizer = make(words.spec());
  BOOST_TEST(tokenizer->encode(TextPiece{"<tool>s<tool>x", true}).value() ==
             (std::vector<TokenId>{words.tools, words.tool, 'x'}));
}

BOOST_AUTO_TEST_CASE(ordinary_text_is_joined_across_pieces_before_it_is_split) {
  const SmallVocabulary words;
  const auto tokenizer = make(words.spec());
  const std::vector<TextPiece> pieces = {{"<s>a", true}, {"b", false}, {"c</s>", true}};
  BOOST_TEST(tokenizer->encode(pieces).value() ==
             (std::vector<TokenId>{words.bos, words.abc, words.eos}));
}

BOOST_AUTO_TEST_CASE(bos_and_eos_are_added_once_where_the_model_wants_them) {
  const SmallVocabulary words;
  TokenizerSpec spec = words.spec();
  spec.add_bos = spec.add_eos = true;
  const auto tokenizer = make(spec);
  using Ids = std::vector<TokenId>;
  BOOST_TEST(tokenizer->encode(TextPiece{"x"}).value() == (Ids{words.bos, 'x', words.eos}));
  BOOST_TEST(tokenizer->encode(TextPiece{"<s>x</s>", true}).value() ==
             (Ids{words.bos, 'x', words.eos}));
  BOOST_TEST(tokenizer->encode(TextPiece{""}).value() == (Ids{words.bos, words.eos}));
  BOOST_TEST(tokenizer->encode(TextPiece{"x"}, {.add_special = false}).value() == (Ids{'x'}));
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf8_is_refused_with_the_offset) {
  const SmallVocabulary words;
  const auto tokenizer = make(words.spec());
  for (const std::string bad :
       {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    const auto ids = tokenizer->encode(TextPiece{"hello " + bad});
    BOOST_REQUIRE(!ids.ok());
    BOOST_CHECK(ids.status().code() == StatusCode::kInvalidArgument);
    BOOST_TEST(mentions(ids.status(), "byte 6"), ids.status().message());
  }
  // The offset is that of the joined text.
  const std::vector<TextPiece> pieces = {{"<s>", true}, {"\x80", false}};
  BOOST_TEST(mentions(tokenizer->encode(pieces).status(), "byte 3"));
}

BOOST_AUTO_TEST_CASE(text_above_the_limit_is_refused) {
  const SmallVocabulary words;
  const auto tokenizer = make(words.spec());
  const std::string half(Tokenizer::kMaxTextBytes / 2 + 1, ' ');
  const std::vector<TextPiece> pieces = {{half, false}, {half, false}};
  const auto ids = tokenizer->encode(pieces);
  BOOST_REQUIRE(!ids.ok());
  BOOST_CHECK(ids.status().code() == StatusCode::kInvalidArgument);
}

BOOST_AUTO_TEST_CASE(a_byte_without_a_token_leaves_none_and_stops_no_merge_elsewhere) {
  SmallVocabulary words;
  words.strings['x'] = "(not a byte)";
  const auto tokenizer = make(words.spec());
  BOOST_TEST(tokenizer->encode(TextPiece{"abxab"}).value() ==
             (std::vector<TokenId>{words.ab, words.ab}));
  BOOST_TEST(tokenizer->encode(TextPiece{"xxxx"}).value().empty());
}

BOOST_AUTO_TEST_CASE(llama_bpe_takes_whole_words_first) {
  SmallVocabulary words;
  const TokenId hello = words.add("hello");  // no merge leads here
  TokenizerSpec spec = words.spec();
  BOOST_TEST(make(spec)->encode(TextPiece{"hello"}).value().size() == 5U);
  spec.pre = "llama-bpe";
  BOOST_TEST(make(spec)->encode(TextPiece{"hello"}).value() == (std::vector<TokenId>{hello}));
  // A control token is no word, whatever the text.
  BOOST_TEST(make(spec)->encode(TextPiece{"<s>"}).value() == (std::vector<TokenId>{'<', 's', '>'}));
}

BOOST_AUTO_TEST_CASE(unknown_kinds_are_named) {
  const SmallVocabulary words;
  TokenizerSpec spec = words.spec();
  spec.model = "bert";
  auto made = Tokenizer::create(spec);
  BOOST_CHECK(made.status().code() == StatusCode::kUnsupported);
  BOOST_TEST(mentions(made.status(), "'bert'"));
  BOOST_TEST(mentions(made.status(), "'gpt-2'"));
  spec = words.spec();
  spec.pre = "mystery";
  made = Tokenizer::create(spec);
  BOOST_CHECK(made.status().code() == StatusCode::kUnsupported);
  BOOST_TEST(mentions(made.status(), "'mystery'"));
  BOOST_TEST(mentions(made.status(), "smollm"));
}

BOOST_AUTO_TEST_CASE(a_vocabulary_that_contradicts_itself_is_refused) {
  const SmallVocabulary words;
  const auto broken = [&](auto&& breaks) {
    TokenizerSpec spec = words.spec();
    breaks(spec);
    return creation_code(spec);
  };
  const auto kDataLoss = StatusCode::kDataLoss;
  BOOST_CHECK(broken([](auto&) {}) == StatusCode::kOk);
  BOOST_CHECK(broken([](auto& s) { s.tokens.clear(); }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.types.pop_back(); }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.types[3] = static_cast<TokenType>(7); }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.types[3] = static_cast<TokenType>(-1); }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.merges.push_back("abc"); }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.merges.push_back(""); }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.merges.push_back("a zz"); }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.merges.push_back("b a"); }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.bos = 263; }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.eos = -2; }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.bos = kNoToken, s.add_bos = true; }) == kDataLoss);
  BOOST_CHECK(broken([](auto& s) { s.tokens.back() = "\xFF"; }) == kDataLoss);
}

BOOST_AUTO_TEST_CASE(a_merge_can_not_make_a_control_token) {
  SmallVocabulary words;
  words.add("<s", TokenType::kNormal);
  words.merges = {"< s", "<s >"};
  BOOST_CHECK(creation_code(words.spec()) == StatusCode::kDataLoss);
}

BOOST_AUTO_TEST_CASE(decoding_checks_every_id) {
  const SmallVocabulary words;
  const auto tokenizer = make(words.spec());
  BOOST_TEST(tokenizer->decode(std::vector<TokenId>{words.bos, words.space_ab}).value() ==
             "<s> ab");
  for (const TokenId bad : {-1, 263, 1 << 30}) {
    const auto text = tokenizer->decode(std::vector<TokenId>{'a', bad});
    BOOST_REQUIRE(!text.ok());
    BOOST_TEST(mentions(text.status(), std::to_string(bad)));
  }
}

BOOST_AUTO_TEST_CASE(well_known_end_tokens_are_found_by_name_if_they_are_control_tokens) {
  SmallVocabulary words;
  const TokenId turn = words.add("<|eot_id|>", TokenType::kControl);
  words.add("<|im_end|>", TokenType::kNormal);
  BOOST_TEST(make(words.spec())->end_tokens() == (std::vector<TokenId>{words.eos, turn}));
}

BOOST_AUTO_TEST_CASE(many_threads_share_one_tokenizer) {
  const SmallVocabulary words;
  const auto tokenizer = make(words.spec());
  const std::string text = "abc ab, it's 123 <s> \n\n x";
  const auto wanted = tokenizer->encode(TextPiece{text, true}).value();
  std::vector<size_t> wrong(4);
  std::vector<std::thread> threads;
  for (size_t& count : wrong)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        count += tokenizer->encode(TextPiece{text, true}).value() != wanted ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == std::vector<size_t>(4));
}

namespace {

// All bytes as "<0x..>", some pieces with scores, special tokens.
struct ScoredVocabulary {
  ScoredVocabulary() {
    unknown = add("<unk>", TokenType::kUnknown, 0);
    bos = add("<s>", TokenType::kControl, 0);
    eos = add("</s>", TokenType::kControl, 0);
    constexpr char kDigits[] = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte)
      add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", TokenType::kByte, 0);
    mark = add("\u2581");
    a = add("a");
    b = add("b");
    mark_a = add("\u2581a", TokenType::kNormal, -1);
    ab = add("ab", TokenType::kNormal, -2);
    lines = add("\n\n", TokenType::kUserDefined);
    for (const char* c : {"<", "s", ">", "<s", "0", "x", "A", "<0", "x0", "<0x0", "A>"}) add(c);
  }
  TokenId add(const std::string& spelling, TokenType type = TokenType::kNormal, float score = -10) {
    strings.push_back(spelling);
    types.push_back(type);
    scores.push_back(score);
    return static_cast<TokenId>(strings.size() - 1);
  }
  [[nodiscard]] TokenizerSpec spec() const {
    TokenizerSpec spec;
    spec.model = "llama";
    spec.pre = "default";
    spec.tokens.assign(strings.begin(), strings.end());
    spec.types = types;
    spec.scores = scores;
    spec.unknown = unknown;
    spec.bos = bos;
    spec.eos = eos;
    return spec;
  }
  [[nodiscard]] TokenId byte(uint8_t value) const { return eos + 1 + value; }
  std::vector<std::string> strings;
  std::vector<TokenType> types;
  std::vector<float> scores;
  TokenId unknown, bos, eos, mark, a, b, mark_a, ab, lines;
};

std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text,
                            bool parse_special = false) {
  return tokenizer.encode(TextPiece{text, parse_special}).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(scores_decide_and_bytes_stand_in_for_what_has_no_token) {
  const ScoredVocabulary v;
  const auto tokenizer = make(v.spec());
  BOOST_TEST(ids_of(*tokenizer, " ab") == (std::vector{v.mark_a, v.b}));
  BOOST_TEST(ids_of(*tokenizer, "ab") == (std::vector{v.ab}));
  BOOST_TEST(ids_of(*tokenizer, "a\u00e9\n") ==
             (std::vector{v.a, v.byte(0xC3), v.byte(0xA9), v.byte('\n')}));
  BOOST_TEST(tokenizer->token_bytes(v.byte(0xC3)) == "\xC3");
  BOOST_TEST(tokenizer->token_bytes(v.mark_a) == " a");
}

BOOST_AUTO_TEST_CASE(no_spelling_in_ordinary_text_becomes_a_control_or_byte_token) {
  const ScoredVocabulary v;
  const auto tokenizer = make(v.spec());
  for (const TokenId id : ids_of(*tokenizer, "<s></s><unk><0x0A>"))
    BOOST_TEST((id > v.byte(255) || id == v.byte('/') || (id > v.eos && id <= v.byte(127))));
  for (const TokenId id : ids_of(*tokenizer, "<0x0A>")) BOOST_TEST(id != v.byte('\n'));
  BOOST_TEST(ids_of(*tokenizer, "<s>", true) == (std::vector{v.bos}));
}

BOOST_AUTO_TEST_CASE(a_user_defined_token_with_scores_counts_in_any_text_and_across_pieces) {
  const ScoredVocabulary v;
  const auto tokenizer = make(v.spec());
  BOOST_TEST(ids_of(*tokenizer, "a\n\nb") == (std::vector{v.a, v.lines, v.b}));
  const TextPiece pieces[] = {{"</s>\n", true}, {"\na", false}};
  BOOST_TEST(tokenizer->encode(pieces).value() == (std::vector{v.eos, v.lines, v.a}));
}

BOOST_AUTO_TEST_CASE(a_space_before_text_is_added_where_asked_for_and_taken_off_again) {
  const ScoredVocabulary v;
  TokenizerSpec spec = v.spec();
  spec.add_space_prefix = true;
  spec.add_bos = true;
  const auto tokenizer = make(spec);
  BOOST_TEST(ids_of(*tokenizer, "a") == (std::vector{v.bos, v.mark_a}));
  const auto ids = ids_of(*tokenizer, "a</s>b a", true);
  BOOST_TEST(ids == (std::vector{v.bos, v.mark_a, v.eos, v.mark, v.b, v.mark_a}));
  BOOST_TEST(tokenizer->decode(ids).value() == "<s>a</s>b a");
}

BOOST_AUTO_TEST_CASE(a_vocabulary_with_scores_that_contradicts_itself_is_refused) {
  const ScoredVocabulary v;
  TokenizerSpec spec = v.spec();
  spec.scores.pop_back();
  BOOST_TEST(mentions(Tokenizer::create(spec).status(), "scores for"));
  spec = v.spec();
  spec.scores[5] = std::numeric_limits<float>::quiet_NaN();
  BOOST_TEST(mentions(Tokenizer::create(spec).status(), "the score of token 5 is nan"));
  spec = v.spec();
  spec.tokens[static_cast<size_t>(v.byte(7))] = "<0x7>";
  BOOST_TEST(mentions(Tokenizer::create(spec).status(), "such as <0x0A>"));
  spec = v.spec();
  spec.unknown = 100'000;
  BOOST_TEST(mentions(Tokenizer::create(spec).status(), "unknown token is 100000"));
  spec = v.spec();
  spec.unknown = kNoToken;
  spec.types[static_cast<size_t>(v.byte(7))] = TokenType::kNormal;
  BOOST_TEST(mentions(Tokenizer::create(spec).status(), "neither a token for every byte"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
