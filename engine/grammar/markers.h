#pragma once
// Control tokens that a grammar may demand by their spelling.

#include <array>
#include <string_view>

namespace troupe {

// Around tool calls and reasoning. In some vocabularies these are control tokens, which no grammar
// admits otherwise, in others ordinary tokens, in others words of several tokens; grammars are
// written for text, so these appear in it whatever they are.
inline constexpr std::array<std::string_view, 8> kGrammarMarkers = {
    "<tool_call>", "</tool_call>", "<|python_tag|>", "[TOOL_CALLS]",
    "[CALL_ID]",   "[ARGS]",       "<think>",        "</think>"};

}  // namespace troupe
