#include "actors/gateway/tools/tool_format.h"

#include <array>
#include <utility>

#include "base/assert.h"

namespace troupe {

namespace {

constexpr std::array<std::pair<std::string_view, ToolFormat>, 5> kToolFormats = {{
    {"none", ToolFormat::kNone},
    {"hermes", ToolFormat::kHermes},
    {"llama3", ToolFormat::kLlama3},
    {"mistral", ToolFormat::kMistral},
    {"mistral-args", ToolFormat::kMistralArgs},
}};

std::string named_object(std::string_view name, std::string_view arguments_key) {
  return "{\"name\": \"" + std::string(name) + "\", \"" + std::string(arguments_key) + "\": ";
}

}  // namespace

std::optional<ToolFormat> tool_format_of(std::string_view text) {
  for (const auto& [name, format] : kToolFormats) {
    if (name == text) return format;
  }
  return std::nullopt;
}

std::string_view to_string(ToolFormat format) {
  for (const auto& [name, known] : kToolFormats) {
    if (known == format) return name;
  }
  TROUPE_ASSERT(false, static_cast<int>(format));
  return {};
}

std::optional<ReasoningFormat> reasoning_format_of(std::string_view text) {
  if (text == "none") return ReasoningFormat::kNone;
  if (text == "think") return ReasoningFormat::kThink;
  return std::nullopt;
}

ToolFormat recognise_tool_format(const TemplateTraits& traits) {
  if (traits.spells(kMistralOpen)) {
    return traits.spells(kMistralArgsMark) ? ToolFormat::kMistralArgs : ToolFormat::kMistral;
  }
  if (traits.spells(kHermesOpen)) return ToolFormat::kHermes;
  // The later Llamas' templates show the form to the model, some without the tag.
  const bool shows_form = traits.spells("{\"name\": ") && traits.spells("\"parameters\": ");
  if (traits.spells(kLlamaTag) || shows_form) return ToolFormat::kLlama3;
  return ToolFormat::kHermes;
}

ReasoningFormat recognise_reasoning_format(const TemplateTraits& traits) {
  const bool thinks = traits.spells(kThinkOpen) || traits.spells(kThinkClose);
  return thinks ? ReasoningFormat::kThink : ReasoningFormat::kNone;
}

std::string call_begin(ToolFormat format, std::string_view name) {
  switch (format) {
    case ToolFormat::kHermes:
      return std::string(kHermesOpen) + "\n" + named_object(name, "arguments");
    case ToolFormat::kLlama3:
      return named_object(name, "parameters");
    case ToolFormat::kMistral:
      return named_object(name, "arguments");
    case ToolFormat::kMistralArgs:
      return std::string(kMistralOpen) + std::string(name) + std::string(kMistralArgsMark);
    case ToolFormat::kNone:
      break;
  }
  TROUPE_ASSERT(false, static_cast<int>(format));
  return {};
}

std::string call_end(ToolFormat format) {
  TROUPE_ASSERT(format != ToolFormat::kNone, static_cast<int>(format));
  if (format == ToolFormat::kHermes) return "}\n" + std::string(kHermesClose);
  return format == ToolFormat::kMistralArgs ? "" : "}";
}

std::vector<std::string_view> AnswerFormat::markers() const {
  std::vector<std::string_view> out;
  if (reasoning == ReasoningFormat::kThink) out = {kThinkOpen, kThinkClose};
  switch (tools) {
    case ToolFormat::kHermes:
      out.insert(out.end(), {kHermesOpen, kHermesClose});
      break;
    case ToolFormat::kLlama3:
      out.push_back(kLlamaTag);
      break;
    case ToolFormat::kMistral:
    case ToolFormat::kMistralArgs:
      out.insert(out.end(), {kMistralOpen, kMistralCallId, kMistralArgsMark});
      break;
    case ToolFormat::kNone:
      break;
  }
  return out;
}

std::vector<TokenId> hidden_markers(const AnswerFormat& format, const Tokenizer& tokenizer) {
  std::vector<TokenId> out;
  for (const std::string_view marker : format.markers()) {
    const TokenId token = tokenizer.find_special(marker);
    if (token != kNoToken && tokenizer.is_hidden(token)) out.push_back(token);
  }
  return out;
}

PromptEnd find_prompt_end(ReasoningFormat format, std::string_view prompt_tail) {
  if (format == ReasoningFormat::kNone) return PromptEnd::kBeforeAnswer;
  const size_t last = prompt_tail.find_last_not_of(" \t\r\n");
  const std::string_view text = prompt_tail.substr(0, last == std::string::npos ? 0 : last + 1);
  if (text.ends_with(kThinkOpen)) return PromptEnd::kInsideReasoning;
  if (text.ends_with(kThinkClose)) return PromptEnd::kBehindReasoning;
  return PromptEnd::kBeforeAnswer;
}

}  // namespace troupe
