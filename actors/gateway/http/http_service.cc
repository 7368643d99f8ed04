#include "actors/gateway/http/http_service.h"

#include <kj/debug.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>
#include <vector>

#include "actors/gateway/http/body_reader.h"
#include "actors/gateway/http/endpoints.h"
#include "actors/gateway/http/exchange.h"
#include "actors/gateway/http/http_access.h"
#include "actors/gateway/http/stored_responses.h"
#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/openai/service_bodies.h"
#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {

enum class HttpService::Endpoint {
  kModels,
  kHealth,
  kCluster,
  kPing,
  kMetrics,
  kVersion,
};

struct HttpService::Route {
  std::string_view path;
  Endpoint endpoint;
};

// Those that take GET and HEAD; endpoints.h has those that take POST.
const HttpService::Route HttpService::kRoutes[] = {
    {"/v1/models", Endpoint::kModels}, {"/health", Endpoint::kHealth},
    {"/cluster", Endpoint::kCluster},  {"/ping", Endpoint::kPing},
    {"/metrics", Endpoint::kMetrics},  {"/version", Endpoint::kVersion},
};

namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";
constexpr std::string_view kResponsePrefix = "/v1/responses/";

ApiError make_error(uint32_t http_status, const char* code, std::string message) {
  return {http_status, "invalid_request_error",
          code,        printable_excerpt(message, kErrorBytesMax),
          "",          0};
}

// "%41" as "A"; anything that is no escape stays as it is.
std::string percent_decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    const std::string_view digits = text.substr(std::min(i + 1, text.size()), 2);
    const char* end = digits.data() + digits.size();
    const bool escape = text[i] == '%' && digits.size() == 2 &&
                        std::from_chars(digits.data(), end, byte, 16).ptr == end;
    out += escape ? static_cast<char>(byte) : text[i];
    if (escape) i += 2;
  }
  return out;
}

std::string_view view(kj::StringPtr text) {
  return {text.begin(), text.size()};
}

// What is wrong with how the request says where its body ends, or null. KJ itself takes any
// Content-Length that begins with digits, and joins several of them by commas.
const char* framing_fault(const kj::HttpHeaders& headers) {
  KJ_IF_MAYBE (length, headers.get(kj::HttpHeaderId::CONTENT_LENGTH)) {
    if (headers.get(kj::HttpHeaderId::TRANSFER_ENCODING) != nullptr) {
      return "Content-Length and Transfer-Encoding exclude each other; send one of them";
    }
    const std::string_view text = view(*length);
    uint64_t bytes = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (parsed.ec == std::errc::invalid_argument || parsed.ptr != text.data() + text.size()) {
      return "Content-Length must be one decimal number";
    }
  }
  return nullptr;
}

}  // namespace

HttpService::HttpService(HttpContext& context, kj::AsyncIoStream& connection)
    : context_(context), connection_(connection) {}

HttpRequestFacts HttpService::make_facts(kj::HttpMethod method, kj::StringPtr url,
                                         const kj::HttpHeaders& headers) {
  Facts facts;
  facts.number = context_.load.next_request();
  facts.method = kj::str(method).cStr();
  facts.path = view(url).substr(0, view(url).find('?'));
  facts.head = method == kj::HttpMethod::HEAD;
  facts.received = context_.clock.now();
  facts.style = style_of_path(facts.path);
  // What Anthropic's clients ask for elsewhere: models, and what this server does not have.
  if (facts.style == ApiStyle::kOpenAi && find_post_endpoint(facts.path) == nullptr &&
      headers.get(context_.names.anthropic_version) != nullptr) {
    facts.style = ApiStyle::kAnthropic;
  }
  KJ_IF_MAYBE (id, headers.get(context_.names.x_request_id)) {
    if (is_usable_request_id(view(*id))) facts.request_id = view(*id);
  }
  if (facts.request_id.empty()) facts.request_id = "req-" + std::to_string(facts.number);
  facts.cors_origin = allowed_origin(context_, headers);
  return facts;
}

kj::Promise<void> HttpService::request(kj::HttpMethod method, kj::StringPtr url,
                                       const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                                       Response& response) {
  Facts facts = make_facts(method, url, headers);
  if (const char* fault = framing_fault(headers); fault != nullptr) {
    // Two opinions on where a body ends are how requests are smuggled past proxies, so what follows
    // on this connection is not to be trusted either.
    return send_last_error(facts, make_error(400, "invalid_framing", fault), response);
  }
  if (const std::optional<ApiError> fault = check_header(view(url), headers)) {
    return send_last_error(facts, *fault, response);
  }
  if (method == kj::HttpMethod::OPTIONS) {
    // A browser sends no key with its question whether it may send one.
    return send_options(context_, facts, headers, allowed_methods(facts.path), response);
  }
  if (!has_access(context_, facts, headers)) return send_unauthorized(context_, facts, response);
  const bool reads = method == kj::HttpMethod::GET || method == kj::HttpMethod::HEAD;
  if (facts.path.starts_with(kModelPrefix) && facts.path.size() > kModelPrefix.size() && reads) {
    return answer_model(facts, response);
  }
  if (facts.path.starts_with(kResponsePrefix) && facts.path.size() > kResponsePrefix.size()) {
    return answer_stored(facts, view(url), response);
  }
  const PostEndpoint* post = find_post_endpoint(facts.path);
  const Route* route = find_route(facts.path);
  if (post == nullptr && route == nullptr) {
    const std::string path = printable_excerpt(facts.path, kExcerptBytesMax);
    return send_error(context_, facts, response,
                      make_error(404, "not_found",
                                 "there is no " + path +
                                     " here; the API is under /v1, e.g. "
                                     "/v1/chat/completions"));
  }
  if (post == nullptr) {
    if (!reads) return send_method_error(facts, "GET, HEAD, OPTIONS", response);
    return answer_get(route->endpoint, facts, response);
  }
  if (method != kj::HttpMethod::POST) {
    return send_method_error(facts, "POST, OPTIONS", response);
  }
  if (const std::optional<ApiError> fault = check_body_header(context_, headers)) {
    return send_error(context_, facts, response, *fault);
  }
  const bool wants_continue = headers.get(context_.names.expect) != nullptr;
  return read_and_answer(*post, std::move(facts), body, wants_continue, response);
}

kj::Promise<void> HttpService::send_last_error(const Facts& facts, const ApiError& error,
                                               Response& response) {
  context_.close_connection = true;
  // KJ says so in the header, but would still serve what it has read ahead; an exception ends it.
  return send_error(context_, facts, response, error).then([this]() -> kj::Promise<void> {
    connection_.shutdownWrite();
    return KJ_EXCEPTION(DISCONNECTED, "what follows a malformed request is not served");
  });
}

const HttpService::Route* HttpService::find_route(std::string_view path) const {
  const auto* route = std::find_if(std::begin(kRoutes), std::end(kRoutes),
                                   [&](const Route& r) { return r.path == path; });
  const bool absent = route != std::end(kRoutes) && route->endpoint == Endpoint::kCluster &&
                      !context_.options.cluster;
  return route == std::end(kRoutes) || absent ? nullptr : route;
}

std::string_view HttpService::allowed_methods(std::string_view path) const {
  const auto below = [path](std::string_view prefix) {
    return path.starts_with(prefix) && path.size() > prefix.size();
  };
  if (below(kResponsePrefix)) return "GET, DELETE, OPTIONS";
  if (below(kModelPrefix) || find_route(path) != nullptr) return "GET, HEAD, OPTIONS";
  return find_post_endpoint(path) != nullptr ? "POST, OPTIONS" : "GET, HEAD, POST, OPTIONS";
}

kj::Promise<void> HttpService::send_method_error(const Facts& facts, const char* allowed,
                                                 Response& response) {
  const ApiError error = make_error(405, "method_not_allowed",
                                    facts.path + " takes " + allowed + "; got " + facts.method);
  return send_error(context_, facts, response, error, context_.names.allow, allowed);
}

kj::Promise<void> HttpService::answer_get(Endpoint endpoint, const Facts& facts,
                                          Response& response) {
  switch (endpoint) {
    case Endpoint::kModels:
      return send_json(context_, facts, response,
                       format_model_list(context_.models, context_.health));
    case Endpoint::kHealth:
      return answer_health(facts, response);
    case Endpoint::kCluster:
      return send_json(context_, facts, response, context_.options.cluster());
    case Endpoint::kPing:
      return send_json(context_, facts, response, "{\"status\":\"ok\"}");
    case Endpoint::kMetrics: {
      const kj::HttpHeaders headers =
          make_headers(context_, facts, "text/plain; version=0.0.4; charset=utf-8");
      return send_response(context_, facts, response, 200, headers,
                           context_.metrics.render_metrics() + context_.load.serialize_metrics());
    }
    case Endpoint::kVersion: {
      std::string body = "{\"version\":";
      append_json_string(body, context_.options.version);
      return send_json(context_, facts, response, body + "}");
    }
    default:
      TROUPE_ASSERT(false, static_cast<int>(endpoint));
      return kj::READY_NOW;
  }
}

kj::Promise<void> HttpService::answer_health(const Facts& facts, Response& response) {
  const Status health = context_.health.health();
  if (health.ok()) return send_json(context_, facts, response, "{\"status\":\"ok\"}");
  ApiError error = to_api_error(health);
  // Whatever the reason, a probe is told the same: not now.
  error.http_status = 503;
  error.type = "service_unavailable";
  error.retry_after_s = std::max(error.retry_after_s, 1U);
  return send_error(context_, facts, response, error);
}

kj::Promise<void> HttpService::answer_model(const Facts& facts, Response& response) {
  const std::string name = percent_decode(facts.path.substr(kModelPrefix.size()));
  if (const CataloguedModel* model = context_.models.find(name); model != nullptr) {
    const Status health = context_.health.health_of(model->served().digest);
    if (!health.ok()) return send_error(context_, facts, response, to_api_error(health));
    return send_json(context_, facts, response, format_model(model->served()));
  }
  if (context_.models.empty()) {
    return send_error(context_, facts, response, to_api_error(no_model_yet()));
  }
  return send_error(context_, facts, response,
                    make_error(404, "model_not_found",
                               "the model \"" + printable_excerpt(name, kExcerptBytesMax) +
                                   "\" does not exist here; GET /v1/models lists what does"));
}

kj::Promise<void> HttpService::answer_stored(const Facts& facts, std::string_view url,
                                             Response& response) {
  StoredAnswer answer =
      answer_stored_response(facts.method, url.substr(kResponsePrefix.size()), context_.responses);
  if (answer.allow != nullptr) return send_method_error(facts, answer.allow, response);
  if (answer.error) return send_error(context_, facts, response, *answer.error);
  return send_json(context_, facts, response, std::move(answer.body));
}

kj::Promise<void> HttpService::read_and_answer(const PostEndpoint& endpoint, Facts facts,
                                               kj::AsyncInputStream& body, bool wants_continue,
                                               Response& response) {
  const FrontendLimits& limits = context_.load.limits();
  kj::Promise<void> ready = kj::READY_NOW;
  bool fits = true;
  KJ_IF_MAYBE (length, body.tryGetLength()) {
    fits = *length <= limits.body_bytes_max;
  }
  // A body that is refused by its length need not be sent at all.
  if (wants_continue && fits) {
    // KJ does not answer the expectation; without an answer clients wait a second before the body.
    constexpr kj::StringPtr kContinue = "HTTP/1.1 100 Continue\r\n\r\n"_kj;
    ready = connection_.write(kContinue.begin(), kContinue.size());
  }
  return ready
      .then([this, &body, &limits] {
        return read_body(body, context_.timer, limits.body_bytes_max, limits.body_timeout);
      })
      .then([this, &endpoint, facts = std::move(facts), &response,
             &limits](BodyResult read) mutable -> kj::Promise<void> {
        if (read.outcome == BodyResult::Outcome::kComplete) {
          return answer_post(endpoint, std::move(facts), read.body, response);
        }
        context_.close_connection = true;
        if (read.outcome == BodyResult::Outcome::kMalformed) {
          return send_error(
              context_, facts, response,
              make_error(400, "invalid_http", "the chunks of the request's body are malformed"));
        }
        if (read.outcome == BodyResult::Outcome::kTooSlow) {
          context_.load.metrics().cut_slow_body.Increment();
          return send_error(context_, facts, response,
                            make_error(408, "body_timeout", "the body did not arrive in time"));
        }
        return send_error(
            context_, facts, response,
            make_error(413, "body_too_large",
                       "the body must have at most " + std::to_string(limits.body_bytes_max) +
                           " bytes; send less"));
      });
}

kj::Promise<void> HttpService::answer_post(const PostEndpoint& endpoint, Facts facts,
                                           const std::string& body, Response& response) {
  if (endpoint.prepare != nullptr) return run(endpoint, std::move(facts), body, response);
  Result<std::string> answer = endpoint.answer(context_, body);
  if (!answer.ok()) return send_error(context_, facts, response, to_api_error(answer.status()));
  return send_json(context_, facts, response, std::move(answer).value());
}

kj::Promise<void> HttpService::run(const PostEndpoint& endpoint, Facts facts,
                                   const std::string& body, Response& response) {
  // Before anything is parsed, so that a refusal costs little.
  Result<LoadTicket> ticket = context_.load.begin_generation();
  if (!ticket.ok()) return send_error(context_, facts, response, to_api_error(ticket.status()));
  const Result<PreparedAnswer> prepared = endpoint.prepare(context_, facts, body);
  if (!prepared.ok()) {
    return send_error(context_, facts, response, to_api_error(prepared.status()));
  }
  if (watch_ == nullptr) {
    watch_ = std::make_unique<DisconnectWatch>(context_.event_port, connection_);
  }
  auto exchange =
      kj::heap<Exchange>(context_, std::move(facts), std::move(ticket).value(), response, *watch_);
  Exchange& running = *exchange;
  return running.serve(prepared.value()).attach(kj::mv(exchange));
}

}  // namespace troupe
