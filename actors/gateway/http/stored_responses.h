#pragma once
// GET and DELETE of what lies below /v1/responses/.

#include <optional>
#include <string>
#include <string_view>

#include "actors/gateway/openai/api_error.h"
#include "actors/gateway/responses/response_store.h"

namespace troupe {

struct StoredAnswer {
  std::string body;  // JSON, when there is no error
  std::optional<ApiError> error;
  const char* allow = nullptr;  // with a 405: the methods of this path
};

// `method` is an HTTP method's name; `target` the path behind /v1/responses/, escapes and all, with
// the query if there is one:
//   GET {id}, DELETE {id}, GET {id}/input_items?limit=&order=&after=
// POST {id}/cancel is refused: there are no background responses.
[[nodiscard]] StoredAnswer answer_stored_response(std::string_view method, std::string_view target,
                                                  ResponseStore& store);

}  // namespace troupe
