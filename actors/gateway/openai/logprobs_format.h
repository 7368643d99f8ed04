#pragma once
// Log-probabilities as the two endpoints show them, collected token by token.

#include <string>

#include "actors/gateway/openai/request.h"
#include "engine/sample/sampling_params.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

// JSON has no infinities: what the sampler made impossible is shown as this.
inline constexpr float kLogprobMin = -9999.0F;

// Collects the entries of one chunk or one whole answer. One entry per token, also for tokens whose
// text is held back, cut by a stop string, or hidden.
//   chat:        {"content":[{"token","logprob","bytes","top_logprobs":[...]}],"refusal":null}
//   completions: {"tokens":[],"token_logprobs":[],"top_logprobs":[],"text_offset":[]}
// A token that is no whole UTF-8 is named by replacement characters in a chat (its `bytes` are
// exact) and as bytes:\xNN... in completions, where the name is all there is.
class LogprobsFormat final {
 public:
  // `tokenizer` outlives this object.
  LogprobsFormat(const Tokenizer& tokenizer, Api api) : tokenizer_(&tokenizer), api_(api) {}

  // `offset`: characters of text before the token's own, counted from the start of the echoed
  // prompt where there is one. Only completions show it.
  void append(const SampledToken& token, size_t offset);
  // The first token of a prompt has no probability: null.
  void append_first(TokenId token, size_t offset);

  [[nodiscard]] bool empty() const { return count_ == 0; }
  // The object with what was collected since the last take().
  [[nodiscard]] std::string take();
  // Of a chat: the elements of "content", joined by commas, since the last take.
  [[nodiscard]] std::string take_entries();

 private:
  void append_chat(const SampledToken& token);
  void append_completion_token(TokenId token, size_t offset);
  [[nodiscard]] std::string completion_name(TokenId token) const;

  const Tokenizer* tokenizer_;
  Api api_;
  size_t count_ = 0;
  // Comma-separated elements of the arrays; chats use only the first.
  std::string tokens_, logprobs_, top_, offsets_;
};

}  // namespace troupe
