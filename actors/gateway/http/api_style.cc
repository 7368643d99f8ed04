#include "actors/gateway/http/api_style.h"

#include "actors/gateway/anthropic/anthropic_error.h"

namespace troupe {

ApiStyle style_of_path(std::string_view path) {
  if (path.starts_with("/v1/messages")) return ApiStyle::kAnthropic;
  if (path.starts_with("/v1/responses")) return ApiStyle::kResponses;
  return ApiStyle::kOpenAi;
}

std::string error_body(ApiStyle style, const ApiError& error, std::string_view request_id) {
  if (style == ApiStyle::kAnthropic) return format_anthropic_error(error, request_id);
  return format_error(error);
}

std::string error_frame(ApiStyle style, const ApiError& error, std::string_view request_id) {
  const std::string body = error_body(style, error, request_id);
  return event_frame(style == ApiStyle::kOpenAi ? "" : "error", body) + end_frame(style);
}

std::string end_frame(ApiStyle style) {
  return style == ApiStyle::kOpenAi ? "data: [DONE]\n\n" : "";
}

std::string ping_frame(ApiStyle style) {
  if (style == ApiStyle::kAnthropic) return event_frame("ping", R"({"type":"ping"})");
  return ": ping\n\n";
}

std::string event_frame(std::string_view name, std::string_view json) {
  std::string frame;
  if (!name.empty()) {
    frame += "event: ";
    frame += name;
    frame += '\n';
  }
  frame += "data: ";
  frame += json;
  frame += "\n\n";
  return frame;
}

}  // namespace troupe
