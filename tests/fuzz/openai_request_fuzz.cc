// Reads any bytes as the body of each POST endpoint: whatever comes, it must end in a checked
// request or in an error that is a short, strict JSON text.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "actors/gateway/anthropic/messages_request.h"
#include "actors/gateway/openai/api_error.h"
#include "actors/gateway/openai/embeddings_request.h"
#include "actors/gateway/openai/request.h"
#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/openai/score_request.h"
#include "actors/gateway/responses/responses_request.h"
#include "base/assert.h"

namespace {

constexpr size_t kErrorBodyBytesMax = 4096;

void check_error(const troupe::Status& status) {
  const std::string body = troupe::format_error(troupe::to_api_error(status));
  TROUPE_ASSERT(body.size() <= kErrorBodyBytesMax, body.size());
  TROUPE_ASSERT(nlohmann::json::accept(body), body);
}

void check_generation(const troupe::Result<troupe::GenerationBody>& parsed,
                      const troupe::RequestRules& rules) {
  if (!parsed.ok()) return check_error(parsed.status());
  const troupe::SamplingParams& sampling = parsed->sampling;
  TROUPE_ASSERT(sampling.temperature >= 0 && sampling.temperature <= 2, sampling.temperature);
  TROUPE_ASSERT(parsed->choices >= 1 && parsed->choices <= troupe::kChoicesMax, parsed->choices);
  for (const auto& [token, bias] : sampling.logit_bias) {
    TROUPE_ASSERT(static_cast<uint32_t>(token) < rules.vocab_size, token, bias);
  }
  for (const troupe::RawPrompt& prompt : parsed->prompts) {
    for (const troupe::TokenId token : prompt.tokens) {
      TROUPE_ASSERT(static_cast<uint32_t>(token) < rules.vocab_size, token);
    }
  }
  // Throws on text that is not UTF-8.
  TROUPE_ASSERT(!parsed->messages.dump().empty(), parsed->choices);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const troupe::RequestRules models[] = {{"m", 1000, 8192}};
  const troupe::RequestRules& rules = models[0];
  check_generation(troupe::parse_chat_body(body, models), rules);
  check_generation(troupe::parse_completions_body(body, models), rules);
  troupe::ResponseStore no_responses;
  const auto responses = troupe::parse_responses_body(body, models, no_responses);
  if (responses.ok()) check_generation(responses->body, rules);
  const auto messages = troupe::parse_messages_body(body, models);
  if (messages.ok()) check_generation(messages->body, rules);
  for (const troupe::Status& status :
       {responses.status(), messages.status(), troupe::parse_count_body(body, models).status(),
        troupe::parse_embeddings_body(body, models).status(),
        troupe::parse_score_body(body, models).status(),
        troupe::parse_tokenize_body(body, models).status(),
        troupe::parse_detokenize_body(body, models).status()}) {
    if (!status.ok()) check_error(status);
  }
  return 0;
}
