#include "actors/gateway/http/http_access.h"

#include <algorithm>
#include <cctype>

namespace troupe {

namespace {

constexpr std::string_view kBearer = "bearer ";
// Of Access-Control-Request-Headers; a longer list is not allowed.
constexpr size_t kRequestedHeadersBytesMax = 4096;
constexpr size_t kHeaderFieldsMax = 100;
constexpr size_t kUrlBytesMax = size_t{8} << 10;
constexpr kj::StringPtr kPreflightSeconds = "600"_kj;
constexpr kj::StringPtr kExposedHeaders = "X-Request-Id, Retry-After"_kj;

std::string_view value_of(const kj::HttpHeaders& headers, kj::HttpHeaderId id) {
  KJ_IF_MAYBE (value, headers.get(id)) {
    return {value->begin(), value->size()};
  }
  return {};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// "a-b, c": names of fields, nothing that could end a header line.
bool is_name_list(std::string_view text) {
  return text.size() <= kRequestedHeadersBytesMax &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  std::string_view("!#$%&'*+-.^_`|~, ").find(static_cast<char>(c)) !=
                      std::string_view::npos;
         });
}

bool is_json(std::string_view content_type) {
  const std::string type = lower(trimmed(content_type.substr(0, content_type.find(';'))));
  return type == "application/json" ||
         (type.starts_with("application/") && type.ends_with("+json"));
}

ApiError refused(uint32_t status, const char* code, std::string message) {
  return {status, "invalid_request_error", code, std::move(message), "", 0};
}

}  // namespace

std::string allowed_origin(const HttpContext& context, const kj::HttpHeaders& headers) {
  const auto& allowed = context.options.cors_origins;
  const std::string_view origin = value_of(headers, context.names.origin);
  if (allowed.empty() || origin.empty()) return "";
  if (std::find(allowed.begin(), allowed.end(), "*") != allowed.end()) return "*";
  return std::find(allowed.begin(), allowed.end(), origin) == allowed.end() ? ""
                                                                            : std::string(origin);
}

bool has_access(const HttpContext& context, const HttpRequestFacts& request,
                const kj::HttpHeaders& headers) {
  const HttpFrontendOptions& options = context.options;
  if (options.keys == nullptr || !options.keys->required()) return true;
  if (std::find(options.open_paths.begin(), options.open_paths.end(), request.path) !=
      options.open_paths.end()) {
    return true;
  }
  const std::string_view bearer = trimmed(value_of(headers, context.names.authorization));
  if (lower(bearer.substr(0, kBearer.size())) == kBearer &&
      options.keys->accepts(trimmed(bearer.substr(kBearer.size())))) {
    return true;
  }
  return options.keys->accepts(trimmed(value_of(headers, context.names.x_api_key)));
}

kj::Promise<void> send_unauthorized(HttpContext& context, const HttpRequestFacts& request,
                                    kj::HttpService::Response& response) {
  const ApiError error = refused(401, "invalid_api_key",
                                 "this server wants an API key that it knows; send it as "
                                 "\"Authorization: Bearer KEY\" or \"x-api-key: KEY\"");
  return send_error(context, request, response, error, context.names.www_authenticate,
                    "Bearer realm=\"troupe\"");
}

kj::Promise<void> send_options(HttpContext& context, const HttpRequestFacts& request,
                               const kj::HttpHeaders& headers, std::string_view allow,
                               kj::HttpService::Response& response) {
  kj::HttpHeaders out(*context.names.table);
  out.set(context.names.x_request_id, kj::str(request.request_id.c_str()));
  out.set(context.names.allow, kj::heapString(allow.data(), allow.size()));
  const bool preflight = !value_of(headers, context.names.request_method).empty();
  if (!context.options.cors_origins.empty()) {
    out.set(context.names.vary,
            "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
  }
  if (!request.cors_origin.empty()) {
    out.set(context.names.allow_origin, kj::str(request.cors_origin.c_str()));
  }
  if (preflight && !request.cors_origin.empty()) {
    out.set(context.names.allow_methods, kj::heapString(allow.data(), allow.size()));
    const std::string_view asked = value_of(headers, context.names.request_headers);
    if (!asked.empty() && is_name_list(asked)) {
      out.set(context.names.allow_headers, kj::heapString(asked.data(), asked.size()));
    }
    out.set(context.names.max_age, kPreflightSeconds);
  }
  return send_response(context, request, response, 204, out, "");
}

std::optional<ApiError> check_body_header(const HttpContext& context,
                                          const kj::HttpHeaders& headers) {
  const std::string coding = lower(trimmed(value_of(headers, context.names.content_encoding)));
  if (!coding.empty() && coding != "identity") {
    return refused(415, "unsupported_encoding",
                   "the body must be sent as it is, without Content-Encoding");
  }
  // A page of another origin can send anything but JSON without asking (a "simple request"): so
  // where a browser names the origin, the type is taken seriously. Others may send what curl does.
  if (!value_of(headers, context.names.origin).empty() &&
      !is_json(value_of(headers, kj::HttpHeaderId::CONTENT_TYPE))) {
    return refused(415, "unsupported_media_type",
                   "a request with an Origin must have Content-Type: application/json");
  }
  const std::string expect = lower(trimmed(value_of(headers, context.names.expect)));
  if (!expect.empty() && expect != "100-continue") {
    return refused(417, "unknown_expectation", "Expect may only say 100-continue");
  }
  return std::nullopt;
}

std::optional<ApiError> check_header(std::string_view url, const kj::HttpHeaders& headers) {
  if (url.size() > kUrlBytesMax) {
    return refused(414, "uri_too_long",
                   "the path must have at most " + std::to_string(kUrlBytesMax) + " bytes");
  }
  size_t fields = 0;
  headers.forEach([&fields](kj::StringPtr, kj::StringPtr) { ++fields; });
  if (fields > kHeaderFieldsMax) {
    return refused(431, "too_many_headers",
                   "a request must have at most " + std::to_string(kHeaderFieldsMax) +
                       " header fields; got " + std::to_string(fields));
  }
  return std::nullopt;
}

void add_cors(const HttpContext& context, const HttpRequestFacts& request,
              kj::HttpHeaders& headers) {
  // Caches must not give the answer for one origin to another, also where this one has none.
  if (!context.options.cors_origins.empty()) headers.set(context.names.vary, "Origin");
  if (request.cors_origin.empty()) return;
  headers.set(context.names.allow_origin, kj::str(request.cors_origin.c_str()));
  headers.set(context.names.expose_headers, kExposedHeaders);
}

}  // namespace troupe
