#pragma once
// How the APIs that share one HTTP server differ in the wrapping: errors and the frames of a
// stream.

#include <string>
#include <string_view>

#include "actors/gateway/openai/api_error.h"

namespace troupe {

enum class ApiStyle {
  kOpenAi,     // {"error":{...}}; a stream ends with [DONE]
  kResponses,  // the same errors; events have names, and a last one that says how it ended
  kAnthropic,  // {"type":"error","error":{...}}; events have names
};

// The style in which requests to this path are answered, whether it exists or not.
[[nodiscard]] ApiStyle style_of_path(std::string_view path);

// The body of a refusal. `request_id` is the id that the response's header has.
[[nodiscard]] std::string error_body(ApiStyle style, const ApiError& error,
                                     std::string_view request_id);
// One frame that ends a stream with an error, and the frame that ends one well; possibly empty.
[[nodiscard]] std::string error_frame(ApiStyle style, const ApiError& error,
                                      std::string_view request_id);
[[nodiscard]] std::string end_frame(ApiStyle style);
// What is sent into a silent stream, so that no proxy cuts it.
[[nodiscard]] std::string ping_frame(ApiStyle style);
// `name` may be empty.
[[nodiscard]] std::string event_frame(std::string_view name, std::string_view json);

}  // namespace troupe
