#pragma once
// The limits of structured output. What breaks one of the first group is refused with
// kInvalidArgument before anything is queued, so that compiling what is left takes milliseconds to
// a second, in bounded memory and stack.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::grammar_limits {

// Bytes of a schema, expression or grammar.
inline constexpr size_t kTextBytesMax = size_t{256} << 10;
// Bytes of one regular expression, and of all grammars written out for the compiler.
inline constexpr size_t kRegexBytesMax = size_t{16} << 10;
inline constexpr size_t kRulesBytesMax = size_t{2} << 20;
// Levels of nesting: of a schema's JSON, of parentheses.
inline constexpr uint32_t kDepthMax = 64;
// Over a whole schema.
inline constexpr uint32_t kPropertiesMax = 2000;
inline constexpr uint32_t kEnumValuesMax = 2000;
// Of one object: after each comma, all of these may come next, and masks take as long.
inline constexpr uint32_t kOptionalPropertiesMax = 200;
// Alternatives of a `choice`, and bytes of one of them.
inline constexpr uint32_t kChoicesMax = 2000;
inline constexpr size_t kChoiceBytesMax = 4096;
// Of one repetition: {n}, {n,m}, minLength, maxLength, minItems, maxItems.
inline constexpr uint32_t kRepetitionMax = 10'000;
// What a grammar may cost: its parts, each as often as its repetitions write it out.
inline constexpr uint64_t kCostMax = 200'000;
inline constexpr uint32_t kRulesMax = 20'000;
// Rules of a grammar that the client wrote.
inline constexpr uint32_t kEbnfRulesMax = 2000;
// Names of declared properties that further properties must avoid, in characters.
inline constexpr uint32_t kAvoidedNameCharsMax = 4096;

// White space in a row between the tokens of JSON: a model may indent, not idle.
inline constexpr uint32_t kWhiteSpaceMax = 24;
// Digits of numbers: what is left is finite and exact enough for every reader.
inline constexpr uint32_t kIntegerDigitsMax = 18;
inline constexpr uint32_t kFractionDigitsMax = 15;

// Grammars that wait for a worker's compiler; more are refused with kResourceExhausted.
inline constexpr size_t kCompileQueueMax = 256;
// One compilation; its request ends with kResourceExhausted when it takes longer.
inline constexpr std::chrono::milliseconds kCompileDeadline{5000};
// Compilations over their deadline that still run; while there are so many, others are refused with
// kResourceExhausted.
inline constexpr size_t kStuckCompilesMax = 2;
// Compiled grammars kept for the next request with the same text; the least recently used go.
inline constexpr size_t kCacheBytesMax = size_t{64} << 20;
inline constexpr size_t kCompileStackBytes = size_t{8} << 20;
// Mask and step of one token; a sequence whose grammar takes longer ends with kResourceExhausted.
// Usual are microseconds, and milliseconds where a place is seen for the first time; the rest is
// for a machine with too much to do.
inline constexpr std::chrono::milliseconds kTokenPatience{1000};

}  // namespace troupe::grammar_limits
