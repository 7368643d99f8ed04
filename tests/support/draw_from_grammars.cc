// Usage: draw_from_grammars MODEL.gguf < DEMANDS
// For tests/integration/grammar_draws_test.py. Each line of standard input is a JSON object {kind,
// text, draws}; kind is the number of a GrammarKind. For each prints one line of JSON: {"error",
// "param"} when it is refused, or {"draws": [{"text", "ended", "tokens", "error"}]}, answers drawn
// at random from the grammar's masks over the model's vocabulary.

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/grammar/grammar_compiler.h"
#include "tests/support/grammar_walk.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

Json answer(const Json& demand, GrammarCompiler& compiler, const Tokenizer& tokenizer) {
  const GrammarSpec spec{static_cast<GrammarKind>(demand.at("kind").get<int>()),
                         demand.at("text").get<std::string>()};
  const auto compiled = compiler.compile(spec);
  if (!compiled.ok())
    return {{"error", compiled.status().message()}, {"param", compiled.status().param()}};
  Json draws = Json::array();
  for (uint64_t seed = 0; seed < demand.at("draws").get<uint64_t>(); ++seed) {
    auto matcher = compiled.value()->start({});
    if (!matcher.ok()) return {{"error", matcher.status().message()}};
    const GrammarWalk drawn = walk(*matcher.value(), tokenizer, {.seed = seed});
    draws.push_back({{"text", drawn.text},
                     {"ended", drawn.ended},
                     {"tokens", drawn.tokens},
                     {"error", drawn.status.message()}});
  }
  return {{"draws", draws}};
}

int run(const std::string& path) {
  const auto tokenizer = load_tokenizer(path);
  const auto vocabulary =
      make_xgrammar_vocabulary(*tokenizer, static_cast<uint32_t>(tokenizer->vocab_size()));
  if (!vocabulary.ok()) return 1;
  const auto compiler = vocabulary.value()->make_compiler();
  for (std::string line; std::getline(std::cin, line);) {
    const Json out = answer(Json::parse(line), *compiler, *tokenizer);
    std::cout << out.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  return argc == 2 ? troupe::run(argv[1]) : 2;
}
