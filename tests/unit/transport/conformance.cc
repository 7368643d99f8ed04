#include "tests/unit/transport/conformance.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "base/limits.h"

namespace troupe::conformance {

void Collector::on_message(MessageWords words) {
  const std::lock_guard lock(mutex_);
  received_.push_back(std::move(words));
  changed_.notify_all();
}

bool Collector::wait_for(size_t messages) const {
  return wait_until([&] { return received_.size() >= messages; });
}

std::vector<MessageWords> Collector::received() const {
  const std::lock_guard lock(mutex_);
  return received_;
}

void LandingLog::on_landed(uint64_t landing, uint64_t offset, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  landed_.push_back({landing, offset, bytes});
  changed_.notify_all();
}

void LandingLog::on_retracted(uint64_t landing) {
  const std::lock_guard lock(mutex_);
  retracted_.push_back(landing);
  changed_.notify_all();
}

bool LandingLog::wait_for_landed(size_t parts) const {
  return wait_until([&] { return landed_.size() >= parts; });
}

bool LandingLog::wait_for_retracted(size_t landings) const {
  return wait_until([&] { return retracted_.size() >= landings; });
}

std::vector<Landed> LandingLog::landed() const {
  const std::lock_guard lock(mutex_);
  return landed_;
}

std::vector<uint64_t> LandingLog::retracted() const {
  const std::lock_guard lock(mutex_);
  return retracted_;
}

MoveDone Ends::done() {
  return [this](Status status) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(status));
    changed_.notify_all();
  };
}

bool Ends::wait_for(size_t parts) const {
  return wait_until([&] { return all_.size() >= parts; });
}

std::vector<Status> Ends::all() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

void PeerLog::on_peer_joined(std::string_view node, uint64_t incarnation) {
  const std::lock_guard lock(mutex_);
  joined_.push_back(std::string(node) + " " + std::to_string(incarnation));
  changed_.notify_all();
}

void PeerLog::on_peer_lost(std::string_view node, const Status& why) {
  const std::lock_guard lock(mutex_);
  lost_.emplace_back(node, why);
  changed_.notify_all();
}

bool PeerLog::wait_for_joined(size_t peers) const {
  return wait_until([&] { return joined_.size() >= peers; });
}

bool PeerLog::wait_for_lost(size_t peers, std::chrono::milliseconds patience) const {
  return wait_until([&] { return lost_.size() >= peers; }, patience);
}

std::vector<std::string> PeerLog::joined() const {
  const std::lock_guard lock(mutex_);
  return joined_;
}

std::vector<std::pair<std::string, Status>> PeerLog::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

static std::byte filled(uint8_t seed, size_t i) {
  return static_cast<std::byte>(seed + (i * 2654435761U >> 13));
}

Memory::Memory(Transport& transport, size_t bytes, uint8_t seed)
    : transport_(transport), bytes_(bytes) {
  constexpr size_t kRun = 4093;  // prime, so that the pattern and what is moved have no common step
  for (size_t i = 0; i < std::min(bytes, kRun); ++i) bytes_[i] = filled(seed, i);
  for (size_t i = kRun; i < bytes; i += kRun) {
    std::memcpy(&bytes_[i], bytes_.data(), std::min(kRun, bytes - i));
    bytes_[i] = static_cast<std::byte>(i / kRun);
  }
  BOOST_REQUIRE(transport.register_memory(bytes_).ok());
}

Memory::~Memory() {
  transport_.unregister_memory(bytes_);
}

std::string name_of(const Transport& transport) {
  return std::string(node_of(transport.address_of("x")));
}

namespace {

// The thread sanitizer watches each word, which takes so long for the largest messages that a node
// seems dead.
#if defined(__SANITIZE_THREAD__)
constexpr size_t kLargestMessageWords = size_t{1} << 19;
#else
constexpr size_t kLargestMessageWords = limits::kMessageBytesMax / sizeof(uint64_t);
#endif

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// --- Messages

void delivers_in_order_and_unchanged(Transport& from, Transport& to) {
  Collector collector;
  BOOST_REQUIRE(to.bind("ordered", collector).ok());
  // Small and large ones in turn, and of all classes: none may overtake another.
  const auto message = [](uint64_t i) { return MessageWords(i % 10 == 9 ? 40000 : 1 + i, i); };
  for (uint64_t i = 0; i < 200; ++i) {
    const auto traffic = static_cast<TrafficClass>(i / 3 % 2);
    BOOST_TEST(from.send(to.address_of("ordered"), traffic, message(i)).ok());
  }
  BOOST_TEST(collector.wait_for(200));
  to.unbind("ordered");
  const auto received = collector.received();
  BOOST_REQUIRE(received.size() == 200U);
  for (uint64_t i = 0; i < 200; ++i) BOOST_TEST((received[i] == message(i)), "message " << i);
}

void delivers_messages_of_every_size(Transport& from, Transport& to) {
  Collector collector;
  BOOST_REQUIRE(to.bind("sizes", collector).ok());
  const std::vector<size_t> words{0, 1, 2, 100, 1023, 8192, size_t{1} << 17, kLargestMessageWords};
  for (const size_t count : words) {
    MessageWords message(count, count * 3);
    BOOST_TEST(from.send(to.address_of("sizes"), TrafficClass::kTokens, std::move(message)).ok());
  }
  BOOST_TEST(collector.wait_for(words.size()));
  to.unbind("sizes");
  const auto received = collector.received();
  BOOST_REQUIRE(received.size() == words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    BOOST_TEST((received[i] == MessageWords(words[i], words[i] * 3)), words[i] << " words");
  }
}

void refuses_what_breaks_a_rule(Transport& from, Transport& to) {
  Collector collector;
  const auto is_invalid = [](const Status& s) { return s.code() == StatusCode::kInvalidArgument; };
  BOOST_TEST(is_invalid(to.bind("", collector)));
  BOOST_TEST(is_invalid(to.bind("a/b", collector)));
  BOOST_REQUIRE(to.bind("taken", collector).ok());
  BOOST_TEST(is_invalid(to.bind("taken", collector)));
  BOOST_TEST(is_invalid(from.send("", TrafficClass::kTokens, {1})));
  const MessageWords huge(limits::kMessageBytesMax / sizeof(uint64_t) + 1);
  BOOST_TEST(is_invalid(from.send(to.address_of("taken"), TrafficClass::kTokens, huge)));
  to.unbind("taken");
  BOOST_TEST(collector.received().empty());
  // Whether somebody is bound there may not be known yet.
  const Status unbound = from.send(to.address_of("taken"), TrafficClass::kTokens, {1});
  BOOST_TEST((unbound.ok() || unbound.code() == StatusCode::kUnavailable));
  to.unbind("taken");  // harmless
}

// After unbind() has returned, no call of the receiver runs or comes, whatever others send
// meanwhile.
void unbind_is_a_fence(Transport& from, Transport& to) {
  for (int round = 0; round < 50; ++round) {
    auto collector = std::make_unique<Collector>();
    BOOST_REQUIRE(to.bind("fence", *collector).ok());
    std::atomic<bool> stop{false};
    std::thread sender([&] {
      for (int i = 0; i < 1000 && !stop; ++i) {
        if (!from.send(to.address_of("fence"), TrafficClass::kControl, {7}).ok()) break;
      }
    });
    to.unbind("fence");
    collector.reset();  // a late call would touch freed memory
    stop = true;
    sender.join();
  }
}

// --- Bulk

void moves_scattered_ranges(Transport& from, Transport& to) {
  constexpr size_t kBlock = 12288, kBlocks = 24;
  Memory source(from, 2 * kBlock * kBlocks, 3), target(to, 2 * kBlock * kBlocks, 4);
  LandingLog log;
  Ends ends;
  // Every other block, backwards, so that no two touch.
  std::vector<std::span<std::byte>> ranges;
  for (size_t i = kBlocks; i-- > 0;) ranges.push_back(target.at(2 * i * kBlock, kBlock));
  const auto ticket = to.expose(ranges, 11, 12, log);
  BOOST_REQUIRE(ticket.ok());
  BOOST_TEST((ticket->label_high == 11 && ticket->label_low == 12));
  // The pieces are cut otherwise than the ranges: 3 of 4 blocks' size each, 18 parts of 2 pieces.
  constexpr size_t kPiece = kBlock / 3 * 2;
  for (size_t part = 0; part < kBlocks * kBlock / (2 * kPiece); ++part) {
    BulkPart moved{part * 2 * kPiece, {}};
    for (size_t i = 2 * part; i < 2 * part + 2; ++i) {
      moved.pieces.push_back(source.at(2 * i * kPiece, kPiece));
    }
    from.move(name_of(to), ticket.value(), TrafficClass::kBulk, std::move(moved), ends.done());
  }
  BOOST_TEST(ends.wait_for(18));
  BOOST_TEST(log.wait_for_landed(18));
  for (const Status& status : ends.all()) BOOST_TEST(status.ok(), status.message());
  std::vector<std::byte> sent, got;
  for (size_t i = 0; i < 36; ++i) {
    const auto piece = source.at(2 * i * kPiece, kPiece);
    sent.insert(sent.end(), piece.begin(), piece.end());
  }
  for (const auto& range : ranges) got.insert(got.end(), range.begin(), range.end());
  BOOST_TEST(same_bytes(sent, got));
  // What lies between the ranges is as before.
  Memory fresh(to, 2 * kBlock, 4);
  BOOST_TEST(same_bytes(target.at(kBlock, kBlock), fresh.at(kBlock, kBlock)));
  to.retract(ticket->landing);
  BOOST_TEST(log.wait_for_retracted(1));
}

void refuses_parts_that_have_no_place(Transport& from, Transport& to) {
  Memory source(from, 4096, 5), target(to, 4096, 6);
  LandingLog log;
  const auto ticket = to.expose({target.at(0, 2048)}, 1, 2, log);
  BOOST_REQUIRE(ticket.ok());
  std::vector<std::byte> stranger(16);
  const auto move = [&](const BulkTicket& where, uint64_t offset, std::span<const std::byte> what) {
    Ends ends;
    from.move(name_of(to), where, TrafficClass::kBulk, {offset, {what}}, ends.done());
    BOOST_REQUIRE(ends.wait_for(1));
    return ends.all()[0].code();
  };
  const BulkTicket good = ticket.value();
  const BulkTicket stale{good.landing + 1000, 1, 2}, other{good.landing, 1, 3};
  BOOST_TEST((move(stale, 0, source.at(0, 16)) == StatusCode::kNotFound));
  BOOST_TEST((move(other, 0, source.at(0, 16)) == StatusCode::kNotFound));
  BOOST_TEST((move(good, 2040, source.at(0, 16)) == StatusCode::kInvalidArgument));
  BOOST_TEST((move(good, UINT64_MAX - 7, source.at(0, 16)) == StatusCode::kInvalidArgument));
  BOOST_TEST((move(good, 0, stranger) == StatusCode::kInvalidArgument));
  BOOST_TEST((move(good, 0, {}) == StatusCode::kInvalidArgument));
  BOOST_TEST((move(good, 2032, source.at(0, 16)) == StatusCode::kOk));
  BOOST_TEST((move(good, 2032, source.at(0, 16)) == StatusCode::kOk));  // again
  BOOST_TEST((log.landed() == std::vector<Landed>(2, {good.landing, 2032, 16})));
  to.retract(good.landing);
  BOOST_TEST(log.wait_for_retracted(1));
  BOOST_TEST((move(good, 0, source.at(0, 16)) == StatusCode::kNotFound));
  to.retract(good.landing);  // harmless
  BOOST_TEST(log.retracted().size() == 1U);
  const auto code = [&](std::vector<std::span<std::byte>> ranges) {
    return to.expose(std::move(ranges), 0, 0, log).status().code();
  };
  BOOST_TEST((code({}) == StatusCode::kInvalidArgument));
  BOOST_TEST((code({stranger}) == StatusCode::kInvalidArgument));
  BOOST_TEST((code({target.at(0, 0)}) == StatusCode::kInvalidArgument));
}

void never_names_two_landings_alike(Transport& to) {
  Memory target(to, 64, 7);
  LandingLog log;
  std::vector<uint64_t> names;
  for (int i = 0; i < 100; ++i) {
    const auto ticket = to.expose({target.span()}, 0, 0, log);
    BOOST_REQUIRE(ticket.ok());
    names.push_back(ticket->landing);
    to.retract(ticket->landing);
  }
  std::sort(names.begin(), names.end());
  BOOST_TEST((std::adjacent_find(names.begin(), names.end()) == names.end()));
  BOOST_TEST(log.retracted().size() == 100U);
}

void has_ten_thousand_parts_under_way(Transport& from, Transport& to) {
  constexpr size_t kParts = 10000, kBytes = 64;
  Memory source(from, kParts * kBytes, 8), target(to, kParts * kBytes, 9);
  LandingLog log;
  Ends ends;
  const auto ticket = to.expose({target.span()}, 0, 0, log);
  BOOST_REQUIRE(ticket.ok());
  for (size_t i = 0; i < kParts; ++i) {
    const auto traffic = i % 2 == 0 ? TrafficClass::kBulk : TrafficClass::kBulkBackground;
    from.move(name_of(to), ticket.value(), traffic, {i * kBytes, {source.at(i * kBytes, kBytes)}},
              ends.done());
  }
  BOOST_TEST(ends.wait_for(kParts));
  BOOST_TEST(log.wait_for_landed(kParts));
  const auto all = ends.all();
  BOOST_TEST(std::all_of(all.begin(), all.end(), [](const Status& s) { return s.ok(); }));
  BOOST_TEST(same_bytes(source.span(), target.span()));
  to.retract(ticket->landing);
  BOOST_TEST(log.wait_for_retracted(1));
}

// Whenever the landing is retracted: every part ends once, and after on_retracted() nothing is
// written and nothing lands any more.
void retracts_at_any_moment(Transport& from, Transport& to) {
  constexpr size_t kBytes = size_t{3} << 20;
  Memory source(from, 2 * kBytes, 10), target(to, 2 * kBytes, 11);
  for (int round = 0; round < 40; ++round) {
    LandingLog log;
    Ends ends;
    const auto ticket = to.expose({target.at(0, kBytes), target.at(kBytes, kBytes)}, 0, 0, log);
    BOOST_REQUIRE(ticket.ok());
    const size_t cut = 1 + static_cast<size_t>(round) * 4096;
    std::thread mover([&] {
      const auto move = [&](uint64_t offset, std::vector<std::span<const std::byte>> pieces) {
        from.move(name_of(to), ticket.value(), TrafficClass::kBulk, {offset, std::move(pieces)},
                  ends.done());
      };
      move(0, {source.at(0, cut)});
      move(cut, {source.at(cut, kBytes)});
      move(cut + kBytes, {source.at(cut + kBytes, 5000), source.at(0, 5000)});
    });
    for (int spin = 0; spin < round * 3000; ++spin)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    to.retract(ticket->landing);
    BOOST_REQUIRE(log.wait_for_retracted(1));
    const size_t landed = log.landed().size();
    std::memset(target.span().data(), 0x5a, target.span().size());
    mover.join();
    BOOST_REQUIRE(ends.wait_for(3));
    BOOST_TEST(log.landed().size() == landed);
    const auto untouched = [](std::byte b) { return b == std::byte{0x5a}; };
    BOOST_TEST(std::all_of(target.span().begin(), target.span().end(), untouched));
    const auto all = ends.all();
    const auto ok = std::count_if(all.begin(), all.end(), [](const Status& s) { return s.ok(); });
    BOOST_TEST(static_cast<size_t>(ok) == landed);
    for (const Status& status : all) {
      BOOST_TEST((status.ok() || status.code() == StatusCode::kNotFound), status.message());
    }
  }
}

}  // namespace

void moves_bytes(Transport& from, Transport& to, size_t bytes) {
  Memory source(from, bytes, 1), target(to, bytes, 2);
  LandingLog log;
  Ends ends;
  const auto ticket = to.expose({target.span()}, 21, 22, log);
  BOOST_REQUIRE(ticket.ok());
  from.move(name_of(to), ticket.value(), TrafficClass::kBulk, {0, {source.span()}}, ends.done());
  BOOST_REQUIRE(ends.wait_for(1));
  BOOST_TEST(ends.all()[0].ok(), ends.all()[0].message());
  BOOST_TEST(log.wait_for_landed(1));
  BOOST_TEST((log.landed() == std::vector<Landed>{{ticket->landing, 0, bytes}}));
  BOOST_TEST(same_bytes(source.span(), target.span()), bytes << " bytes");
  to.retract(ticket->landing);
  BOOST_TEST(log.wait_for_retracted(1));
}

void check_conformance(Transport& from, Transport& to) {
  delivers_in_order_and_unchanged(from, to);
  delivers_messages_of_every_size(from, to);
  refuses_what_breaks_a_rule(from, to);
  unbind_is_a_fence(from, to);
  for (const size_t bytes : {size_t{1}, size_t{7}, size_t{4096}, size_t{61441}, size_t{300000},
                             size_t{5} << 20, (size_t{64} << 20) + 1}) {
    moves_bytes(from, to, bytes);
  }
  moves_scattered_ranges(from, to);
  refuses_parts_that_have_no_place(from, to);
  never_names_two_landings_alike(to);
  has_ten_thousand_parts_under_way(from, to);
  retracts_at_any_moment(from, to);
}

}  // namespace troupe::conformance
