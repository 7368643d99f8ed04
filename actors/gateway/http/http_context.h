#pragma once
// What the parts of one HTTP front end share. Loop thread only.

#include <kj/async-unix.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "actors/gateway/http/api_style.h"
#include "actors/gateway/http/http_frontend.h"
#include "actors/gateway/openai/api_error.h"
#include "actors/gateway/responses/response_store.h"

namespace troupe {

class Exchange;

// The headers that are read or written by name.
struct HttpHeaderNames {
  HttpHeaderNames();
  kj::HttpHeaderId x_request_id, request_id, retry_after, allow, cache_control, x_accel_buffering,
      expect, authorization, x_api_key, www_authenticate, origin, vary, content_encoding,
      request_method, request_headers, allow_origin, allow_methods, allow_headers, expose_headers,
      max_age, anthropic_version;
  kj::Own<kj::HttpHeaderTable> table;

 private:
  explicit HttpHeaderNames(kj::HttpHeaderTable::Builder&& builder);
};

struct HttpContext {
  kj::Timer& timer;
  kj::UnixEventPort& event_port;
  Generator& generator;
  const ModelCatalogue& models;
  const HealthSource& health;
  MetricsSource& metrics;
  const Clock& clock;
  FrontendLoad& load;
  HttpFrontendOptions options;
  HttpHeaderNames names;

  std::set<Exchange*> exchanges = {};  // being generated now
  ResponseStore responses{};
  // Set before a response's headers are made: the connection is closed behind it.
  bool close_connection = false;
};

// One request's facts that its response and log line need.
struct HttpRequestFacts {
  std::string method;
  std::string path;        // without query; foreign bytes
  std::string request_id;  // visible ASCII, at most kRequestIdBytesMax bytes
  uint64_t number = 0;
  TimePoint received{};
  bool head = false;             // only headers are sent
  std::string cors_origin = {};  // see allowed_origin()
  ApiStyle style = ApiStyle::kOpenAi;
};

[[nodiscard]] kj::HttpHeaders make_headers(const HttpContext& context,
                                           const HttpRequestFacts& request,
                                           kj::StringPtr content_type);

// Adds what a page of another origin needs in order to read a response; see http_access.h.
void add_cors(const HttpContext& context, const HttpRequestFacts& request,
              kj::HttpHeaders& headers);

// Sends a whole response and logs the request. A client that does not take it within the write
// timeout is cut.
[[nodiscard]] kj::Promise<void> send_response(HttpContext& context, const HttpRequestFacts& request,
                                              kj::HttpService::Response& response, uint32_t status,
                                              const kj::HttpHeaders& headers, std::string body);
[[nodiscard]] kj::Promise<void> send_json(HttpContext& context, const HttpRequestFacts& request,
                                          kj::HttpService::Response& response, std::string body);
[[nodiscard]] kj::Promise<void> send_error(HttpContext& context, const HttpRequestFacts& request,
                                           kj::HttpService::Response& response,
                                           const ApiError& error);
// The same with a header field more. Every error that belongs to a request goes through one of
// these two, so that it has the form of the request's API.
[[nodiscard]] kj::Promise<void> send_error(HttpContext& context, const HttpRequestFacts& request,
                                           kj::HttpService::Response& response,
                                           const ApiError& error, kj::HttpHeaderId name,
                                           kj::StringPtr value);

void log_request(const HttpContext& context, const HttpRequestFacts& request,
                 std::string_view outcome);

// Writes with the write timeout; rejects with DISCONNECTED when it passes.
[[nodiscard]] kj::Promise<void> write_in_time(HttpContext& context, kj::AsyncOutputStream& out,
                                              std::string bytes);

}  // namespace troupe
