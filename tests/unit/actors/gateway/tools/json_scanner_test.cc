#include "actors/gateway/tools/json_scanner.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "actors/gateway/tools/limits.h"

namespace troupe {
namespace {

using Step = JsonScanner::Step;

// Bytes of the value at the beginning of the text; npos: there is none.
size_t value_size(const std::string& text) {
  JsonScanner scanner;
  for (size_t i = 0; i < text.size(); ++i) {
    const Step step = scanner.push(text[i]);
    if (step == Step::kBad) return std::string::npos;
    if (step == Step::kOutside) return i;
    if (step == Step::kLast) return i + 1;
  }
  return std::string::npos;
}

BOOST_AUTO_TEST_CASE(values_end_where_they_end) {
  for (const std::string text :
       {R"({"a": [1, -2.5e+3, "}]", {}], "b": {"c": null}})", R"("a\"\\\u00e9")", "[]", "{}",
        "true", "false", "null", "[ ]", "{ }", "[1 , 2]", "{\"a\" : 1 , \"b\":[[]]}"}) {
    BOOST_TEST(value_size(text + ", rest") == text.size(), text);
  }
  for (const std::string number : {"0", "-0", "12", "1.5", "1e5", "1E-05", "-0.25e+10"}) {
    BOOST_TEST(value_size(number + "}") == number.size(), number);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_json_is_refused) {
  for (const std::string text :
       {" 1",     "01 ",     "1. ",         ".5 ",     "+1 ",      "1e ",        "- ",    "tru ",
        "nul}",   "[1,]",    "{,}",         "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "[1 2]",
        "\"\n\"", R"("\x")", R"("\u12g4")", "[}",      "{]",       "NaN",        "'a'"}) {
    BOOST_TEST(value_size(text) == std::string::npos, text);
  }
}

BOOST_AUTO_TEST_CASE(nesting_is_bounded) {
  const std::string fits(kCallDepthMax, '[');
  BOOST_TEST(value_size(fits + std::string(kCallDepthMax, ']')) == 2 * kCallDepthMax);
  BOOST_TEST(value_size(fits + "[" + std::string(kCallDepthMax + 1, ']')) == std::string::npos);
}

// The JSON library is the oracle, on texts that are nearly JSON.
BOOST_AUTO_TEST_CASE(it_agrees_with_a_parser_on_damaged_texts) {
  const std::string sound = R"({"a":[1,-2.5e3,true,null,"x\n"],"b":{"c":{},"d":[]},"e":"\u00e9"})";
  const std::string alphabet = R"({}[]",:0123456789.eE+-\ntrufalsx )";
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text = sound;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = alphabet[random() % alphabet.size()];
      } else {
        text.erase(at, 1);
      }
    }
    if (text.empty() || (text[0] != '{' && text[0] != '[')) continue;
    const bool accepted = nlohmann::json::accept(text);
    BOOST_TEST((value_size(text) == text.size()) == accepted, text);
  }
}

}  // namespace
}  // namespace troupe
