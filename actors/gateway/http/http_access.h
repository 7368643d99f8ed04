#pragma once
// Who may ask: API keys, and pages of other origins (CORS, https://fetch.spec.whatwg.org/).

#include <kj/compat/http.h>

#include <optional>
#include <string>
#include <string_view>

#include "actors/gateway/http/http_context.h"

namespace troupe {

// The value of Access-Control-Allow-Origin for this request: "*", its origin, or empty, which gives
// it no such header.
[[nodiscard]] std::string allowed_origin(const HttpContext& context,
                                         const kj::HttpHeaders& headers);

// Whether the path needs no key, or the request has one: `Authorization: Bearer KEY`, as OpenAI's
// clients send it, or `x-api-key: KEY`, as Anthropic's do.
[[nodiscard]] bool has_access(const HttpContext& context, const HttpRequestFacts& request,
                              const kj::HttpHeaders& headers);

// 401 invalid_api_key.
[[nodiscard]] kj::Promise<void> send_unauthorized(HttpContext& context,
                                                  const HttpRequestFacts& request,
                                                  kj::HttpService::Response& response);

// OPTIONS: `allow` lists the path's methods. With the header of a preflight it answers that.
[[nodiscard]] kj::Promise<void> send_options(HttpContext& context, const HttpRequestFacts& request,
                                             const kj::HttpHeaders& headers, std::string_view allow,
                                             kj::HttpService::Response& response);

// What is wrong with the header of a request that has a body, before the body is read.
[[nodiscard]] std::optional<ApiError> check_body_header(const HttpContext& context,
                                                        const kj::HttpHeaders& headers);
// What is wrong with any request's header: too many fields, too long a path.
[[nodiscard]] std::optional<ApiError> check_header(std::string_view url,
                                                   const kj::HttpHeaders& headers);

}  // namespace troupe
