#pragma once
// What the tests of the UCX transport share.

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>

#include "base/os/entropy.h"
#include "base/os/system_clock.h"
#include "tests/unit/transport/conformance.h"
#include "transport/ucx/ucx_transport.h"

namespace troupe::conformance {

inline const SystemClock kClock;

// Loss must be noticed within 500 ms; the rest is the patience of a busy machine.
inline constexpr std::chrono::milliseconds kNoticed{700};

inline UcxOptions ucx_options(uint64_t incarnation = 1) {
  UcxOptions out;
  out.secret = "a secret that nobody knows";
  out.incarnation = incarnation;
  out.random = entropy_u64;
  return out;
}

inline std::unique_ptr<UcxTransport> start_ucx(UcxOptions with = ucx_options()) {
  auto transport = UcxTransport::start(std::move(with), kClock);
  BOOST_REQUIRE_MESSAGE(transport.ok(), transport.status().message());
  return std::move(transport).value();
}

// Observes a transport's peers as long as it lives.
class Watch final {
 public:
  explicit Watch(Transport& transport) : transport_(transport) {
    transport.set_peer_observer(&log);
  }
  ~Watch() { transport_.set_peer_observer(nullptr); }
  PeerLog log;

 private:
  Transport& transport_;
};

}  // namespace troupe::conformance
