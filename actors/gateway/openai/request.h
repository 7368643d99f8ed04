#pragma once
// What a client asked for, checked: the bodies of the OpenAI-compatible endpoints as plain values.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/chat_prompt.h"
#include "actors/gateway/text/stop_matcher.h"
#include "actors/gateway/tools/tool_request.h"
#include "base/ids.h"
#include "engine/sample/sampling_params.h"
#include "troupe/status.h"

namespace troupe {

enum class Api { kChat, kCompletions };

// What a body that names this model is checked against.
struct RequestRules {
  std::string_view model_name;
  uint32_t vocab_size = 0;
  uint32_t context_tokens = 0;
  RequestTemplates templates = RequestTemplates::kRefused;
  uint32_t embedding_width = 0;
  std::string_view digest = {};  // rows with the same digest are names of one model
};

// The answer to whoever asks for any model while there is none: kUnavailable.
[[nodiscard]] Status no_model_yet();

// A prompt of /v1/completions: text to be tokenised, or token ids as they are.
struct RawPrompt {
  std::string text;
  std::vector<TokenId> tokens;
  bool is_tokens = false;
};

// What both generating endpoints share.
struct GenerationBody {
  Api api = Api::kChat;
  size_t model = 0;  // index in the rules that the body was checked against
  // Without seed and max_tokens, which are decided per choice and prompt.
  SamplingParams sampling;
  std::optional<uint64_t> seed;
  uint32_t choices = 1;  // n, for each prompt
  std::optional<uint32_t> max_tokens;
  std::string max_tokens_field = "max_tokens";  // the name under which it was given
  std::vector<std::string> stops;
  StopText stop_text = StopText::kExclude;
  std::vector<std::string> bad_words;  // become tokens when the request is prepared
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  std::string cache_salt;

  // Chat: the checked messages (see parse_messages), and how they become a prompt.
  nlohmann::ordered_json messages;
  ToolRequest tools;
  bool stop_in_reasoning = false;  // stop strings count within reasoning too
  ChatPromptOptions chat;
  // Completions: at least one.
  std::vector<RawPrompt> prompts;
  bool echo = false;
};

// `models` is what the body may name, possibly nothing yet. kInvalidArgument with the field's path
// as param; kNotFound: another model; kUnavailable: there is no model yet; kUnsupported: a field of
// OpenAI's API that this server does not have. Unknown fields are refused, naming the nearest
// known one: a misspelt limit that is silently ignored costs money.
[[nodiscard]] Result<GenerationBody> parse_chat_body(std::string_view body,
                                                     std::span<const RequestRules> models);
[[nodiscard]] Result<GenerationBody> parse_completions_body(std::string_view body,
                                                            std::span<const RequestRules> models);

// POST /tokenize: a text, or a conversation when `messages` is an array. The model may be left out
// where there is only one.
struct TokenizeBody {
  size_t model = 0;
  std::string prompt;
  nlohmann::ordered_json messages;
  ChatPromptOptions chat;
  bool add_special_tokens = true;
  bool return_token_strs = false;
};
[[nodiscard]] Result<TokenizeBody> parse_tokenize_body(std::string_view body,
                                                       std::span<const RequestRules> models);

// POST /detokenize.
struct DetokenizeBody {
  size_t model = 0;
  std::vector<TokenId> tokens;
};
[[nodiscard]] Result<DetokenizeBody> parse_detokenize_body(std::string_view body,
                                                           std::span<const RequestRules> models);

// The same checks for a document that was not made from JSON text, as by RPC: an object with the
// fields that the body would have. Its strings must be UTF-8.
using RequestDocument = nlohmann::ordered_json;
[[nodiscard]] Result<GenerationBody> check_chat(const RequestDocument& document,
                                                std::span<const RequestRules> models);
[[nodiscard]] Result<GenerationBody> check_completions(const RequestDocument& document,
                                                       std::span<const RequestRules> models);
[[nodiscard]] Result<TokenizeBody> check_tokenize(const RequestDocument& document,
                                                  std::span<const RequestRules> models);
[[nodiscard]] Result<DetokenizeBody> check_detokenize(const RequestDocument& document,
                                                      std::span<const RequestRules> models);

}  // namespace troupe
