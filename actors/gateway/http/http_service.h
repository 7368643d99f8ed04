#pragma once
// The routes: what each path and method does on one connection.

#include <kj/async-io.h>
#include <kj/compat/http.h>

#include <memory>
#include <string>
#include <string_view>

#include "actors/gateway/http/disconnect_watch.h"
#include "actors/gateway/http/http_context.h"
#include "troupe/status.h"

namespace troupe {

struct PostEndpoint;

// One per connection; destroyed with it. Loop thread only.
class HttpService final : public kj::HttpService {
 public:
  // Both outlive the service.
  HttpService(HttpContext& context, kj::AsyncIoStream& connection);

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                            Response& response) override;

 private:
  enum class Endpoint;
  struct Route;
  using Facts = HttpRequestFacts;
  static const Route kRoutes[];

  [[nodiscard]] Facts make_facts(kj::HttpMethod method, kj::StringPtr url,
                                 const kj::HttpHeaders& headers);
  // Null: there is nothing to be read under this path.
  [[nodiscard]] const Route* find_route(std::string_view path) const;
  [[nodiscard]] std::string_view allowed_methods(std::string_view path) const;
  // Nothing more is served on this connection.
  [[nodiscard]] kj::Promise<void> send_last_error(const Facts& facts, const ApiError& error,
                                                  Response& response);
  // `allowed`: the methods of the path, joined by commas.
  [[nodiscard]] kj::Promise<void> send_method_error(const Facts& facts, const char* allowed,
                                                    Response& response);
  [[nodiscard]] kj::Promise<void> answer_get(Endpoint endpoint, const Facts& facts,
                                             Response& response);
  [[nodiscard]] kj::Promise<void> answer_post(const PostEndpoint& endpoint, Facts facts,
                                              const std::string& body, Response& response);
  // `url` is the request's, from the path on.
  [[nodiscard]] kj::Promise<void> answer_stored(const Facts& facts, std::string_view url,
                                                Response& response);
  [[nodiscard]] kj::Promise<void> answer_health(const Facts& facts, Response& response);
  [[nodiscard]] kj::Promise<void> answer_model(const Facts& facts, Response& response);
  [[nodiscard]] kj::Promise<void> run(const PostEndpoint& endpoint, Facts facts,
                                      const std::string& body, Response& response);
  // The whole body, or an error such as 413 (kResourceExhausted is not used for it).
  [[nodiscard]] kj::Promise<void> read_and_answer(const PostEndpoint& endpoint, Facts facts,
                                                  kj::AsyncInputStream& body, bool wants_continue,
                                                  Response& response);

  HttpContext& context_;
  kj::AsyncIoStream& connection_;
  std::unique_ptr<DisconnectWatch> watch_;  // made for the first generating request
};

}  // namespace troupe
