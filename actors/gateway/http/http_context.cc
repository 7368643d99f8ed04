#include "actors/gateway/http/http_context.h"

#include <glog/logging.h>
#include <kj/debug.h>

#include <chrono>
#include <utility>

#include "actors/gateway/text/escape.h"

namespace troupe {

namespace {

constexpr size_t kLoggedPathBytesMax = 200;

kj::StringPtr status_text(uint32_t status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

HttpHeaderNames::HttpHeaderNames() : HttpHeaderNames(kj::HttpHeaderTable::Builder()) {}

HttpHeaderNames::HttpHeaderNames(kj::HttpHeaderTable::Builder&& builder)
    : x_request_id(builder.add("X-Request-Id")),
      request_id(builder.add("Request-Id")),
      retry_after(builder.add("Retry-After")),
      allow(builder.add("Allow")),
      cache_control(builder.add("Cache-Control")),
      x_accel_buffering(builder.add("X-Accel-Buffering")),
      expect(builder.add("Expect")),
      authorization(builder.add("Authorization")),
      x_api_key(builder.add("X-Api-Key")),
      www_authenticate(builder.add("WWW-Authenticate")),
      origin(builder.add("Origin")),
      vary(builder.add("Vary")),
      content_encoding(builder.add("Content-Encoding")),
      request_method(builder.add("Access-Control-Request-Method")),
      request_headers(builder.add("Access-Control-Request-Headers")),
      allow_origin(builder.add("Access-Control-Allow-Origin")),
      allow_methods(builder.add("Access-Control-Allow-Methods")),
      allow_headers(builder.add("Access-Control-Allow-Headers")),
      expose_headers(builder.add("Access-Control-Expose-Headers")),
      max_age(builder.add("Access-Control-Max-Age")),
      anthropic_version(builder.add("Anthropic-Version")),
      table(builder.build()) {}

kj::HttpHeaders make_headers(const HttpContext& context, const HttpRequestFacts& request,
                             kj::StringPtr content_type) {
  kj::HttpHeaders headers(*context.names.table);
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, content_type);
  headers.set(context.names.x_request_id, kj::str(request.request_id.c_str()));
  add_cors(context, request, headers);
  if (request.style == ApiStyle::kAnthropic) {
    headers.set(context.names.request_id, kj::str(request.request_id.c_str()));
  }
  return headers;
}

kj::Promise<void> write_in_time(HttpContext& context, kj::AsyncOutputStream& out,
                                std::string bytes) {
  auto owned = kj::heap<std::string>(std::move(bytes));
  auto write = out.write(owned->data(), owned->size()).attach(kj::mv(owned));
  const kj::Duration limit = context.load.limits().write_timeout.count() * kj::MILLISECONDS;
  return write.exclusiveJoin(
      context.timer.afterDelay(limit).then([&context]() -> kj::Promise<void> {
        context.load.metrics().cut_slow_reader.Increment();
        return KJ_EXCEPTION(DISCONNECTED, "the client does not read its response");
      }));
}

kj::Promise<void> send_response(HttpContext& context, const HttpRequestFacts& request,
                                kj::HttpService::Response& response, uint32_t status,
                                const kj::HttpHeaders& headers, std::string body) {
  log_request(context, request, std::to_string(status));
  context.load.metrics().count_response(status);
  auto out = response.send(status, status_text(status), headers, body.size());
  if (request.head || body.empty()) return kj::READY_NOW;
  auto& stream = *out;
  return write_in_time(context, stream, std::move(body)).attach(kj::mv(out));
}

kj::Promise<void> send_json(HttpContext& context, const HttpRequestFacts& request,
                            kj::HttpService::Response& response, std::string body) {
  const kj::HttpHeaders headers = make_headers(context, request, "application/json");
  return send_response(context, request, response, 200, headers, std::move(body));
}

kj::Promise<void> send_error(HttpContext& context, const HttpRequestFacts& request,
                             kj::HttpService::Response& response, const ApiError& error) {
  const std::string retry_after =
      error.retry_after_s > 0 ? std::to_string(error.retry_after_s) : std::string();
  return send_error(context, request, response, error, context.names.retry_after,
                    retry_after.c_str());
}

kj::Promise<void> send_error(HttpContext& context, const HttpRequestFacts& request,
                             kj::HttpService::Response& response, const ApiError& error,
                             kj::HttpHeaderId name, kj::StringPtr value) {
  kj::HttpHeaders headers = make_headers(context, request, "application/json");
  if (value.size() > 0) headers.set(name, kj::str(value));
  return send_response(context, request, response, error.http_status, headers,
                       error_body(request.style, error, request.request_id));
}

void log_request(const HttpContext& context, const HttpRequestFacts& request,
                 std::string_view outcome) {
  if (!VLOG_IS_ON(1)) return;
  const auto elapsed = context.clock.now() - request.received;
  VLOG(1) << "http " << request.request_id << ' ' << request.method << ' '
          << printable_excerpt(request.path, kLoggedPathBytesMax) << ' ' << outcome << ' '
          << std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count() << " ms";
}

}  // namespace troupe
