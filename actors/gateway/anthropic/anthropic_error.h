#pragma once
// Errors in the shape of Anthropic's API.

#include <string>
#include <string_view>

#include "actors/gateway/openai/api_error.h"

namespace troupe {

// {"type":"error","error":{"type":...,"message":...},"request_id":...}. The type follows from the
// HTTP status:
//   400 invalid_request_error    401 authentication_error   403 permission_error
//   404 not_found_error          413 request_too_large      429 rate_limit_error
//   503 overloaded_error         else api_error; other 4xx: invalid_request_error
// Anthropic's status for overload is 529, which proxies do not know; this server sends 503.
[[nodiscard]] std::string format_anthropic_error(const ApiError& error,
                                                 std::string_view request_id);

}  // namespace troupe
