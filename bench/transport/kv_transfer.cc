// One end of bench/transport/run: KV-like moves, and messages there and back, between two
// processes.
//
//   kv_transfer serve                          prints its name, and lands whatever is moved to it
//   kv_transfer drive NODE TOKENS SECONDS      prints GB/s, and seconds of one move, as JSON
//   kv_transfer ping NODE SECONDS              prints seconds of a message there and back, as JSON
//
// The shapes are those of SmolLM2-135M: 30 layers, blocks of 16 tokens of 768 bytes each. A
// request's KV moves as one part per layer, scattered blocks at both ends.

#include <glog/logging.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "base/os/entropy.h"
#include "base/os/system_clock.h"
#include "transport/ucx/ucx_transport.h"

namespace troupe {
namespace {

constexpr size_t kLayers = 30;
constexpr size_t kBlockBytes = 12288;
constexpr size_t kBlockTokens = 16;
constexpr size_t kTokensMax = 32768;
constexpr size_t kMovesAtOnce = 2;
constexpr std::chrono::seconds kPatience{60};

const SystemClock kClock;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double median(std::vector<double> values) {
  TROUPE_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Blocks of a layer in an order in which no two that follow each other touch.
std::vector<size_t> scattered(size_t blocks) {
  std::vector<size_t> out;
  for (size_t i = 0; i < blocks; i += 2) out.push_back(i);
  for (size_t i = 1; i < blocks; i += 2) out.push_back(i);
  std::reverse(out.begin(), out.end());
  return out;
}

struct Ignore final : LandingObserver {
  void on_landed(uint64_t, uint64_t, uint64_t) override {}
  void on_retracted(uint64_t) override {}
};

std::unique_ptr<UcxTransport> start() {
  UcxOptions options;
  options.secret = "only for measuring";
  options.random = entropy_u64;
  auto transport = UcxTransport::start(options, kClock);
  TROUPE_ASSERT(transport.ok(), transport.status().message());
  return std::move(transport).value();
}

// Answers [address] with itself, and [address, tokens] with the ticket of a landing.
class Server final : public MessageReceiver {
 public:
  Server() : memory_(kTokensMax / kBlockTokens * kLayers * kBlockBytes) {
    TROUPE_ASSERT(transport_->register_memory(memory_).ok());
    TROUPE_ASSERT(transport_->bind("bench", *this).ok());
    std::printf("%s\n", transport_->node().c_str());
    std::fflush(stdout);
  }
  ~Server() override { transport_->unbind("bench"); }
  void on_message(MessageWords words) override {
    // The first four words are the text of the driver's address.
    const std::string to(reinterpret_cast<const char*>(words.data()));
    if (words.size() == 5) {
      const size_t blocks = kLayers * words[4] / kBlockTokens;
      std::vector<std::span<std::byte>> ranges;
      for (const size_t block : scattered(blocks)) {
        ranges.push_back(std::span(memory_).subspan(block * kBlockBytes, kBlockBytes));
      }
      const auto ticket = transport_->expose(std::move(ranges), 0, 0, ignore_);
      TROUPE_ASSERT(ticket.ok());
      words = {ticket->landing};
    }
    TROUPE_ASSERT(transport_->send(to, TrafficClass::kControl, std::move(words)).ok());
  }

 private:
  std::unique_ptr<UcxTransport> transport_ = start();
  std::vector<std::byte> memory_;
  Ignore ignore_;
};

class Driver final : public MessageReceiver {
 public:
  explicit Driver(std::string node) : node_(std::move(node)) {
    TROUPE_ASSERT(transport_->bind("driver", *this).ok());
    const std::string own = transport_->address_of("driver");
    TROUPE_ASSERT(own.size() < 32, own);
    address_.resize(4);
    own.copy(reinterpret_cast<char*>(address_.data()), own.size());
  }
  ~Driver() override { transport_->unbind("driver"); }

  void on_message(MessageWords words) override {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(words);
    has_answer_ = true;
    changed_.notify_all();
  }
  MessageWords ask(MessageWords words) {
    std::unique_lock lock(mutex_);
    has_answer_ = false;
    TROUPE_ASSERT(
        transport_->send(node_ + "/bench", TrafficClass::kControl, std::move(words)).ok());
    TROUPE_ASSERT(changed_.wait_for(lock, kPatience, [this] { return has_answer_; }));
    return answer_;
  }

  void ping(double for_seconds) {
    std::vector<double> trips;
    const TimePoint begin = kClock.now();
    while (seconds(kClock.now() - begin) < for_seconds) {
      const TimePoint sent = kClock.now();
      ask(address_);
      trips.push_back(seconds(kClock.now() - sent));
    }
    std::printf("%s\n", nlohmann::json{{"round_trip_s", median(trips)}}.dump().c_str());
  }

  void drive(size_t tokens, double for_seconds) {
    MessageWords order = address_;
    order.push_back(tokens);
    ticket_.landing = ask(order).at(0);
    layer_blocks_ = tokens / kBlockTokens;
    memory_.assign(kLayers * layer_blocks_ * kBlockBytes, std::byte{1});
    TROUPE_ASSERT(transport_->register_memory(memory_).ok());
    // One at a time: how long a request waits. Then two at once: what the link carries.
    std::vector<double> latencies;
    run(1, for_seconds / 3, &latencies);
    const TimePoint begin = kClock.now();
    const size_t moves = run(kMovesAtOnce, for_seconds * 2 / 3, nullptr);
    const double took = seconds(kClock.now() - begin);
    const double bytes = static_cast<double>(moves) * static_cast<double>(memory_.size());
    std::printf("%s\n", nlohmann::json{{"bytes", memory_.size()},
                                       {"gb_per_s", bytes / took / 1e9},
                                       {"move_s", median(latencies)}}
                            .dump()
                            .c_str());
    transport_->unregister_memory(memory_);
  }

 private:
  // How many moves of all layers ended.
  size_t run(size_t at_once, double for_seconds, std::vector<double>* latencies) {
    const TimePoint begin = kClock.now();
    size_t started = 0;
    parts_open_ = 0;
    while (started < 2 * at_once || seconds(kClock.now() - begin) < for_seconds) {
      const TimePoint sent = kClock.now();
      for (size_t layer = 0; layer < kLayers; ++layer) move_layer(layer);
      ++started;
      wait_for_open(kLayers * (at_once - 1));
      if (latencies != nullptr) latencies->push_back(seconds(kClock.now() - sent));
    }
    wait_for_open(0);
    return started;
  }
  void move_layer(size_t layer) {
    BulkPart part;
    part.offset = layer * layer_blocks_ * kBlockBytes;
    for (const size_t block : scattered(layer_blocks_)) {
      part.pieces.push_back(
          std::span(memory_).subspan((layer * layer_blocks_ + block) * kBlockBytes, kBlockBytes));
    }
    {
      const std::lock_guard lock(mutex_);
      ++parts_open_;
    }
    transport_->move(node_, ticket_, TrafficClass::kBulk, std::move(part), [this](Status status) {
      TROUPE_ASSERT(status.ok(), status.message());
      const std::lock_guard lock(mutex_);
      --parts_open_;
      changed_.notify_all();
    });
  }
  void wait_for_open(size_t parts) {
    std::unique_lock lock(mutex_);
    TROUPE_ASSERT(changed_.wait_for(lock, kPatience, [&] { return parts_open_ <= parts; }));
  }

  std::unique_ptr<UcxTransport> transport_ = start();
  const std::string node_;
  MessageWords address_;
  std::vector<std::byte> memory_;
  size_t layer_blocks_ = 0;
  BulkTicket ticket_;
  std::mutex mutex_;
  std::condition_variable changed_;
  MessageWords answer_;
  bool has_answer_ = false;
  size_t parts_open_ = 0;
};

int main(const std::vector<std::string>& arguments) {
  const std::string& what = arguments.at(1);
  if (what == "serve") {
    const Server server;
    while (std::getchar() != EOF) {
    }
  } else if (what == "ping") {
    Driver(arguments.at(2)).ping(std::stod(arguments.at(3)));
  } else {
    TROUPE_ASSERT(what == "drive", what);
    Driver(arguments.at(2)).drive(std::stoul(arguments.at(3)), std::stod(arguments.at(4)));
  }
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  return troupe::main(std::vector<std::string>(argv, argv + argc));
}
