// A peer that dies, or stops, at each moment: it is noticed in time, and everything under way ends
// once.

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/unit/transport/ucx/ucx_fixture.h"

extern char** environ;

namespace troupe::conformance {
namespace {

constexpr size_t kBytes = size_t{32} << 20;

// peer_program.cc as a child.
class Child final {
 public:
  explicit Child(const std::string& parent) {
    std::array<int, 2> in{}, out{};
    BOOST_REQUIRE((::pipe(in.data()) == 0 && ::pipe(out.data()) == 0));
    input_ = in[1];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    for (const int fd : {in[0], in[1], out[0], out[1]}) {
      posix_spawn_file_actions_addclose(&actions, fd);
    }
    std::string program = TROUPE_PEER_PROGRAM, node = parent, secret = ucx_options().secret;
    std::array<char*, 4> arguments{program.data(), node.data(), secret.data(), nullptr};
    BOOST_REQUIRE(
        ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) name.push_back(c);
    ::close(out[0]);
    BOOST_REQUIRE(!name.empty());
  }
  ~Child() {
    give(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(input_);
  }
  void give(int signal) { ::kill(pid_, signal); }

  std::string name;

 private:
  pid_t pid_ = 0;
  int input_ = -1;
};

// A node with a child that has joined it.
struct Pair {
  Pair() {
    BOOST_REQUIRE(node->bind("beats", beats).ok());
    child.emplace(node->node());
    BOOST_REQUIRE(beats.wait_for(1));
    const MessageWords words = beats.received()[0];
    ticket = {words[0], words[1], words[2]};
    const auto opened = node->expose({memory.span()}, 3, 4, landings);
    BOOST_REQUIRE(opened.ok());
    landing = opened.value();
  }
  ~Pair() {
    child.reset();
    node->unbind("beats");
    node->retract(landing.landing);
    BOOST_TEST(landings.wait_for_retracted(1));
  }
  void move_out(size_t parts) {
    for (size_t i = 0; i < parts; ++i) {
      node->move(child->name, ticket, TrafficClass::kBulk, {0, {memory.span()}}, ends.done());
    }
  }
  void let_move_in() {
    const MessageWords order{landing.landing, landing.label_high, landing.label_low, kBytes};
    BOOST_REQUIRE(node->send(child->name + "/push", TrafficClass::kControl, order).ok());
  }
  // The child gets `signal`, is noticed to be lost in time, and nothing of it is left.
  void loses_the_child_by(int signal, size_t parts) {
    const TimePoint before = kClock.now();
    child->give(signal);
    BOOST_TEST(watch.log.wait_for_lost(1));
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(kClock.now() - before);
    BOOST_TEST((took < kNoticed), "noticed after " << took.count() << " ms");
    BOOST_TEST_MESSAGE("noticed after " << took.count() << " ms");
    BOOST_TEST(watch.log.lost()[0].first == child->name);
    BOOST_TEST(ends.wait_for(parts));
    BOOST_TEST(ends.all().size() == parts);
    if (parts > 0) BOOST_TEST((ends.all().back().code() == StatusCode::kUnavailable));
    node->retract(landing.landing);
    BOOST_TEST(landings.wait_for_retracted(1));
  }

  std::unique_ptr<UcxTransport> node = start_ucx();
  Watch watch{*node};
  Memory memory{*node, kBytes, 1};
  LandingLog landings;
  Ends ends;
  Collector beats;
  std::optional<Child> child;
  BulkTicket ticket, landing;
};

BOOST_AUTO_TEST_SUITE(ucx_death)

BOOST_AUTO_TEST_CASE(killed_when_idle) {
  Pair pair;
  pair.loses_the_child_by(SIGKILL, 0);
}

BOOST_AUTO_TEST_CASE(killed_before_it_joined) {
  const auto node = start_ucx();
  Watch watch(*node);
  Child child("127.0.0.1:1");
  child.give(SIGKILL);
  BOOST_TEST(node->send(child.name + "/push", TrafficClass::kControl, {1}).ok());
  BOOST_TEST(watch.log.wait_for_lost(1));
  BOOST_TEST((watch.log.lost()[0].second.code() == StatusCode::kUnavailable));
}

BOOST_AUTO_TEST_CASE(killed_with_messages_on_their_way_to_it) {
  Pair pair;
  for (int i = 0; i < 60; ++i) {
    BOOST_TEST(pair.node
                   ->send(pair.child->name + "/nobody", TrafficClass::kTokens,
                          MessageWords(size_t{1} << 19))
                   .ok());
  }
  pair.loses_the_child_by(SIGKILL, 0);
}

BOOST_AUTO_TEST_CASE(killed_with_parts_on_their_way_to_it) {
  Pair pair;
  pair.move_out(100);
  BOOST_TEST(pair.ends.wait_for(2));
  pair.loses_the_child_by(SIGKILL, 100);
}

BOOST_AUTO_TEST_CASE(killed_with_parts_on_their_way_from_it) {
  Pair pair;
  pair.let_move_in();
  BOOST_TEST(pair.landings.wait_for_landed(2));
  pair.loses_the_child_by(SIGKILL, 0);
}

BOOST_AUTO_TEST_CASE(stopped_when_idle) {
  Pair pair;
  pair.loses_the_child_by(SIGSTOP, 0);
}

BOOST_AUTO_TEST_CASE(stopped_with_parts_on_their_way_to_it) {
  Pair pair;
  pair.move_out(100);
  BOOST_TEST(pair.ends.wait_for(2));
  pair.loses_the_child_by(SIGSTOP, 100);
}

BOOST_AUTO_TEST_CASE(stopped_with_parts_on_their_way_from_it) {
  Pair pair;
  pair.let_move_in();
  BOOST_TEST(pair.landings.wait_for_landed(2));
  pair.loses_the_child_by(SIGSTOP, 0);
}

BOOST_AUTO_TEST_CASE(a_stopped_peer_joins_again_when_it_goes_on) {
  Pair pair;
  pair.loses_the_child_by(SIGSTOP, 0);
  const size_t beats = pair.beats.received().size();
  pair.child->give(SIGCONT);
  BOOST_TEST(pair.watch.log.wait_for_joined(2));
  BOOST_TEST(pair.beats.wait_for(beats + 1));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::conformance
