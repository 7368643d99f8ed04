#include "engine/grammar/grammar_compiler.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/grammar_walk.h"

namespace troupe {
namespace {

constexpr char kModel[] = TROUPE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf";

// The shipped model's vocabulary, made once: it takes tens of milliseconds.
struct World {
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(kModel);
  std::shared_ptr<const GrammarVocabulary> vocabulary =
      make_xgrammar_vocabulary(*tokenizer, static_cast<uint32_t>(tokenizer->vocab_size())).value();
  std::unique_ptr<GrammarCompiler> compiler = vocabulary->make_compiler();
};
World& world() {
  static World world;
  return world;
}

std::shared_ptr<const CompiledGrammar> compiled(GrammarKind kind, const std::string& text) {
  auto grammar = world().compiler->compile({kind, text});
  BOOST_REQUIRE_MESSAGE(grammar.ok(), grammar.status().message());
  return grammar.value();
}

std::vector<TokenId> allowed(GrammarMatcher& matcher) {
  std::vector<uint32_t> mask(mask_words(world().vocabulary->vocab_size()));
  BOOST_REQUIRE(matcher.fill_mask(mask).ok());
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < mask.size() * 32; ++i)
    if ((mask[i / 32] >> (i % 32) & 1U) != 0) tokens.push_back(static_cast<TokenId>(i));
  return tokens;
}

BOOST_AUTO_TEST_SUITE(grammar_compiler)

BOOST_AUTO_TEST_CASE(the_mask_allows_exactly_what_can_follow_and_then_the_end_tokens) {
  const auto grammar = compiled(GrammarKind::kChoice, R"(["yes","yellow","no"])");
  auto matcher = grammar->start({}).value();
  const Tokenizer& tokenizer = *world().tokenizer;
  for (const TokenId token : allowed(*matcher)) {
    const std::string bytes(tokenizer.token_bytes(token));
    const bool fits = std::string("yes").starts_with(bytes) ||
                      std::string("yellow").starts_with(bytes) ||
                      std::string("no").starts_with(bytes);
    BOOST_TEST(fits, bytes);
  }
  const auto no = tokenizer.encode({.text = "no"}, {.add_special = false}).value();
  for (const TokenId token : no) BOOST_TEST(matcher->accept(token).ok());
  BOOST_TEST(allowed(*matcher) == tokenizer.end_tokens(), boost::test_tools::per_element());
  BOOST_TEST(!matcher->ended());
  BOOST_TEST(matcher->accept(tokenizer.eos()).ok());
  BOOST_TEST(matcher->ended());
  BOOST_TEST(matcher->accepted() == no.size() + 1);
}

BOOST_AUTO_TEST_CASE(control_tokens_are_never_text) {
  const auto grammar = compiled(GrammarKind::kRegex, "(.|\\n)*");
  auto matcher = grammar->start({}).value();
  const Tokenizer& tokenizer = *world().tokenizer;
  for (const TokenId token : allowed(*matcher)) {
    const auto& ends = tokenizer.end_tokens();
    const bool is_end = std::find(ends.begin(), ends.end(), token) != ends.end();
    BOOST_TEST((is_end || !tokenizer.is_hidden(token)), tokenizer.token_bytes(token));
  }
}

BOOST_AUTO_TEST_CASE(a_token_against_the_grammar_is_refused) {
  auto matcher = compiled(GrammarKind::kChoice, R"(["yes"])")->start({}).value();
  const TokenId brace = world().tokenizer->encode({.text = "{"}, {.add_special = false})->front();
  const Status status = matcher->accept(brace);
  BOOST_TEST((status.code() == StatusCode::kInternal));
}

BOOST_AUTO_TEST_CASE(a_matcher_that_replays_output_goes_on_as_the_one_that_made_it) {
  const auto grammar = compiled(GrammarKind::kJsonSchema, R"({"type":"object","properties":{
      "name":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}},
      "required":["name","tags"]})");
  auto first = grammar->start({}).value();
  const GrammarWalk made = walk(*first, *world().tokenizer, {.seed = 3});
  BOOST_REQUIRE(made.ended);
  for (const size_t half : {size_t{0}, size_t{1}, made.tokens.size() / 2, made.tokens.size()}) {
    auto original = grammar->start({}).value();
    for (size_t i = 0; i < half; ++i) BOOST_REQUIRE(original->accept(made.tokens[i]).ok());
    auto replayed = grammar->start(std::span(made.tokens).first(half)).value();
    BOOST_TEST(replayed->accepted() == half);
    BOOST_TEST((allowed(*replayed) == allowed(*original)));
  }
  std::vector<TokenId> wrong = made.tokens;
  wrong.front() = world().tokenizer->encode({.text = "]"}, {.add_special = false})->front();
  BOOST_TEST((grammar->start(wrong).status().code() == StatusCode::kInvalidArgument));
  std::vector<TokenId> complete = made.tokens;
  complete.push_back(world().tokenizer->eos());
  BOOST_TEST(!grammar->start(complete).ok());
}

// How many new lines, up to 100, may follow the text.
int new_lines_after(const GrammarSpec& spec, const std::string& text) {
  auto matcher = compiled(spec.kind, spec.text)->start({}).value();
  const Tokenizer& tokenizer = *world().tokenizer;
  const auto begin = tokenizer.encode({.text = text}, {.add_special = false});
  for (const TokenId token : begin.value()) BOOST_REQUIRE(matcher->accept(token).ok());
  const TokenId newline = tokenizer.encode({.text = "\n"}, {.add_special = false})->front();
  int count = 0;
  for (; count < 100; ++count) {
    const auto tokens = allowed(*matcher);
    BOOST_TEST_REQUIRE(!tokens.empty());
    if (std::find(tokens.begin(), tokens.end(), newline) == tokens.end()) break;
    BOOST_REQUIRE(matcher->accept(newline).ok());
  }
  return count;
}

BOOST_AUTO_TEST_CASE(json_does_not_idle_in_white_space) {
  const int count = new_lines_after({GrammarKind::kJsonObject, ""}, "{");
  BOOST_TEST(count > 4);
  BOOST_TEST(count < 100);
}

BOOST_AUTO_TEST_CASE(a_call_does_not_idle_in_white_space_but_prose_beside_it_may) {
  const GrammarSpec spec{GrammarKind::kStructuralTag,
                         R"({"type":"structural_tag","format":{"type":"triggered_tags",
      "triggers":["<call>"],"tags":[{"begin":"<call>","content":{"type":"json_schema",
      "json_schema":{"type":"object"}},"end":"</call>"}]}})"};
  const int in_call = new_lines_after(spec, "<call>{");
  BOOST_TEST(in_call > 4);
  BOOST_TEST(in_call < 100);
  BOOST_TEST(new_lines_after(spec, "Hello") == 100);
}

BOOST_AUTO_TEST_CASE(random_answers_of_every_kind_come_to_a_valid_end) {
  const auto parses = [](const std::string& text) { return nlohmann::json::accept(text); };
  int ended = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto matcher = compiled(GrammarKind::kJsonObject, "")->start({}).value();
    const GrammarWalk drawn = walk(*matcher, *world().tokenizer, {.seed = seed});
    BOOST_TEST(drawn.status.ok(), drawn.status.message());
    if (!drawn.ended) continue;
    ++ended;
    BOOST_TEST(parses(drawn.text), drawn.text);
    BOOST_TEST(nlohmann::json::parse(drawn.text, nullptr, false).is_object());
  }
  BOOST_TEST(ended > 10);
}

BOOST_AUTO_TEST_CASE(a_bad_demand_is_an_error_here_too) {
  const auto bad = world().compiler->compile({GrammarKind::kJsonSchema, R"({"not":{}})"});
  BOOST_TEST((bad.status().code() == StatusCode::kInvalidArgument));
  // Only the library can tell.
  const auto tag = world().compiler->compile(
      {GrammarKind::kStructuralTag, R"({"type":"structural_tag","format":{"type":"tag"}})"});
  BOOST_TEST((tag.status().code() == StatusCode::kInvalidArgument), tag.status().message());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
