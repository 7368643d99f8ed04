#include "actors/gateway/http/closing_service.h"

#include <cctype>
#include <cstdint>
#include <string>

namespace troupe {

bool wants_close(const kj::HttpHeaders& headers) {
  std::string options = ",";
  KJ_IF_MAYBE (value, headers.get(kj::HttpHeaderId::CONNECTION)) {
    for (const char c : *value) {
      const bool space = c == ' ' || c == '\t';
      if (!space) options += static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
    }
  }
  return (options + ",").find(",close,") != std::string::npos;
}

// Says so in its headers.
class ClosingService::LastResponse final : public kj::HttpService::Response {
 public:
  LastResponse(HttpContext& context, Response& inner) : context_(context), inner_(inner) {}

  kj::Own<kj::AsyncOutputStream> send(uint status, kj::StringPtr text,
                                      const kj::HttpHeaders& headers,
                                      kj::Maybe<uint64_t> size) override {
    context_.close_connection = true;
    return inner_.send(status, text, headers, size);
  }
  kj::Own<kj::WebSocket> acceptWebSocket(const kj::HttpHeaders& headers) override {
    return inner_.acceptWebSocket(headers);
  }

 private:
  HttpContext& context_;
  Response& inner_;
};

kj::Promise<void> ClosingService::request(kj::HttpMethod method, kj::StringPtr url,
                                          const kj::HttpHeaders& headers,
                                          kj::AsyncInputStream& body, Response& response) {
  if (!wants_close(headers)) return inner_->request(method, url, headers, body, response);
  auto last = kj::heap<LastResponse>(context_, response);
  auto& answering = *last;
  return inner_->request(method, url, headers, body, answering)
      .then([this] { connection_.end_input(); })
      .attach(kj::mv(last));
}

}  // namespace troupe
