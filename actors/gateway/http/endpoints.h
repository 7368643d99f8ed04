#pragma once
// The POST endpoints: what each of them makes of a request's body.

#include <string>
#include <string_view>

#include "actors/gateway/http/exchange.h"
#include "actors/gateway/http/http_context.h"
#include "troupe/status.h"

namespace troupe {

// Exactly one of the functions is set.
struct PostEndpoint {
  std::string_view path;
  // The whole answer, at once.
  Result<std::string> (*answer)(HttpContext& context, std::string_view body) = nullptr;
  // An answer that takes its time, and a place among those that run.
  Result<PreparedAnswer> (*prepare)(HttpContext& context, const HttpRequestFacts& request,
                                    std::string_view body) = nullptr;
};

// Null: there is none at this path.
[[nodiscard]] const PostEndpoint* find_post_endpoint(std::string_view path);

}  // namespace troupe
