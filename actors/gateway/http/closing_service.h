#pragma once
// Closes a connection behind the response to a request that asks for it by `Connection: close`
// (RFC 9112, 9.6), which KJ's server leaves to its service.

#include <kj/async-io.h>
#include <kj/compat/http.h>

#include "actors/gateway/http/ending_stream.h"
#include "actors/gateway/http/http_context.h"

namespace troupe {

// Whether `close` is among the options of the Connection header.
[[nodiscard]] bool wants_close(const kj::HttpHeaders& headers);

// Passes each request on to `inner`; loop thread only.
class ClosingService final : public kj::HttpService {
 public:
  // `context` and `connection` outlive the service.
  ClosingService(HttpContext& context, EndingStream& connection, kj::Own<kj::HttpService> inner)
      : context_(context), connection_(connection), inner_(kj::mv(inner)) {}

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                            Response& response) override;

 private:
  class LastResponse;

  HttpContext& context_;
  EndingStream& connection_;
  kj::Own<kj::HttpService> inner_;
};

}  // namespace troupe
