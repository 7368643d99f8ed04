#pragma once
// What the front ends need to know about the model's text: how prompts become tokens and tokens
// become text. A port, so that requests can be tested without a model file.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "troupe/status.h"

namespace troupe {

enum class SpecialTokens {
  kAdd,   // what the model's file asks for at the start of a prompt (BOS)
  kNone,
};

// Immutable; used on the gateway's loop thread.
class TextModel {
 public:
  virtual ~TextModel() = default;
  // Number of valid token ids: [0, vocab_size()).
  [[nodiscard]] virtual uint32_t vocab_size() const = 0;
  // Bytes of the longest token: no text of b bytes has fewer than b / this tokens.
  [[nodiscard]] virtual uint32_t token_bytes_max() const = 0;
  // A raw prompt. Spellings of special tokens in it are recognised: whoever writes the whole prompt
  // may write its control tokens too.
  [[nodiscard]] virtual Result<std::vector<TokenId>> encode(std::string_view text,
                                                            SpecialTokens special) const = 0;
  // A conversation through the model's chat template. `messages` are normalised (see
  // parse_messages): only what the template itself wrote can become a special token.
  // kUnsupported: the model has no template; kInvalidArgument: the template refused, in its words.
  [[nodiscard]] virtual Result<std::vector<TokenId>> encode_chat(
      const nlohmann::ordered_json& messages, bool add_generation_prompt) const = 0;
  // The bytes that the token stands for: not always whole code points. Special tokens by name.
  [[nodiscard]] virtual std::string token_bytes(TokenId token) const = 0;
  // True for control tokens, which are not part of the text shown to a client.
  [[nodiscard]] virtual bool is_control(TokenId token) const = 0;
};

// The model as its clients see it.
struct ServedModel {
  std::string name;                // what requests must say in `model`
  uint32_t context_tokens = 0;     // prompt and output together
  int64_t created_unix_s = 0;      // for GET /v1/models
  const TextModel& text;
};

}  // namespace troupe
