#include "actors/gateway/anthropic/anthropic_error.h"

#include "actors/gateway/text/escape.h"

namespace troupe {
namespace {

std::string_view type_of(uint32_t http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return http_status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

std::string format_anthropic_error(const ApiError& error, std::string_view request_id) {
  std::string out = R"({"type":"error","error":{"type":")";
  out += type_of(error.http_status);
  out += R"(","message":)";
  append_json_string(out, error.message);
  out += R"(},"request_id":)";
  append_json_string(out, request_id);
  out += '}';
  return out;
}

}  // namespace troupe
