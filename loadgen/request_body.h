#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "loadgen/prompts.h"
#include "troupe/status.h"

namespace troupe::loadgen {

enum class Endpoint : uint8_t { kChat, kCompletions };

// What all requests of a run have in common.
struct RequestShape {
  std::string model;
  Endpoint endpoint = Endpoint::kChat;
  double temperature = 0.0;
  bool ignore_eos = true;  // answers have the length asked for; not every server knows the field
  std::string max_tokens_field = "max_completion_tokens";  // of chat; completions have max_tokens
  nlohmann::json extra = nlohmann::json::object();  // further fields; they go before the others
};

// The fields of --extra-body. kInvalidArgument: no JSON object, or it sets what the load decides.
[[nodiscard]] Result<nlohmann::json> parse_extra_body(const std::string& text);

// "/v1/chat/completions" or "/v1/completions".
[[nodiscard]] std::string path_of(Endpoint endpoint);

// A streaming request for an answer of `output_tokens` to `said`. A completion's prompt is what has
// been said, one message a line. Bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string request_body(const RequestShape& shape, const std::vector<Message>& said,
                                       uint32_t output_tokens);

}  // namespace troupe::loadgen
