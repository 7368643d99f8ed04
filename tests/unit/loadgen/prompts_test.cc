#include "loadgen/prompts.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include "loadgen/limits.h"

namespace troupe::loadgen {
namespace {

size_t words_in(const std::string& text) {
  return text.empty() ? 0 : static_cast<size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
}

Result<std::vector<Conversation>> read(const std::string& text,
                                       const PromptFileOptions& options = {}) {
  std::istringstream in(text);
  return read_prompts(in, "file", options);
}

void refuses(const std::string& text, const std::string& part) {
  const auto prompts = read(text);
  BOOST_REQUIRE(!prompts.ok());
  BOOST_TEST(prompts.status().message().find(part) != std::string::npos,
             prompts.status().message());
}

BOOST_AUTO_TEST_SUITE(prompts)

BOOST_AUTO_TEST_CASE(common_words_are_plain_and_none_is_there_twice) {
  const auto& words = common_words();
  BOOST_TEST(words.size() > 256U);
  BOOST_TEST(std::set<std::string>(words.begin(), words.end()).size() == words.size());
  for (const std::string& word : words) {
    BOOST_TEST(std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; }),
               word);
    BOOST_TEST(!word.empty());
  }
}

BOOST_AUTO_TEST_CASE(random_prompts_have_the_lengths_and_are_the_same_again) {
  RandomPromptOptions options;
  options.prompt_tokens = {5, 9};
  options.output_tokens = {2, 3};
  options.turns = 3;
  options.seed = 4;
  const auto prompts = random_prompts(options, common_words());
  std::set<size_t> lengths, outputs;
  for (uint64_t i = 0; i < 200; ++i) {
    const Conversation talk = prompts->make(i);
    BOOST_REQUIRE(talk.turns.size() == 3U);
    BOOST_TEST(prompts->make(i).turns[1].message.content == talk.turns[1].message.content);
    for (const Turn& turn : talk.turns) {
      BOOST_TEST(words_in(turn.message.content) == turn.prompt_tokens_aimed);
      lengths.insert(turn.prompt_tokens_aimed);
      outputs.insert(turn.output_tokens);
    }
  }
  BOOST_TEST((lengths == std::set<size_t>{5, 6, 7, 8, 9}));
  BOOST_TEST((outputs == std::set<size_t>{2, 3}));
  BOOST_TEST(prompts->make(0).turns[0].message.content !=
             prompts->make(1).turns[0].message.content);
}

BOOST_AUTO_TEST_CASE(a_group_shares_its_prefix_and_nothing_more) {
  RandomPromptOptions options;
  options.prompt_tokens = {4, 4};
  options.prefix_tokens = 20;
  options.prefix_groups = 2;
  const auto prompts = random_prompts(options, common_words());
  const auto text = [&](uint64_t i) { return prompts->make(i).turns[0].message.content; };
  const auto shared = [](const std::string& a, const std::string& b) {
    const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return std::count(a.begin(), end, ' ');  // whole words
  };
  BOOST_TEST(words_in(text(0)) == 24U);
  BOOST_TEST(shared(text(0), text(2)) >= 20);
  BOOST_TEST(shared(text(0), text(2)) < 24);
  BOOST_TEST(shared(text(0), text(1)) < 20);
}

BOOST_AUTO_TEST_CASE(a_trace_gives_equal_text_for_equal_names) {
  Trace trace;
  trace.hash_tokens = 16;
  trace.requests = {{{}, 40, 3, {1, 2, 3}}, {{}, 40, 4, {1, 2, 9}}, {{}, 20, 4, {}}};
  const auto prompts = trace_prompts(trace, 0, common_words());
  const std::string first = prompts->make(0).turns[0].message.content,
                    second = prompts->make(1).turns[0].message.content;
  BOOST_TEST(words_in(first) == 40U);
  BOOST_TEST(prompts->make(0).turns[0].output_tokens == 3U);
  size_t end = 0;
  for (int word = 0; word < 32; ++word) end = first.find(' ', end) + 1;
  BOOST_TEST(first.substr(0, end) == second.substr(0, end));
  BOOST_TEST(first.substr(end) != second.substr(end));
  BOOST_TEST(words_in(prompts->make(2).turns[0].message.content) == 20U);
  BOOST_TEST(prompts->size() == 3U);
}

BOOST_AUTO_TEST_CASE(files_of_prompts_are_read_in_their_forms) {
  PromptFileOptions options;
  options.output_tokens = {7, 7};
  const auto lines = read(
      "{\"prompt\": \"one\", \"output_tokens\": 3}\r\n\n"
      "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, "
      "{\"role\": \"user\", \"content\": \"u\"}]}\n",
      options);
  BOOST_REQUIRE(lines.ok());
  BOOST_REQUIRE(lines->size() == 2U);
  BOOST_TEST(lines.value()[0].turns[0].output_tokens == 3U);
  BOOST_TEST(lines.value()[1].turns[0].output_tokens == 7U);
  BOOST_TEST((lines.value()[1].opening == std::vector<Message>{{"system", "s"}}));
  BOOST_TEST((lines.value()[1].turns[0].message == Message{"user", "u"}));

  options.turns = 2;
  const auto recorded = read(R"([
    {"id": "a", "conversations": [{"from": "human", "value": "q1"},
      {"from": "gpt", "value": "twelve bytes"}, {"from": "human", "value": "q2"},
      {"from": "gpt", "value": ""}, {"from": "human", "value": "q3"}]},
    {"conversations": [{"from": "gpt", "value": "nobody asked"}]}])",
                             options);
  BOOST_REQUIRE(recorded.ok());
  BOOST_REQUIRE(recorded->size() == 1U);
  const Conversation& talk = recorded->front();
  BOOST_REQUIRE(talk.turns.size() == 2U);
  BOOST_TEST(talk.turns[0].output_tokens == 3U);
  BOOST_TEST(talk.turns[1].output_tokens == 1U);
  options.keep_output_tokens = false;
  BOOST_TEST(
      read("{\"prompt\": \"x\", \"max_tokens\": 3}", options)->front().turns[0].output_tokens ==
      7U);
}

BOOST_AUTO_TEST_CASE(hostile_files_of_prompts_are_refused_by_line) {
  refuses("", "no prompt");
  refuses("{}", "file:1");
  refuses("{\"prompt\": \"a\"}\nnonsense\n", "file:2");
  refuses("{\"prompt\": 7}", "file:1");
  refuses("{\"prompt\": \"a\", \"output_tokens\": 0}", "output_tokens");
  refuses("{\"prompt\": \"a\", \"output_tokens\": 1e30}", "output_tokens");
  refuses("{\"prompt\": \"a\", \"max_tokens\": -1}", "max_tokens");
  refuses("{\"messages\": []}", "file:1");
  refuses("{\"messages\": [{\"role\": \"user\"}]}", "role or content");
  refuses("[1]", "element 0");
  refuses("[{\"conversations\": [{\"from\": 1}]}]", "element 0");
  refuses("[{\"conversations\": []}]", "no prompt");
  refuses("[", "no JSON array");
  refuses(std::string(200000, '['), "no JSON array");
  refuses("{\"prompt\": \"" + std::string(kPromptLineBytesMax, 'x') + "\"}", "longer than");
}

BOOST_AUTO_TEST_CASE(lengths_are_a_number_or_a_range) {
  BOOST_TEST((parse_length_range("--x", "128").value() == LengthRange{128, 128}));
  BOOST_TEST((parse_length_range("--x", "1:9").value() == LengthRange{1, 9}));
  for (const char* bad : {"", "0", "-1", "a", "9:1", "1:", ":1", "1:2:3", "1.5", "99999999999"}) {
    const auto range = parse_length_range("--x", bad);
    BOOST_TEST(!range.ok(), bad);
    BOOST_TEST(range.status().message().find("--x") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::loadgen
