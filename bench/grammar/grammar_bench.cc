// Usage: grammar_bench MODEL.gguf
// What structured output costs: for each of some grammars, the time to check and to compile it, and
// per token the time of mask and step while random answers are drawn from it. Prints a table.

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "engine/grammar/check_grammar.h"
#include "engine/grammar/grammar_compiler.h"
#include "tests/support/grammar_walk.h"

namespace troupe {
namespace {

// Of this thread alone, so that other work on the machine counts less.
double now_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

std::string many_properties(int count, bool required) {
  std::string properties;
  std::string names;
  for (int i = 0; i < count; ++i) {
    const std::string name = "\"property_" + std::to_string(i) + "\"";
    properties += (i > 0 ? "," : "") + name + R"(:{"type":"string"})";
    names += (i > 0 ? "," : "") + name;
  }
  return R"({"type":"object","properties":{)" + properties + R"(},"additionalProperties":false)" +
         (required ? ",\"required\":[" + names + "]" : std::string()) + "}";
}

std::string many_choices(int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i)
    text += (i > 0 ? "," : "") + std::string("\"choice number ") + std::to_string(i * 7919) + "\"";
  return text + "]";
}

std::string nested(int depth) {
  std::string text = R"({"type":"integer"})";
  for (int i = 0; i < depth; ++i) text = R"({"type":"array","items":)" + text + "}";
  return text;
}

struct Example {
  std::string name;
  GrammarSpec spec;
};

std::vector<Example> examples() {
  const std::string person = R"({"type":"object","properties":{"name":{"type":"string"},
    "age":{"type":"integer","minimum":0,"maximum":150},"mail":{"type":"string","format":"email"},
    "kind":{"enum":["friend","colleague","other"]},
    "children":{"type":"array","items":{"$ref":"#"}}},
    "required":["name","age","kind"],"additionalProperties":false})";
  return {
      {"json_object", {GrammarKind::kJsonObject, ""}},
      {"schema, 5 properties, recursive", {GrammarKind::kJsonSchema, person}},
      {"schema, 100 required", {GrammarKind::kJsonSchema, many_properties(100, true)}},
      {"schema, 100 optional", {GrammarKind::kJsonSchema, many_properties(100, false)}},
      {"schema, 200 optional", {GrammarKind::kJsonSchema, many_properties(200, false)}},
      {"schema, arrays 60 deep", {GrammarKind::kJsonSchema, nested(60)}},
      {"schema, maxLength 5000",
       {GrammarKind::kJsonSchema, R"({"type":"string","maxLength":5000})"}},
      {"schema, maxItems 1000",
       {GrammarKind::kJsonSchema,
        R"({"type":"array","items":{"type":"integer"},"maxItems":1000})"}},
      {"schema, number bounds",
       {GrammarKind::kJsonSchema, R"({"type":"number","minimum":-3.25,"maximum":1234.5})"}},
      {"schema, date-time",
       {GrammarKind::kJsonSchema, R"({"type":"string","format":"date-time"})"}},
      {"schema, uri", {GrammarKind::kJsonSchema, R"({"type":"string","format":"uri"})"}},
      {"choice of 10", {GrammarKind::kChoice, many_choices(10)}},
      {"choice of 2000", {GrammarKind::kChoice, many_choices(2000)}},
      {"regex, telephone", {GrammarKind::kRegex, R"((\+\d{1,3} )?\d{3}-\d{4})"}},
      {"regex, nested repetitions", {GrammarKind::kRegex, R"(((a|ab|b)+(x|y)?)+z)"}},
      {"regex, .{0,1000}", {GrammarKind::kRegex, ".{0,1000}"}},
      {"ebnf, sums",
       {GrammarKind::kEbnf, "root ::= term (\" + \" term)*\nterm ::= [0-9]+ | \"(\" root \")\"\n"}},
      {"ebnf, ambiguous", {GrammarKind::kEbnf, "root ::= \"a\" root root | \"a\"\n"}},
  };
}

void report(const Example& example, const GrammarVocabulary& vocabulary,
            const Tokenizer& tokenizer) {
  const double start = now_us();
  const auto lowered = lower_grammar(example.spec);
  const double checked = now_us();
  if (!lowered.ok()) {
    std::printf("%-34s refused: %s\n", example.name.c_str(), lowered.status().message().c_str());
    return;
  }
  const auto compiler = vocabulary.make_compiler();
  const double compile_start = now_us();
  const auto compiled = compiler->compile(example.spec);
  const double compiled_at = now_us();
  if (!compiled.ok()) {
    std::printf("%-34s fails: %s\n", example.name.c_str(), compiled.status().message().c_str());
    return;
  }
  std::vector<double> masks;
  std::vector<double> steps;
  double begin_us = 0.0;
  std::vector<uint32_t> mask(mask_words(tokenizer.vocab_size()));
  constexpr int kWalks = 10;
  for (int seed = 0; seed < kWalks; ++seed) {
    auto drawn = compiled.value()->start({});
    const GrammarWalk drawn_walk =
        walk(*drawn.value(), tokenizer, {.seed = static_cast<uint64_t>(seed), .tokens_max = 200});
    if (!drawn_walk.status.ok()) std::printf("  %s\n", drawn_walk.status.message().c_str());
    const double before = now_us();
    auto matcher = compiled.value()->start({});
    begin_us += now_us() - before;
    for (const TokenId token : drawn_walk.tokens) {
      const double mask_start = now_us();
      const Status filled = matcher.value()->fill_mask(mask);
      const double step_start = now_us();
      const Status stepped = matcher.value()->accept(token);
      if (!filled.ok() || !stepped.ok()) return;
      masks.push_back(step_start - mask_start);
      steps.push_back(now_us() - step_start);
    }
  }
  std::sort(masks.begin(), masks.end());
  std::sort(steps.begin(), steps.end());
  const auto at = [](const std::vector<double>& sorted, double share) {
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  std::printf("%-34s %8.2f %8.1f %7.1f %7.1f %8.1f %7.1f %8.1f %6zu\n", example.name.c_str(),
              (checked - start) / 1000, (compiled_at - compile_start) / 1000, begin_us / kWalks,
              at(masks, 0.5), at(masks, 1.0), at(steps, 0.5), at(steps, 1.0), masks.size());
}

int run(const std::string& path) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto tokenizer = load_tokenizer(path);
  const double start = now_us();
  const auto vocabulary =
      make_xgrammar_vocabulary(*tokenizer, static_cast<uint32_t>(tokenizer->vocab_size()));
  if (!vocabulary.ok()) {
    std::fprintf(stderr, "%s\n", vocabulary.status().message().c_str());
    return 1;
  }
  std::printf("vocabulary of %zu tokens: %.1f ms\n\n", tokenizer->vocab_size(),
              (now_us() - start) / 1000);
  std::printf("%-34s %8s %8s %7s %16s %16s %6s\n", "", "check", "compile", "start", "mask", "step",
              "");
  std::printf("%-34s %8s %8s %7s %7s %8s %7s %8s %6s\n", "grammar", "ms", "ms", "us", "med us",
              "max us", "med us", "max us", "tokens");
  for (const Example& example : examples()) report(example, *vocabulary.value(), *tokenizer);
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: grammar_bench MODEL.gguf\n");
    return 2;
  }
  return troupe::run(argv[1]);
}
