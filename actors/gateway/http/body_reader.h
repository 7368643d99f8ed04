#pragma once
// A request's body, within its limits of size and time.

#include <kj/async-io.h>
#include <kj/timer.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace troupe {

struct BodyResult {
  enum class Outcome { kComplete, kTooLarge, kTooSlow, kMalformed };
  Outcome outcome = Outcome::kComplete;
  std::string body;  // when complete
};

// Stops reading as soon as the limit is known to be exceeded, at once when the declared length says
// so. kMalformed: the body's framing is. Rejects when the client breaks off. `input` and `timer`
// outlive the promise.
[[nodiscard]] kj::Promise<BodyResult> read_body(kj::AsyncInputStream& input, kj::Timer& timer,
                                                size_t bytes_max,
                                                std::chrono::milliseconds timeout);

}  // namespace troupe
