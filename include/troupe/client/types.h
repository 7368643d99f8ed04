#pragma once
// What a request to a Troupe server says and what comes back. Plain values; the defaults are those
// of the HTTP API, and so are the ranges (docs/http-api.md): the server checks them.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::client {

using Token = uint32_t;

struct Model {
  std::string name;
  uint32_t context_tokens = 0;  // prompt and output together
  uint32_t vocab_size = 0;
  int64_t created_unix_s = 0;
  bool chat = false;  // has a chat template
  bool operator==(const Model&) const = default;
};

// A function that the model may ask the client to call.
struct Tool {
  std::string name;  // 1 to 64 of A-Z, a-z, 0-9, _ and -
  std::string description;
  std::string parameters;  // JSON text, the JSON Schema of an object; empty: it takes nothing
  bool strict = false;     // with an automatic choice, too, arguments follow `parameters`
};

struct ToolChoice {
  enum class Kind {
    kStandard,   // automatic with tools, none without
    kNone,       // the tools are not shown to the model
    kAutomatic,  // text, calls or both
    kRequired,   // at least one call, and nothing else
    kNamed,      // a call of the tool `name`, and nothing else
  };
  Kind kind = Kind::kStandard;
  std::string name = {};
};

struct Parameters {
  double temperature = 1;  // [0, 2]; 0: always the most probable token
  double top_p = 1;        // (0, 1]
  int64_t top_k = -1;      // -1 and 0: off
  double min_p = 0;        // [0, 1]
  double repetition_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<Token, double>> logit_bias;  // each token at most once
  std::vector<Token> allowed_token_ids = {};         // none: all are allowed
  std::vector<std::string> bad_words = {};           // at most 256
  std::optional<uint64_t> seed;                      // not given: another one each time
  uint32_t n = 1;                                    // choices, [1, 16]
  std::optional<uint32_t> max_tokens;  // not given: 16, or for a chat the rest of the context
  uint32_t min_tokens = 0;
  std::vector<std::string> stop;  // at most 4
  std::vector<Token> stop_token_ids;
  bool include_stop_text = false;
  bool ignore_eos = false;
  std::optional<uint32_t> logprobs;  // [0, 20] alternatives beside each token's own
  bool echo = false;                 // completions only
  std::string cache_salt;
  std::string label;  // for the server's log
  // What the answer has to look like: JSON text, as structured_outputs of a body. Empty: free text.
  std::string structured_outputs = {};
  std::vector<Tool> tools = {};  // chats only, at most 128
  ToolChoice tool_choice = {};
  bool parallel_tool_calls = true;  // more than one call in an answer
};

struct CompletionRequest {
  std::string model;
  std::variant<std::string, std::vector<Token>> prompt;
  Parameters parameters;
};

// Of an answer, or of an assistant's message in the conversation so far. In a chunk of an answer
// only what is new: id and name where the call begins, then pieces of its arguments.
struct ToolCall {
  std::string id, name;
  std::string arguments;  // JSON
  uint32_t index = 0;     // 0, 1, ... within a choice
  bool operator==(const ToolCall&) const = default;
};

struct Message {
  std::string role;  // "system", "user", "assistant" or "tool"
  std::string content;
  std::string name;          // empty: not given
  std::string tool_call_id;  // of a tool message
  std::vector<ToolCall> tool_calls;
};

struct ChatRequest {
  std::string model;
  std::vector<Message> messages;
  Parameters parameters;
};

enum class FinishReason {
  kUnfinished,  // in a chunk: more comes
  kStop,        // the model ended, or a stop string or stop token came
  kLength,      // max_tokens, or the end of the context; also in the middle of a call
  kToolCalls,   // it ended by itself, has a call, and all its calls are whole
};

struct TokenLogprob {
  Token token = 0;
  float logprob = 0;
  bool operator==(const TokenLogprob&) const = default;
};

struct SampledToken {
  Token token = 0;
  float logprob = 0;              // where log-probabilities were asked for
  std::vector<TokenLogprob> top;  // most probable first
  bool operator==(const SampledToken&) const = default;
};

// In an answer the whole choice; in a chunk what is new of it.
struct Choice {
  uint32_t index = 0;
  std::string text;  // UTF-8, whole characters
  std::vector<SampledToken> tokens;
  std::vector<SampledToken> prompt_tokens;  // with echo and logprobs
  FinishReason finish_reason = FinishReason::kUnfinished;
  std::string reasoning = {};  // what a model that reasons thought before `text`
  std::vector<ToolCall> tool_calls = {};
  bool operator==(const Choice&) const = default;
};

struct Usage {
  uint64_t prompt_tokens = 0;
  uint64_t completion_tokens = 0;         // of all choices
  std::optional<uint64_t> cached_tokens;  // of the prompt; not given: unknown
  bool operator==(const Usage&) const = default;
};

struct Answer {
  std::string id;
  std::string model;
  int64_t created_unix_s = 0;
  std::vector<Choice> choices;  // by index; of a stream: empty, they came before
  Usage usage;
};

}  // namespace troupe::client
