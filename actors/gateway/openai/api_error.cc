#include "actors/gateway/openai/api_error.h"

#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {

namespace {

constexpr uint32_t kRetryOverloadedSeconds = 1;
constexpr uint32_t kRetryUnavailableSeconds = 2;

struct Shape {
  uint32_t http_status;
  const char* type;
  const char* code;
  uint32_t retry_after_s;
};

Shape shape_of(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return {400, "invalid_request_error", "invalid_value", 0};
    case StatusCode::kUnsupported:
      return {400, "invalid_request_error", "unsupported_parameter", 0};
    case StatusCode::kContextLength:
      return {400, "invalid_request_error", "context_length_exceeded", 0};
    case StatusCode::kNotFound:
      return {404, "invalid_request_error", "model_not_found", 0};
    case StatusCode::kResourceExhausted:
      return {429, "rate_limit_error", "overloaded", kRetryOverloadedSeconds};
    case StatusCode::kUnavailable:
      return {503, "service_unavailable", "unavailable", kRetryUnavailableSeconds};
    case StatusCode::kDeadlineExceeded:
      return {503, "service_unavailable", "deadline_exceeded", kRetryUnavailableSeconds};
    case StatusCode::kCancelled:
      return {503, "service_unavailable", "cancelled", 0};
    case StatusCode::kOk:
    case StatusCode::kDataLoss:
    case StatusCode::kInternal:
      break;
  }
  return {500, "server_error", "internal_error", 0};
}

}  // namespace

ApiError to_api_error(const Status& status) {
  TROUPE_ASSERT(!status.ok(), status.message());
  Shape shape = shape_of(status.code());
  if (status.code() == StatusCode::kNotFound && status.param() == "previous_response_id") {
    shape.code = "previous_response_not_found";
  }
  return {shape.http_status,
          shape.type,
          shape.code,
          printable_excerpt(status.message(), kErrorBytesMax),
          printable_excerpt(status.param(), kErrorBytesMax / 4),
          shape.retry_after_s};
}

std::string format_error(const ApiError& error) {
  std::string out = "{\"error\":{\"message\":";
  append_json_string(out, error.message);
  out += ",\"type\":";
  append_json_string(out, error.type);
  out += ",\"param\":";
  if (error.param.empty()) {
    out += "null";
  } else {
    append_json_string(out, error.param);
  }
  out += ",\"code\":";
  append_json_string(out, error.code);
  out += "}}";
  return out;
}

}  // namespace troupe
