#pragma once
// The client's end of HTTP, on KJ's event loop.

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/compat/tls.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "loadgen/url.h"

namespace troupe::loadgen {

struct HttpAnswer {
  uint32_t status = 0;
  std::optional<double> retry_after_s;  // where the header is there in seconds
  std::string body;
};

// Takes an answer as it arrives.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void on_head(uint32_t status, std::optional<double> retry_after_s) = 0;
  // Whether more is wanted; after false the connection is closed.
  [[nodiscard]] virtual bool on_bytes(std::string_view bytes) = 0;
};

// One server. Keeps connections and uses them again, one request at a time on each. Lives on the
// thread of its event loop; must outlive the promises it returns, which fail with kj::Exception
// where the network does. Dropping a promise closes its connection.
class HttpPeer final {
 public:
  // `api_key` may be empty. Nothing is connected yet.
  HttpPeer(kj::AsyncIoContext& io, Url url, std::string api_key);

  // Finds the server's address; to be waited for before the first request.
  [[nodiscard]] kj::Promise<void> resolve();
  // `path` begins after the base of the URL. A body larger than kAnswerBytesMax is a failure.
  [[nodiscard]] kj::Promise<HttpAnswer> fetch(kj::HttpMethod method, const std::string& path,
                                              std::string body);
  // POSTs and hands the answer over as it comes. `sink` outlives the promise.
  [[nodiscard]] kj::Promise<void> post(const std::string& path, std::string body, AnswerSink& sink);
  [[nodiscard]] const Url& url() const { return url_; }

 private:
  kj::HttpClient::Request begin(kj::HttpMethod method, const std::string& path, size_t body_bytes);

  kj::AsyncIoContext& io_;
  const Url url_;
  const std::string authorization_;
  kj::HttpHeaderTable::Builder builder_;
  const kj::HttpHeaderId authorization_id_, retry_after_id_;
  const kj::Own<kj::HttpHeaderTable> headers_;
  // Each uses those before it; the first two for https only, the third for http only.
  kj::Own<kj::TlsContext> tls_;
  kj::Own<kj::Network> tls_network_;
  kj::Own<kj::NetworkAddress> address_;
  kj::Own<kj::HttpClient> client_;
};

}  // namespace troupe::loadgen
