#pragma once
// POST /v1/responses: checked, and turned into a chat.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/path_renames.h"
#include "actors/gateway/openai/request.h"
#include "actors/gateway/responses/response_store.h"

namespace troupe {

struct ResponsesRequest {
  GenerationBody body;  // a chat with one choice
  PathRenames renames;  // for errors of what is done with the body later
  // What the response object repeats of its request: members as JSON text, each after a comma.
  std::string echo;
  bool store = true;
  // For the store; null unless it is to be stored.
  nlohmann::ordered_json conversation;  // chat messages without instructions, earlier turns first
  nlohmann::ordered_json input;         // as sent
};

// Errors as those of parse_chat_body(), with the client's paths. kNotFound with the param
// previous_response_id: that response is not stored.
[[nodiscard]] Result<ResponsesRequest> parse_responses_body(std::string_view body,
                                                            std::span<const RequestRules> models,
                                                            ResponseStore& store);
[[nodiscard]] std::span<const KnownField> responses_fields();

}  // namespace troupe
