// A node in a process of its own, for tests that kill it. Usage: PROGRAM NODE SECRET
//
// Prints its name; then sends NODE/beats the ticket of a landing, again and again. Whoever sends
// its endpoint `push` a ticket and a size gets parts moved there without end. Ends with its input.

#include <glog/logging.h>
#include <poll.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/os/entropy.h"
#include "base/os/system_clock.h"
#include "transport/ucx/ucx_transport.h"

namespace {

constexpr size_t kLandingBytes = size_t{64} << 20;
constexpr int kPartsUnderWay = 8;
constexpr int kBeatMilliseconds = 50;

struct Ignore final : troupe::LandingObserver {
  void on_landed(uint64_t, uint64_t, uint64_t) override {}
  void on_retracted(uint64_t) override {}
};

class Pusher final : public troupe::MessageReceiver {
 public:
  Pusher(troupe::Transport& transport, std::string node, std::span<std::byte> memory)
      : transport_(transport), node_(std::move(node)), memory_(memory) {}
  void on_message(troupe::MessageWords words) override {
    if (words.size() != 4 || words[3] > memory_.size()) return;
    for (int i = 0; i < kPartsUnderWay; ++i) push({words[0], words[1], words[2]}, words[3]);
  }

 private:
  void push(const troupe::BulkTicket& ticket, size_t bytes) {
    transport_.move(node_, ticket, troupe::TrafficClass::kBulk, {0, {memory_.first(bytes)}},
                    [this, ticket, bytes](const troupe::Status& status) {
                      if (status.ok()) push(ticket, bytes);
                    });
  }

  troupe::Transport& transport_;
  const std::string node_;
  const std::span<std::byte> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  TROUPE_ASSERT(argc == 3, argc);
  const std::string node = argv[1];
  const troupe::SystemClock clock;
  troupe::UcxOptions options;
  options.secret = argv[2];
  options.incarnation = 7;
  options.random = troupe::entropy_u64;
  auto transport = troupe::UcxTransport::start(options, clock);
  TROUPE_ASSERT(transport.ok(), transport.status().message());
  std::vector<std::byte> memory(kLandingBytes);
  TROUPE_ASSERT(transport.value()->register_memory(memory).ok());
  Ignore ignore;
  const auto ticket = transport.value()->expose({memory}, 1, 2, ignore);
  TROUPE_ASSERT(ticket.ok());
  Pusher pusher(*transport.value(), node, memory);
  TROUPE_ASSERT(transport.value()->bind("push", pusher).ok());
  std::printf("%s\n", transport.value()->node().c_str());
  std::fflush(stdout);
  pollfd input{0, POLLIN, 0};
  while (::poll(&input, 1, kBeatMilliseconds) == 0) {
    static_cast<void>(transport.value()->send(node + "/beats", troupe::TrafficClass::kControl,
                                              {ticket->landing, 1, 2}));
  }
  transport.value()->unbind("push");
  transport.value().reset();
  return 0;
}
