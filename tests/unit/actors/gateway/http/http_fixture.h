#pragma once
// A front end on a loopback port, with a generator that the test plays, and raw HTTP clients.

#include <kj/async-io.h>
#include <kj/debug.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "actors/gateway/http/http_frontend.h"
#include "tests/unit/actors/gateway/openai/fake_generator.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe::test {

// Only a test that fails waits so long.
inline constexpr kj::Duration kPatience = 10 * kj::SECONDS;

struct HttpReply {
  int status = 0;
  std::string head;
  std::string body;  // without chunk framing
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(body); }
  [[nodiscard]] std::string header(std::string_view name) const {
    const size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) return {};
    const size_t from = at + name.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
  }
};

struct FakeHealth final : HealthSource {
  Status status;
  [[nodiscard]] Status health() const override { return status; }
};
struct FakeMetrics final : MetricsSource {
  [[nodiscard]] std::string render_metrics() override { return "# TYPE x gauge\nx 1\n"; }
};

class HttpFixture {
 public:
  HttpFixture() { std::signal(SIGPIPE, SIG_IGN); }

  // Listens with the limits as they are now.
  void start() {
    load.emplace(limits, 42);
    frontend = std::make_unique<HttpFrontend>(*io.lowLevelProvider, io.provider->getTimer(),
                                              io.unixEventPort, generator, *models, health, metrics,
                                              clock, *load, options);
    const Result<uint16_t> bound = frontend->listen("127.0.0.1", 0);
    BOOST_REQUIRE_MESSAGE(bound.ok(), bound.status().message());
    port = bound.value();
  }

  template <class T>
  T await(kj::Promise<T> promise) {
    return promise
        .exclusiveJoin(io.provider->getTimer().afterDelay(kPatience).then(
            []() -> T { KJ_FAIL_REQUIRE("the test waited too long"); }))
        .wait(io.waitScope);
  }
  // Turns the loop until the condition holds.
  void until(const std::function<bool()>& condition) {
    for (int turns = 0; turns < 10'000; ++turns) {
      if (condition()) return;
      await(io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS));
    }
    BOOST_FAIL("the condition did not come true");
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  TinyModel model;
  const ModelCatalogue* models = &model.catalogue();
  FakeGenerator generator;
  FakeHealth health;
  FakeMetrics metrics;
  ManualClock clock;
  FrontendLimits limits;
  HttpFrontendOptions options{"1.2.3"};
  std::optional<FrontendLoad> load;
  std::unique_ptr<HttpFrontend> frontend;
  uint16_t port = 0;
};

// One connection.
class Client {
 public:
  explicit Client(HttpFixture& fixture)
      : fixture_(fixture),
        address_(fixture.io.provider->getNetwork()
                     .parseAddress("127.0.0.1", fixture.port)
                     .wait(fixture.io.waitScope)),
        stream_(fixture.await(address_->connect())) {}

  void send(const std::string& bytes) {
    fixture_.await(stream_->write(bytes.data(), bytes.size()));
  }
  void post(const std::string& path, const std::string& body, const std::string& headers = "") {
    send("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  void get(const std::string& path, const std::string& method = "GET") {
    send(method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  void half_close() { stream_->shutdownWrite(); }
  void close() { stream_ = nullptr; }
  // Ends the connection by RST instead of FIN.
  void reset() {
    const struct linger off = {1, 0};
    stream_->setsockopt(SOL_SOCKET, SO_LINGER, &off, sizeof off);
    close();
  }

  // Reads until `needle` has arrived; false at the end of the connection.
  bool read_until(const std::string& needle) {
    while (received.find(needle) == std::string::npos) {
      if (!read_some()) return false;
    }
    return true;
  }
  void read_to_end() {
    while (read_some()) {
    }
  }
  [[nodiscard]] bool at_end() { return !read_some(); }

  // The next whole response; what comes behind it stays in `received`.
  HttpReply reply(bool head_only = false) {
    HttpReply out;
    BOOST_REQUIRE(read_until("\r\n\r\n"));
    const size_t head_end = received.find("\r\n\r\n") + 4;
    out.head = received.substr(0, head_end);
    received.erase(0, head_end);
    BOOST_REQUIRE(out.head.starts_with("HTTP/1.1 "));
    out.status = std::stoi(out.head.substr(9, 3));
    if (head_only) return out;
    if (const std::string length = out.header("Content-Length"); !length.empty()) {
      const size_t bytes = std::stoul(length);
      while (received.size() < bytes) BOOST_REQUIRE(read_some());
      out.body = received.substr(0, bytes);
      received.erase(0, bytes);
      return out;
    }
    BOOST_REQUIRE(out.header("Transfer-Encoding") == "chunked");
    while (true) {
      BOOST_REQUIRE(read_until("\r\n"));
      const size_t line = received.find("\r\n");
      const size_t bytes = std::stoul(received.substr(0, line), nullptr, 16);
      while (received.size() < line + 2 + bytes + 2) BOOST_REQUIRE(read_some());
      out.body += received.substr(line + 2, bytes);
      received.erase(0, line + 2 + bytes + 2);
      if (bytes == 0) return out;
    }
  }

  std::string received;

 private:
  bool read_some() {
    char buffer[65536];
    size_t count = 0;
    try {
      count = fixture_.await(stream_->tryRead(buffer, 1, sizeof buffer));
    } catch (const kj::Exception& e) {
      if (e.getType() != kj::Exception::Type::DISCONNECTED) throw;
    }
    received.append(buffer, count);
    return count > 0;
  }

  HttpFixture& fixture_;
  kj::Own<kj::NetworkAddress> address_;
  kj::Own<kj::AsyncIoStream> stream_;
};

inline std::string chat_body(const std::string& fields = "") {
  return R"({"model":"tiny","messages":[{"role":"user","content":"hi"}])" + fields + "}";
}
inline const char* const kChatPath = "/v1/chat/completions";

}  // namespace troupe::test
