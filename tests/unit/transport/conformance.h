#pragma once
// What every Transport must do, whatever carries its bytes. A transport's own test calls
// check_conformance() with two of its instances that reach each other (or the same one twice), and
// a function that waits until what was sent has arrived.

#include <boost/test/unit_test.hpp>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "troupe/transport.h"

namespace troupe::conformance {

class Collector final : public MessageReceiver {
 public:
  void on_message(MessageWords words) override {
    const std::lock_guard lock(mutex_);
    received_.push_back(std::move(words));
  }
  [[nodiscard]] std::vector<MessageWords> received() const {
    const std::lock_guard lock(mutex_);
    return received_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<MessageWords> received_;
};

using Settle = std::function<void(const Collector&, size_t messages)>;

inline void delivers_in_order_and_unchanged(Transport& from, Transport& to, const Settle& settle) {
  Collector collector;
  BOOST_REQUIRE(to.bind("ordered", collector).ok());
  for (uint64_t i = 0; i < 100; ++i) {
    BOOST_TEST(
        from.send(to.address_of("ordered"), TrafficClass::kControl, MessageWords(1 + i * 7, i))
            .ok());
  }
  settle(collector, 100);
  to.unbind("ordered");
  const auto received = collector.received();
  BOOST_REQUIRE(received.size() == 100U);
  for (uint64_t i = 0; i < 100; ++i) BOOST_TEST((received[i] == MessageWords(1 + i * 7, i)));
}

inline void refuses_what_breaks_a_rule(Transport& from, Transport& to) {
  Collector collector;
  BOOST_TEST((to.bind("", collector).code() == StatusCode::kInvalidArgument));
  BOOST_TEST((to.bind("a/b", collector).code() == StatusCode::kInvalidArgument));
  BOOST_TEST((from.send("", TrafficClass::kTokens, {1}).code() == StatusCode::kInvalidArgument));
  BOOST_REQUIRE(to.bind("taken", collector).ok());
  BOOST_TEST((to.bind("taken", collector).code() == StatusCode::kInvalidArgument));
  const MessageWords huge(limits::kMessageBytesMax / sizeof(uint64_t) + 1);
  BOOST_TEST((from.send(to.address_of("taken"), TrafficClass::kTokens, huge).code() ==
              StatusCode::kInvalidArgument));
  to.unbind("taken");
  BOOST_TEST(collector.received().empty());
  // Whether somebody is bound there may not be known yet.
  const Status unbound = from.send(to.address_of("taken"), TrafficClass::kTokens, {1});
  BOOST_TEST((unbound.ok() || unbound.code() == StatusCode::kUnavailable));
  to.unbind("taken");  // harmless
}

// After unbind() has returned, no call of the receiver runs or comes, whatever others send
// meanwhile.
inline void unbind_is_a_fence(Transport& from, Transport& to) {
  for (int round = 0; round < 50; ++round) {
    auto collector = std::make_unique<Collector>();
    BOOST_REQUIRE(to.bind("fence", *collector).ok());
    std::thread sender([&] {
      for (int i = 0; i < 1000; ++i) {
        if (!from.send(to.address_of("fence"), TrafficClass::kControl, {7}).ok()) break;
      }
    });
    to.unbind("fence");
    collector.reset();  // a late call would touch freed memory
    sender.join();
  }
}

inline void check_conformance(Transport& from, Transport& to, const Settle& settle) {
  delivers_in_order_and_unchanged(from, to, settle);
  refuses_what_breaks_a_rule(from, to);
  unbind_is_a_fence(from, to);
}

}  // namespace troupe::conformance
