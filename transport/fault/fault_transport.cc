#include "transport/fault/fault_transport.h"

#include <algorithm>
#include <memory>

#include "base/assert.h"
#include "base/limits.h"
#include "base/philox.h"
#include "transport/local/endpoint_table.h"

namespace troupe {
namespace {

Status cut_off(std::string_view node) {
  return {StatusCode::kUnavailable, "node " + std::string(node) + " is cut off by plan"};
}

}  // namespace

FaultTransport::FaultTransport(Transport& inner, const FaultPlan& plan, const Clock& clock)
    : inner_(inner), plan_(plan), clock_(clock) {}

FaultTransport::~FaultTransport() {
  set_peer_observer(nullptr);
  std::vector<HeldPart> parts;
  {
    const std::lock_guard lock(mutex_);
    parts.swap(parts_);
  }
  for (const HeldPart& part : parts) part.done(cut_off(part.node));
}

// Needs the lock, like the two that follow. A draw that cannot happen is not drawn, so that adding
// a fault to a plan does not change where the others strike.
bool FaultTransport::happens(double probability) {
  return probability > 0 && philox_uniform(plan_.seed, draws_++, 0) < probability;
}

Duration FaultTransport::delay() {
  const double share = philox_uniform(plan_.seed, draws_++, 1);
  return Duration(static_cast<int64_t>(share * static_cast<double>(plan_.delay_max.count())));
}

bool FaultTransport::is_cut(std::string_view address) const {
  return cut_.count(address) > 0 || cut_.count(node_of(address)) > 0;
}

Status FaultTransport::send(std::string_view address, TrafficClass traffic, MessageWords words) {
  TROUPE_RETURN_IF_ERROR(check_message_size(words));
  if (address.empty()) return invalid_argument("an address is empty; name an endpoint");
  int copies = 1;
  {
    const std::lock_guard lock(mutex_);
    if (is_cut(address)) {
      ++counts_.cut;
      return cut_off(node_of(address));
    }
    if (happens(plan_.lose_message)) {
      ++counts_.lost;
      return ok_status();
    }
    if (happens(plan_.repeat_message)) {
      ++counts_.repeated;
      copies = 2;
    }
    if (!words.empty() && happens(plan_.damage_message)) {
      ++counts_.damaged;
      const uint64_t bit = philox_u64(plan_.seed, draws_++, 2) % (words.size() * 64);
      words[bit / 64] ^= uint64_t{1} << (bit % 64);
    }
    const auto waiting = messages_.find(address);
    const bool waits = waiting != messages_.end();
    if (happens(plan_.delay_message) || waits) {
      ++counts_.delayed;
      std::deque<HeldMessage>& queue = messages_[std::string(address)];
      if (queue.size() >= limits::kMovesMax) {
        return {StatusCode::kResourceExhausted, "too many delayed messages"};
      }
      TimePoint due = clock_.now() + delay();
      if (!queue.empty()) due = std::max(due, queue.back().due);
      queue.push_back({std::string(address), traffic, std::move(words), copies, due});
      return ok_status();
    }
  }
  while (--copies > 0) static_cast<void>(inner_.send(address, traffic, words).ok());
  return inner_.send(address, traffic, std::move(words));
}

void FaultTransport::move(std::string_view node, const BulkTicket& ticket, TrafficClass traffic,
                          BulkPart part, MoveDone done) {
  HeldPart held{std::string(node), ticket, traffic, std::move(part), std::move(done), 1, {}};
  Status refused;
  {
    const std::lock_guard lock(mutex_);
    if (is_cut(node)) {
      ++counts_.cut;
      refused = cut_off(node);
    } else if (happens(plan_.damage_part)) {
      ++counts_.damaged;
      refused = {StatusCode::kDataLoss, "the part was damaged by plan; move it again"};
    } else {
      if (happens(plan_.repeat_part)) {
        ++counts_.repeated;
        held.copies = 2;
      }
      if (happens(plan_.delay_part)) {
        ++counts_.delayed;
        held.due = clock_.now() + delay();
        parts_.push_back(std::move(held));
        return;
      }
    }
  }
  if (!refused.ok()) return held.done(std::move(refused));
  hand_over(std::move(held));
}

// A repeated part ends when both have; the second's end is what counts.
void FaultTransport::hand_over(HeldPart held) {
  if (held.copies == 1) {
    return inner_.move(held.node, held.ticket, held.traffic, std::move(held.part),
                       std::move(held.done));
  }
  struct Both {
    std::mutex mutex;
    int left = 2;
    Status worst;
    MoveDone done;
  };
  const auto both = std::make_shared<Both>();  // shared by the two completions and nobody else
  both->done = std::move(held.done);
  const MoveDone each = [both](const Status& status) {
    {
      const std::lock_guard lock(both->mutex);
      if (!status.ok()) both->worst = status;
      if (--both->left > 0) return;
    }
    both->done(both->worst);
  };
  inner_.move(held.node, held.ticket, held.traffic, held.part, each);
  inner_.move(held.node, held.ticket, held.traffic, std::move(held.part), each);
}

void FaultTransport::release_due() {
  const TimePoint now = clock_.now();
  std::vector<HeldMessage> messages;
  std::vector<HeldPart> parts;
  {
    const std::lock_guard lock(mutex_);
    for (auto queue = messages_.begin(); queue != messages_.end();) {
      while (!queue->second.empty() && queue->second.front().due <= now) {
        messages.push_back(std::move(queue->second.front()));
        queue->second.pop_front();
      }
      queue = queue->second.empty() ? messages_.erase(queue) : std::next(queue);
    }
    const auto first_due = std::stable_partition(
        parts_.begin(), parts_.end(), [now](const HeldPart& part) { return part.due > now; });
    std::move(first_due, parts_.end(), std::back_inserter(parts));
    parts_.erase(first_due, parts_.end());
  }
  std::stable_sort(messages.begin(), messages.end(),
                   [](const HeldMessage& a, const HeldMessage& b) { return a.due < b.due; });
  for (HeldMessage& message : messages) {
    // Whether it arrives was promised to nobody.
    for (int i = 0; i < message.copies; ++i) {
      static_cast<void>(inner_.send(message.address, message.traffic, message.words).ok());
    }
  }
  for (HeldPart& part : parts) hand_over(std::move(part));
}

std::optional<TimePoint> FaultTransport::next_due() const {
  const std::lock_guard lock(mutex_);
  std::optional<TimePoint> next;
  const auto take = [&next](TimePoint due) { next = std::min(next.value_or(due), due); };
  for (const auto& [address, queue] : messages_) take(queue.front().due);
  for (const HeldPart& part : parts_) take(part.due);
  return next;
}

void FaultTransport::cut(const std::string& node) {
  std::vector<HeldPart> ended;
  {
    const std::lock_guard lock(mutex_);
    if (!cut_.insert(node).second) return;
    std::erase_if(messages_, [&](const auto& queue) { return is_cut(queue.first); });
    const auto first_cut = std::stable_partition(
        parts_.begin(), parts_.end(), [&](const HeldPart& part) { return !is_cut(part.node); });
    std::move(first_cut, parts_.end(), std::back_inserter(ended));
    parts_.erase(first_cut, parts_.end());
    counts_.cut += ended.size();
  }
  for (const HeldPart& part : ended) part.done(cut_off(node));
  const std::lock_guard lock(observer_mutex_);
  if (observer_ != nullptr) observer_->on_peer_lost(node, cut_off(node));
}

void FaultTransport::heal(const std::string& node) {
  uint64_t incarnation = 0;
  bool is_connected = false;
  for (const PeerState& peer : inner_.peers()) {
    if (peer.node != node) continue;
    incarnation = peer.incarnation;
    is_connected = peer.connected;
  }
  {
    const std::lock_guard lock(mutex_);
    if (cut_.erase(node) == 0) return;
  }
  const std::lock_guard lock(observer_mutex_);
  if (observer_ != nullptr && is_connected) observer_->on_peer_joined(node, incarnation);
}

FaultCounts FaultTransport::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void FaultTransport::set_peer_observer(PeerObserver* observer) {
  {
    const std::lock_guard lock(observer_mutex_);
    observer_ = observer;
  }
  inner_.set_peer_observer(observer == nullptr ? nullptr : this);
}

std::vector<PeerState> FaultTransport::peers() const {
  std::vector<PeerState> peers = inner_.peers();
  const std::lock_guard lock(mutex_);
  for (PeerState& peer : peers) peer.connected &= cut_.count(peer.node) == 0;
  return peers;
}

void FaultTransport::on_peer_joined(std::string_view node, uint64_t incarnation) {
  {
    const std::lock_guard lock(mutex_);
    if (cut_.count(node) > 0) return;  // heal() tells
  }
  const std::lock_guard lock(observer_mutex_);
  if (observer_ != nullptr) observer_->on_peer_joined(node, incarnation);
}

void FaultTransport::on_peer_lost(std::string_view node, const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (cut_.count(node) > 0) return;  // cut() has told
  }
  const std::lock_guard lock(observer_mutex_);
  if (observer_ != nullptr) observer_->on_peer_lost(node, why);
}

}  // namespace troupe
