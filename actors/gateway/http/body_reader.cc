#include "actors/gateway/http/body_reader.h"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

constexpr size_t kReadBytes = 64 * 1024;

// Owned by the promise that reads with it.
struct Reader {
  kj::AsyncInputStream& input;
  size_t bytes_max;
  BodyResult result = {};
  size_t filled = 0;

  kj::Promise<void> run() {
    result.body.resize(filled + std::min(kReadBytes, bytes_max + 1 - filled));
    return input.tryRead(result.body.data() + filled, 1, result.body.size() - filled)
        .then([this](size_t count) -> kj::Promise<void> {
          filled += count;
          if (filled > bytes_max) {
            result = {BodyResult::Outcome::kTooLarge, {}};
            return kj::READY_NOW;
          }
          if (count > 0) return run();
          result.body.resize(filled);
          return kj::READY_NOW;
        });
  }
};

}  // namespace

kj::Promise<BodyResult> read_body(kj::AsyncInputStream& input, kj::Timer& timer, size_t bytes_max,
                                  std::chrono::milliseconds timeout) {
  KJ_IF_MAYBE (length, input.tryGetLength()) {
    if (*length > bytes_max) return BodyResult{BodyResult::Outcome::kTooLarge, {}};
  }
  auto reader = kj::heap<Reader>(Reader{input, bytes_max});
  Reader& r = *reader;
  auto complete = r.run().then([&r] { return std::move(r.result); }).attach(kj::mv(reader));
  auto too_slow = timer.afterDelay(timeout.count() * kj::MILLISECONDS).then([] {
    return BodyResult{BodyResult::Outcome::kTooSlow, {}};
  });
  return complete.exclusiveJoin(kj::mv(too_slow))
      .catch_([](kj::Exception&& e) -> kj::Promise<BodyResult> {
        // KJ's parser tells faults of the client's by exceptions.
        if (e.getType() == kj::Exception::Type::DISCONNECTED) return kj::mv(e);
        return BodyResult{BodyResult::Outcome::kMalformed, {}};
      });
}

}  // namespace troupe
