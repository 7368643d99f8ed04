#include "apps/node/status_server.h"

#include <kj/async-io.h>
#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

constexpr kj::Duration kDeadline = 20 * kj::SECONDS;

struct Fixture {
  Fixture() { port = server.listen("127.0.0.1", 0).value(); }

  // The whole answer to the request, whose connection the server closes.
  std::string ask(const std::string& request) {
    auto connection = io.provider->getNetwork()
                          .parseAddress("127.0.0.1", port)
                          .then([](kj::Own<kj::NetworkAddress> address) {
                            auto connecting = address->connect();
                            return connecting.attach(kj::mv(address));
                          })
                          .wait(io.waitScope);
    connection->write(request.data(), request.size()).wait(io.waitScope);
    connection->shutdownWrite();
    const auto text = io.provider->getTimer()
                          .timeoutAfter(kDeadline, connection->readAllText())
                          .wait(io.waitScope);
    return {text.begin(), text.size()};
  }
  std::string get(const std::string& path) {
    return ask("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  StatusServer server{*io.lowLevelProvider,
                      io.provider->getTimer(),
                      {[] { return std::string("a 1\n"); },
                       [] { return Status(StatusCode::kUnavailable, "no \"worker\"\xFF"); },
                       {}}};
  uint16_t port = 0;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

BOOST_FIXTURE_TEST_CASE(a_page_is_served_with_its_type_and_without_regard_to_a_query, Fixture) {
  for (const char* path : {"/metrics", "/metrics?x=1"}) {
    const std::string answer = get(path);
    BOOST_TEST(answer.starts_with("HTTP/1.1 200 OK\r\n"), answer);
    BOOST_TEST(has(answer, "Content-Type: text/plain; version=0.0.4"), answer);
    BOOST_TEST(answer.ends_with("\r\n\r\na 1\n"), answer);
  }
}

BOOST_FIXTURE_TEST_CASE(bad_health_is_503_with_the_reason, Fixture) {
  const std::string answer = get("/health");
  BOOST_TEST(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), answer);
  BOOST_TEST(has(answer, "{\"status\":\"no \\\"worker\\\"\xEF\xBF\xBD\"}"), answer);
}

BOOST_FIXTURE_TEST_CASE(a_head_request_gets_no_body, Fixture) {
  const std::string answer = ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  BOOST_TEST(answer.starts_with("HTTP/1.1 200 OK\r\n"), answer);
  BOOST_TEST(!has(answer, "a 1"), answer);
}

BOOST_FIXTURE_TEST_CASE(other_paths_methods_and_nonsense_are_refused, Fixture) {
  BOOST_TEST(get("/").starts_with("HTTP/1.1 404"));
  BOOST_TEST(get("/cluster").starts_with("HTTP/1.1 404"));
  BOOST_TEST(ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
                 .starts_with("HTTP/1.1 405"));
  BOOST_TEST(!has(ask("\x16\x03\x01\r\n\r\n"), " 200 "));
  BOOST_TEST(get("/metrics").starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace troupe
