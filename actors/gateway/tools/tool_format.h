#pragma once
// In which text form a model calls tools and shows its reasoning. Learnt in training, so a property
// of the model; its chat template tells which.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/chat_template/template_traits.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

// The canonical spelling of a call is what call_begin() and call_end() put around its arguments.
enum class ToolFormat {
  kNone,         // no calls are recognised and tools are refused
  kHermes,       // <tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>; Hermes, Qwen
  kLlama3,       // {"name": "f", "parameters": {}} as the whole answer, maybe after <|python_tag|>
  kMistral,      // [TOOL_CALLS][{"name": "f", "arguments": {}}, ...]
  kMistralArgs,  // [TOOL_CALLS]f[ARGS]{}, once for each call; Mistral since mid 2025
};

enum class ReasoningFormat {
  kNone,   // all text is the answer
  kThink,  // <think>...</think> before it
};

// "hermes", "llama3", "mistral", "mistral-args", "none"; "think", "none". Empty for another text.
[[nodiscard]] std::optional<ToolFormat> tool_format_of(std::string_view text);
[[nodiscard]] std::optional<ReasoningFormat> reasoning_format_of(std::string_view text);
[[nodiscard]] std::string_view to_string(ToolFormat format);

// kHermes where the template names no format that is known: any model can be held to it by grammar,
// and most that were trained on tools without saying how were trained on this.
[[nodiscard]] ToolFormat recognise_tool_format(const TemplateTraits& traits);
[[nodiscard]] ReasoningFormat recognise_reasoning_format(const TemplateTraits& traits);

inline constexpr std::string_view kHermesOpen = "<tool_call>";
inline constexpr std::string_view kHermesClose = "</tool_call>";
inline constexpr std::string_view kLlamaTag = "<|python_tag|>";
inline constexpr std::string_view kMistralOpen = "[TOOL_CALLS]";
inline constexpr std::string_view kMistralCallId = "[CALL_ID]";
inline constexpr std::string_view kMistralArgsMark = "[ARGS]";
inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";

// What stands before and behind the arguments of one call; `name` is a tool's. For kMistral without
// the brackets of the list.
[[nodiscard]] std::string call_begin(ToolFormat format, std::string_view name);
[[nodiscard]] std::string call_end(ToolFormat format);

// How the answers of one model are read.
struct AnswerFormat {
  ToolFormat tools = ToolFormat::kNone;
  ReasoningFormat reasoning = ReasoningFormat::kNone;

  // The markers that may occur in an answer.
  [[nodiscard]] std::vector<std::string_view> markers() const;
};

// The markers that are control tokens of the vocabulary: hidden from text unless asked for.
[[nodiscard]] std::vector<TokenId> hidden_markers(const AnswerFormat& format,
                                                  const Tokenizer& tokenizer);

// Where a prompt leaves the model: templates of reasoning models may open or even close the block
// that the answer would begin with.
enum class PromptEnd { kBeforeAnswer, kInsideReasoning, kBehindReasoning };
// `prompt_tail` is what the template itself wrote last.
[[nodiscard]] PromptEnd find_prompt_end(ReasoningFormat format, std::string_view prompt_tail);

}  // namespace troupe
