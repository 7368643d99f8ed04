#include "loadgen/http_peer.h"

#include <charconv>

#include "base/assert.h"
#include "loadgen/limits.h"

namespace troupe::loadgen {
namespace {

// Servers close idle connections after 5 s and more; a request must not meet that.
constexpr kj::Duration kIdleTimeout = 2 * kj::SECONDS;
constexpr size_t kReadBytes = 16384;

// Reads a body to its end, or until nobody wants more.
class Reading {
 public:
  Reading(kj::Own<kj::AsyncInputStream> body, AnswerSink& sink)
      : body_(kj::mv(body)), sink_(sink), buffer_(kj::heapArray<char>(kReadBytes)) {}

  kj::Promise<void> run() {
    return body_->tryRead(buffer_.begin(), 1, buffer_.size())
        .then([this](size_t count) -> kj::Promise<void> {
          if (count == 0) return kj::READY_NOW;
          if (!sink_.on_bytes({buffer_.begin(), count})) return kj::READY_NOW;
          return run();
        });
  }

 private:
  kj::Own<kj::AsyncInputStream> body_;
  AnswerSink& sink_;
  kj::Array<char> buffer_;
};

std::optional<double> seconds_of(kj::Maybe<kj::StringPtr> header) {
  KJ_IF_MAYBE (text, header) {
    double value = 0.0;
    const auto [end, error] = std::from_chars(text->begin(), text->end(), value);
    if (error == std::errc() && end == text->end() && value >= 0.0 && value <= 1e9) return value;
  }
  return std::nullopt;
}

}  // namespace

HttpPeer::HttpPeer(kj::AsyncIoContext& io, Url url, std::string api_key)
    : io_(io),
      url_(std::move(url)),
      authorization_(api_key.empty() ? "" : "Bearer " + api_key),
      authorization_id_(builder_.add("Authorization")),
      retry_after_id_(builder_.add("Retry-After")),
      headers_(builder_.build()) {}

kj::Promise<void> HttpPeer::resolve() {
  kj::HttpClientSettings settings;
  settings.idleTimeout = kIdleTimeout;
  if (url_.is_tls) {
    kj::TlsContext::Options options;
    options.useSystemTrustStore = true;
    tls_ = kj::heap<kj::TlsContext>(kj::mv(options));
    tls_network_ = tls_->wrapNetwork(io_.provider->getNetwork());
    client_ = kj::newHttpClient(io_.provider->getTimer(), *headers_, io_.provider->getNetwork(),
                                *tls_network_, settings);
    return kj::READY_NOW;  // it finds the address itself, which its certificate is checked by
  }
  return io_.provider->getNetwork()
      .parseAddress(url_.address(), url_.port)
      .then([this, settings](kj::Own<kj::NetworkAddress> address) mutable {
        address_ = kj::mv(address);
        client_ = kj::newHttpClient(io_.provider->getTimer(), *headers_, *address_, settings);
      });
}

kj::HttpClient::Request HttpPeer::begin(kj::HttpMethod method, const std::string& path,
                                        size_t body_bytes) {
  TROUPE_ASSERT(client_.get() != nullptr);  // resolve() has been waited for
  kj::HttpHeaders headers(*headers_);
  headers.set(kj::HttpHeaderId::HOST, kj::str(url_.host_header()));
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, "application/json");
  if (!authorization_.empty()) headers.set(authorization_id_, kj::str(authorization_));
  const std::string whole = (url_.is_tls ? "https://" + url_.address() : "") + url_.base + path;
  return client_->request(method, whole.c_str(), headers, static_cast<uint64_t>(body_bytes));
}

kj::Promise<void> HttpPeer::post(const std::string& path, std::string body, AnswerSink& sink) {
  auto request = begin(kj::HttpMethod::POST, path, body.size());
  auto text = kj::heap<std::string>(std::move(body));
  // An answer may come before the whole body is gone; that the rest then cannot be sent is no
  // news.
  auto sending = request.body->write(text->data(), text->size())
                     .attach(kj::mv(text), kj::mv(request.body))
                     .eagerlyEvaluate([](kj::Exception&&) {});
  return request.response
      .then([this, &sink](kj::HttpClient::Response&& response) {
        sink.on_head(response.statusCode, seconds_of(response.headers->get(retry_after_id_)));
        auto reading = kj::heap<Reading>(kj::mv(response.body), sink);
        auto& running = *reading;
        return running.run().attach(kj::mv(reading));
      })
      .attach(kj::mv(sending));
}

kj::Promise<HttpAnswer> HttpPeer::fetch(kj::HttpMethod method, const std::string& path,
                                        std::string body) {
  const bool has_body = method == kj::HttpMethod::POST;
  auto request = begin(method, path, has_body ? body.size() : 0);
  kj::Promise<void> sending = kj::READY_NOW;
  if (has_body) {
    auto text = kj::heap<std::string>(std::move(body));
    sending = request.body->write(text->data(), text->size())
                  .attach(kj::mv(text), kj::mv(request.body))
                  .eagerlyEvaluate([](kj::Exception&&) {});
  }
  return request.response
      .then([this](kj::HttpClient::Response&& response) {
        HttpAnswer answer;
        answer.status = response.statusCode;
        answer.retry_after_s = seconds_of(response.headers->get(retry_after_id_));
        auto text = response.body->readAllText(kAnswerBytesMax);
        return text.attach(kj::mv(response.body))
            .then([answer = kj::mv(answer)](kj::String&& got) mutable {
              answer.body.assign(got.begin(), got.size());
              return kj::mv(answer);
            });
      })
      .attach(kj::mv(sending));
}

}  // namespace troupe::loadgen
