#pragma once
// An RPC front end on a loopback port, with a generator that the test plays, and clients on the
// same event loop.

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/gateway/rpc/rpc_frontend.h"
#include "schema/serving.capnp.h"
#include "tests/unit/actors/gateway/openai/fake_generator.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe::test {

struct FakeHealth final : HealthSource {
  Status status;
  [[nodiscard]] Status health() const override { return status; }
};

class RpcFixture {
 public:
  RpcFixture() { std::signal(SIGPIPE, SIG_IGN); }
  ~RpcFixture() {
    frontend = nullptr;
    io.waitScope.poll();  // calls of gone connections end now
  }

  // Listens with the limits as they are now.
  void start() {
    load.emplace(limits, 42);
    frontend = std::make_unique<RpcFrontend>(*io.lowLevelProvider, io.provider->getTimer(),
                                             generator, *models, health, clock, *load, "1.2.3");
    const Result<uint16_t> bound = frontend->listen("127.0.0.1", 0);
    BOOST_REQUIRE_MESSAGE(bound.ok(), bound.status().message());
    port = bound.value();
  }

  template <class T>
  T await(kj::Promise<T> promise) {
    // Only a test that fails waits so long.
    return promise
        .exclusiveJoin(io.provider->getTimer().afterDelay(10 * kj::SECONDS).then([]() -> T {
          KJ_FAIL_REQUIRE("the test waited too long");
        }))
        .wait(io.waitScope);
  }
  // The exception with which the promise rejects.
  template <class T>
  kj::Exception failure(kj::Promise<T> promise) {
    kj::Maybe<kj::Exception> thrown;
    await(promise.ignoreResult().catch_([&](kj::Exception&& e) { thrown = kj::mv(e); }));
    BOOST_REQUIRE_MESSAGE(thrown != nullptr, "the call succeeded");
    return kj::mv(KJ_ASSERT_NONNULL(thrown));
  }
  // Turns the loop until the condition holds.
  void until(const std::function<bool()>& condition) {
    for (int turns = 0; turns < 10'000; ++turns) {
      if (condition()) return;
      await(io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS));
    }
    BOOST_FAIL("the condition did not come true");
  }
  kj::Own<kj::AsyncIoStream> connect() {
    auto address = io.provider->getNetwork().parseAddress("127.0.0.1", port).wait(io.waitScope);
    return await(address->connect());
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  TinyModel model;
  const ModelCatalogue* models = &model.catalogue();
  FakeGenerator generator;
  FakeHealth health;
  ManualClock clock;
  FrontendLimits limits;
  std::optional<FrontendLoad> load;
  std::unique_ptr<RpcFrontend> frontend;
  uint16_t port = 0;
};

class RpcClient {
 public:
  explicit RpcClient(RpcFixture& fixture)
      : stream_(fixture.connect()),
        client_(*stream_),
        serving(client_.bootstrap().castAs<rpc::Serving>()) {}

  auto completion(const std::string& text = "hi") {
    auto request = serving.completeRequest();
    request.setModel("tiny");
    request.initPrompt().setText(text.c_str());
    return request;
  }
  auto chat(const std::string& text = "hi") {
    auto request = serving.chatRequest();
    request.setModel("tiny");
    auto message = request.initMessages(1)[0];
    message.setRole("user");
    message.setContent(text.c_str());
    return request;
  }

 private:
  kj::Own<kj::AsyncIoStream> stream_;
  capnp::TwoPartyClient client_;

 public:
  rpc::Serving::Client serving;
};

// What a sink was told.
struct Heard {
  std::vector<std::string> texts;  // of choice 0, chunk by chunk
  std::vector<uint32_t> tokens;
  int ends = 0;
  std::vector<std::string> errors;  // "<code> <param>: <message>"
  // While set, chunks are taken but not answered.
  kj::ForkedPromise<void>* hold = nullptr;

  [[nodiscard]] std::string text() const {
    std::string out;
    for (const std::string& part : texts) out += part;
    return out;
  }
};

class RecordingSink final : public rpc::ResponseSink::Server {
 public:
  explicit RecordingSink(Heard& heard) : heard_(heard) {}

  kj::Promise<void> chunk(ChunkContext context) override {
    for (const auto choice : context.getParams().getChunk().getChoices()) {
      if (choice.getIndex() == 0) heard_.texts.emplace_back(choice.getText().cStr());
      for (const auto token : choice.getTokens()) heard_.tokens.push_back(token.getId());
    }
    if (heard_.hold != nullptr) return heard_.hold->addBranch();
    return kj::READY_NOW;
  }
  kj::Promise<void> end(EndContext) override {
    ++heard_.ends;
    return kj::READY_NOW;
  }
  kj::Promise<void> failed(FailedContext context) override {
    const auto error = context.getParams().getError();
    heard_.errors.push_back(
        kj::str(error.getCode(), " ", error.getParam(), ": ", error.getMessage()).cStr());
    return kj::READY_NOW;
  }

 private:
  Heard& heard_;
};

// Boost.Test cannot print Cap'n Proto's texts.
inline std::string str(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}
inline std::string text_of(const kj::Exception& e) {
  return e.getDescription().cStr();
}

}  // namespace troupe::test
