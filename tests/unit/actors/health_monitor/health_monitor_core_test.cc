#include "actors/health_monitor/health_monitor_core.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/health_monitor/monitor_fixture.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using Lines = std::vector<std::string>;
constexpr auto kSilence = limits::kHeartbeatTimeout + 2 * limits::kHeartbeatInterval;

bool same(const Lines& found, const Lines& expected) {
  std::string shown;
  for (const std::string& line : found) shown += line + "; ";
  BOOST_TEST_CONTEXT(shown) {
    BOOST_CHECK(found == expected);
  }
  return found == expected;
}

BOOST_FIXTURE_TEST_CASE(every_tick_asks_every_router_to_answer_at_its_own_endpoint,
                        MonitorFixture) {
  monitor.on_tick();
  monitor.on_tick();
  const auto asked_r = outbox.take<wire::Observe>(kR);
  const auto asked_s = outbox.take<wire::Observe>(kS);
  BOOST_TEST(asked_r.size() == 2U);
  BOOST_TEST(asked_s.size() == 2U);
  BOOST_TEST(asked_r[0].endpoint == "m:7000/monitor");
  BOOST_TEST(asked_s[0].endpoint == "m:7000/monitor1");
}

BOOST_FIXTURE_TEST_CASE(a_router_that_cannot_be_reached_is_asked_again, MonitorFixture) {
  outbox.unreachable.insert(kR);
  monitor.on_tick();
  BOOST_TEST(outbox.take<wire::Observe>(kR).empty());
  outbox.unreachable.clear();
  monitor.on_tick();
  BOOST_TEST(outbox.take<wire::Observe>(kR).size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(before_the_first_answer_nothing_is_healthy_and_nothing_has_happened,
                        MonitorFixture) {
  wait(kSilence);
  BOOST_TEST(same(transitions(), {}));
  const MonitorView view = monitor.view();
  BOOST_TEST(!view.healthy);
  BOOST_TEST(!view.informed());
  BOOST_TEST(view.reason == std::string("router ") + kR + ": unheard; router " + kS + ": unheard");
}

BOOST_FIXTURE_TEST_CASE(nodes_join_and_a_second_answer_changes_nothing, MonitorFixture) {
  hear(0, {worker()});
  BOOST_TEST(same(transitions(), {"router r:7000/router joined", "worker w:7000/worker joined"}));
  hear(0, {worker()});
  BOOST_TEST(same(transitions(), {}));
  const MonitorView view = monitor.view();
  BOOST_TEST(view.healthy);
  BOOST_TEST(view.reason.empty());
  BOOST_TEST(view.workers.size() == 1U);
  BOOST_TEST(view.workers[0].status.load.blocks_total == 100U);
}

BOOST_FIXTURE_TEST_CASE(a_worker_that_drains_and_ends_has_left, MonitorFixture) {
  hear(0, {worker()});
  hear(0, {worker("draining")});
  hear(0, {worker("left")});
  BOOST_TEST((state() == NodeState::kLeft));
  hear(0, {});
  BOOST_TEST(same(transitions(), {"router r:7000/router joined", "worker w:7000/worker joined",
                                  "router r:7000/router unable", "worker w:7000/worker draining",
                                  "worker w:7000/worker left"}));
}

BOOST_FIXTURE_TEST_CASE(a_worker_that_vanishes_while_it_drains_has_left_and_else_is_lost,
                        MonitorFixture) {
  hear(0, {worker("draining", "a/worker"), worker("ready", "b/worker"), worker()});
  hear(0, {worker()});
  BOOST_TEST((state("a/worker") == NodeState::kLeft));
  BOOST_TEST((state("b/worker") == NodeState::kLost));
  BOOST_TEST((state() == NodeState::kReady));
}

BOOST_FIXTURE_TEST_CASE(a_stalled_and_a_lost_worker_return, MonitorFixture) {
  hear(0, {worker(), worker("ready", "other/worker")});
  [[maybe_unused]] const Lines joined = transitions();
  hear(0, {worker("stalled"), worker("ready", "other/worker")});
  hear(0, {worker(), worker("ready", "other/worker")});
  hear(0, {worker("lost: not heard of for 3000 ms"), worker("ready", "other/worker")});
  BOOST_TEST((state() == NodeState::kLost));
  BOOST_TEST(monitor.view().recent.back().detail == "not heard of for 3000 ms");
  hear(0, {worker(), worker("ready", "other/worker")});
  BOOST_TEST(same(transitions(), {"worker w:7000/worker stalled", "worker w:7000/worker returned",
                                  "worker w:7000/worker lost", "worker w:7000/worker returned"}));
  for (const ObservedWorker& seen : monitor.view().workers) {
    if (seen.status.endpoint == kWorker) BOOST_TEST(seen.transitions == 5U);
  }
}

BOOST_FIXTURE_TEST_CASE(a_restart_between_two_answers_shows_by_the_incarnation, MonitorFixture) {
  hear(0, {worker()});
  [[maybe_unused]] const Lines joined = transitions();
  wire::WorkerStatus again = worker();
  again.incarnation = 12;
  hear(0, {again});
  hear(0, {again});
  BOOST_TEST(same(transitions(), {"worker w:7000/worker returned"}));
}

BOOST_FIXTURE_TEST_CASE(a_worker_that_was_lost_before_it_was_seen_is_none_of_ours, MonitorFixture) {
  hear(0, {worker("lost: silent"), worker("left", "b/worker")});
  BOOST_TEST(monitor.view().workers.empty());
}

BOOST_FIXTURE_TEST_CASE(a_silent_router_is_lost_and_its_workers_stay_as_they_were, MonitorFixture) {
  hear(0, {worker()});
  [[maybe_unused]] const Lines joined = transitions();
  wait(kSilence);
  BOOST_TEST(same(transitions(), {"router r:7000/router lost"}));
  BOOST_TEST((state() == NodeState::kReady));
  BOOST_TEST(!monitor.view().healthy);
  BOOST_TEST(!monitor.view().informed());
  hear(0, {worker()});
  BOOST_TEST(same(transitions(), {"router r:7000/router returned"}));
}

BOOST_FIXTURE_TEST_CASE(a_router_whose_connection_breaks_is_lost_at_once, MonitorFixture) {
  hear(0, {worker()});
  hear(1, {worker()});
  [[maybe_unused]] const Lines joined = transitions();
  PeerState peer;
  peer.node = "r:7000";
  peer.connected = true;
  monitor.on_peers({peer});
  BOOST_TEST(same(transitions(), {}));
  peer.connected = false;
  monitor.on_peers({peer});
  monitor.on_peers({peer});
  BOOST_TEST(same(transitions(), {"router r:7000/router lost"}));
  hear(0, {worker()});
  BOOST_TEST(same(transitions(), {"router r:7000/router returned"}));
}

BOOST_FIXTURE_TEST_CASE(own_pause_is_not_taken_for_silence, MonitorFixture) {
  hear(0, {worker()});
  [[maybe_unused]] const Lines joined = transitions();
  clock.advance(std::chrono::minutes(5));
  monitor.on_tick();
  BOOST_TEST(same(transitions(), {}));
  wait(kSilence);
  BOOST_TEST(same(transitions(), {"router r:7000/router lost"}));
}

BOOST_FIXTURE_TEST_CASE(of_two_routers_the_one_that_heard_the_worker_last_is_believed,
                        MonitorFixture) {
  wire::WorkerStatus fresh = worker("stalled");
  fresh.heard = milliseconds(10);
  wire::WorkerStatus old = worker();
  old.heard = milliseconds(900);
  hear(0, {old});
  hear(1, {fresh});
  BOOST_TEST((state() == NodeState::kStalled));
  const MonitorView view = monitor.view();
  BOOST_TEST(view.workers.size() == 1U);
  BOOST_TEST(view.workers[0].status.requests == 4U);  // two from each
  BOOST_TEST(view.workers[0].status.heard.count() == 10);
  BOOST_TEST(view.healthy);  // R can serve
}

BOOST_FIXTURE_TEST_CASE(a_worker_that_one_router_loses_is_not_lost_while_another_hears_it,
                        MonitorFixture) {
  hear(0, {worker()});
  hear(1, {worker()});
  [[maybe_unused]] const Lines joined = transitions();
  wire::WorkerStatus lost = worker("lost: not heard of for 3000 ms");
  lost.heard = milliseconds(3100);
  hear(0, {lost});
  BOOST_TEST((state() == NodeState::kReady));
  wait(kSilence);  // both routers silent: nothing is known
  hear(0, {});     // and the one that returns knows no worker
  BOOST_TEST((state() == NodeState::kLost));
}

BOOST_FIXTURE_TEST_CASE(a_worker_that_is_gone_for_long_is_forgotten_but_stays_counted,
                        MonitorFixture) {
  hear(0, {worker(), worker("ready", "other/worker")});
  hear(0, {worker("ready", "other/worker")});
  clock.advance(kGoneKept + std::chrono::seconds(1));
  monitor.on_tick();
  monitor.check_invariants();
  const MonitorView view = monitor.view();
  BOOST_TEST(view.workers.size() == 1U);
  BOOST_TEST(view.transitions[1][static_cast<size_t>(TransitionKind::kJoined)] == 2U);
  BOOST_TEST(view.transitions[1][static_cast<size_t>(TransitionKind::kLost)] == 1U);
}

BOOST_FIXTURE_TEST_CASE(workers_beyond_the_limit_are_left_out_and_counted, MonitorFixture) {
  std::vector<wire::WorkerStatus> many;
  for (size_t i = 0; i < kObservedWorkersMax + 3; ++i) {
    many.push_back(worker("ready", "w" + std::to_string(i) + "/worker"));
  }
  hear(0, many);
  BOOST_TEST(monitor.view().workers.size() == kObservedWorkersMax);
  BOOST_TEST(monitor.view().workers_left_out == 3U);
  BOOST_TEST(monitor.view().recent.size() == kTransitionsKept);
  BOOST_TEST(monitor.take_transitions().size() == kTransitionsKept);
  BOOST_TEST(monitor.take_transitions().empty());
}

BOOST_FIXTURE_TEST_CASE(a_router_that_joins_without_workers_has_joined_and_is_unable,
                        MonitorFixture) {
  hear(0, {});
  BOOST_TEST(same(transitions(), {"router r:7000/router joined", "router r:7000/router unable"}));
  BOOST_TEST(monitor.view().reason.find("no worker is ready") != std::string::npos);
  BOOST_TEST(monitor.view().informed());
}

}  // namespace
}  // namespace troupe
