#pragma once
// Puts a load on a server.

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "loadgen/arrivals.h"
#include "loadgen/exchange.h"
#include "loadgen/http_peer.h"
#include "loadgen/prompts.h"
#include "loadgen/record.h"
#include "loadgen/request_body.h"

namespace troupe::loadgen {

struct LoadOptions {
  // Conversations at once of a closed loop, where each is followed by the next. Of an open loop
  // (there are arrivals): requests at once at most, others wait; 0: any number.
  uint32_t concurrency = 1;
  uint64_t requests = 0;                        // so many in all; 0: no limit
  std::optional<Duration> duration;             // no request begins later
  Duration timeout = std::chrono::minutes(10);  // of one request, from its first byte to its last
  Duration think_time{0};                       // between an answer and the next turn
  bool retry_429 = false;  // ask again after Retry-After; the time waited counts as latency
};

struct LoadProgress {
  uint64_t sent = 0, completed = 0, failed = 0, in_flight = 0, waiting = 0;
  uint64_t output_tokens = 0;  // of those completed
};

// One run. Lives on the thread of its event loop.
class Load final : private kj::TaskSet::ErrorHandler {
 public:
  // Everything referred to outlives this object. `arrivals`: none for a closed loop. Conversations
  // are taken from `prompts` beginning with `first_conversation`.
  Load(HttpPeer& peer, kj::Timer& timer, const Clock& clock, const PromptSource& prompts,
       Arrivals* arrivals, const RequestShape& shape, const LoadOptions& options,
       uint64_t first_conversation);

  // Done when every request has ended; fails only where this program has a bug. Once.
  [[nodiscard]] kj::Promise<void> run();
  // Closes all connections; what is under way has ended with kCancelled. Not from inside of it.
  void cancel();

  [[nodiscard]] LoadProgress progress() const;
  // Since run(); stands still from the end of the last request.
  [[nodiscard]] Duration elapsed() const;
  [[nodiscard]] bool is_over() const { return over_.has_value(); }
  // In the order of sending.
  [[nodiscard]] const std::deque<RequestRecord>& records() const { return records_; }
  [[nodiscard]] std::deque<RequestRecord>& records() { return records_; }
  // The texts of answers whose server gave no usage, by index.
  [[nodiscard]] const std::map<uint64_t, std::string>& uncounted() const { return uncounted_; }

 private:
  // A conversation under way.
  struct Talk {
    uint64_t number = 0;
    Conversation plan;
    std::vector<Message> said;
    size_t turn = 0;
    Duration due{0};  // when its next turn is to be sent
  };

  [[nodiscard]] bool may_send() const;
  [[nodiscard]] Duration now() const { return clock_.now() - began_; }
  [[nodiscard]] std::shared_ptr<Talk> begin_talk(Duration due);
  kj::Promise<void> user();    // closed loop: one conversation after the other
  kj::Promise<void> arrive();  // open loop: begins conversations when they are due
  kj::Promise<void> talk(std::shared_ptr<Talk> talk);
  kj::Promise<void> turn(std::shared_ptr<Talk> talk);
  kj::Promise<void> ask(RequestRecord& record, std::string body, std::shared_ptr<Talk> talk);
  kj::Promise<void> try_once(Exchange& exchange, std::string body);
  void take_answer(RequestRecord& record, const Exchange& exchange, Talk& talk);
  kj::Promise<void> seat();  // waits until one more request may be under way
  void leave_seat();
  kj::Promise<void> wait_until(Duration due);
  void task_done();
  void taskFailed(kj::Exception&& exception) override;

  HttpPeer& peer_;
  kj::Timer& timer_;
  const Clock& clock_;
  const PromptSource& prompts_;
  Arrivals* const arrivals_;
  const RequestShape shape_;
  const LoadOptions options_;
  uint64_t next_conversation_;
  TimePoint began_;
  std::optional<Duration> over_;
  std::deque<RequestRecord> records_;
  std::map<uint64_t, std::string> uncounted_;
  uint64_t completed_ = 0, failed_ = 0, in_flight_ = 0, output_tokens_ = 0;
  std::deque<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
  uint64_t open_tasks_ = 0;
  kj::Own<kj::PromiseFulfiller<void>> done_;
  kj::Own<kj::TaskSet> tasks_;  // last: dropped before what its tasks use
};

}  // namespace troupe::loadgen
