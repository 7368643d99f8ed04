#pragma once
// How a failed Status looks to a client: OpenAI's error object and the HTTP status that carries it.

#include <cstdint>
#include <string>

#include "troupe/status.h"

namespace troupe {

struct ApiError {
  uint32_t http_status = 500;
  std::string type;
  std::string code;
  std::string message;  // UTF-8, at most kErrorBytesMax bytes
  std::string param;    // empty: null
  // Seconds for the Retry-After header; 0: none, repeating cannot help.
  uint32_t retry_after_s = 0;
};

//   kInvalidArgument    400 invalid_request_error  invalid_value
//   kUnsupported        400 invalid_request_error  unsupported_parameter
//   kContextLength      400 invalid_request_error  context_length_exceeded
//   kNotFound           404 invalid_request_error  model_not_found, previous_response_not_found
//   kResourceExhausted  429 rate_limit_error       overloaded         Retry-After: 1
//   kUnavailable        503 service_unavailable    unavailable        Retry-After: 2
//   kDeadlineExceeded   503 service_unavailable    deadline_exceeded  Retry-After: 2
//   kCancelled          503 service_unavailable    cancelled
//   kDataLoss, kInternal 500 server_error          internal_error
[[nodiscard]] ApiError to_api_error(const Status& status);

// {"error":{"message":...,"type":...,"param":...,"code":...}}
[[nodiscard]] std::string format_error(const ApiError& error);

}  // namespace troupe
