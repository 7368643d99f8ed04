// The simulation's own parts.

#include <glog/logging.h>
#include <boost/test/unit_test.hpp>

#include "sim/cost_model.h"
#include "sim/event_log.h"
#include "sim/swarm.h"
#include "sim/world.h"

namespace troupe::sim {
namespace {

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

StepPlan plan_of(size_t slices, size_t tokens, uint32_t position) {
  StepPlan plan;
  for (size_t i = 0; i < slices; ++i) {
    StepSlice& slice = plan.slices.emplace_back();
    slice.tokens.resize(tokens);
    slice.position = position;
  }
  return plan;
}

BOOST_AUTO_TEST_SUITE(sim_parts)

BOOST_AUTO_TEST_CASE(the_cpu_cost_goes_through_what_was_measured) {
  const CostModel cost = cpu_cost();
  BOOST_TEST(seconds(cost.of(plan_of(1, 512, 0))) == 0.535, boost::test_tools::tolerance(0.02));
  BOOST_TEST(seconds(cost.of(plan_of(1, 16, 0))) == 0.0231, boost::test_tools::tolerance(0.02));
  BOOST_TEST(seconds(cost.of(plan_of(1, 1, 192))) == 0.00877, boost::test_tools::tolerance(0.02));
}

BOOST_AUTO_TEST_CASE(events_run_in_order_of_time_and_of_coming) {
  EventQueue events;
  std::string order;
  const auto add = [&order](char c) { return [&order, c] { order += c; }; };
  events.after(std::chrono::seconds(2), add('c'));
  events.after(std::chrono::seconds(1), add('a'));
  events.after(std::chrono::seconds(1), add('b'));
  events.at(TimePoint{}, add('0'));  // long past: now
  const TimePoint start = events.now();
  events.run_until(start + std::chrono::seconds(1));
  BOOST_TEST(order == "0ab");
  BOOST_TEST((events.now() == start + std::chrono::seconds(1)));
  BOOST_TEST(events.run_one());
  BOOST_TEST(!events.run_one());
  BOOST_TEST(order == "0abc");
}

BOOST_AUTO_TEST_CASE(an_answer_depends_on_every_token_before_it) {
  const SimModel model;
  SamplingParams params;
  params.max_tokens = 20;
  params.ignore_eos = true;
  const std::vector<TokenId> prompt(40, 3);
  const Answer answer = answer_of(model, prompt, params, 1000);
  BOOST_TEST(answer.tokens.size() == 20U);
  for (size_t i = 0; i < prompt.size(); ++i) {
    std::vector<TokenId> other = prompt;
    other[i] = 4;
    BOOST_TEST((answer_of(model, other, params, 1000).tokens != answer.tokens), i);
  }
}

BOOST_AUTO_TEST_CASE(the_log_keeps_the_latest_events_and_the_first_broken_rule) {
  const ManualClock clock;
  EventLog log(clock), same(clock);
  for (uint64_t i = 0; i < 200; ++i) {
    log.note("counts", "node", i);
    same.note("counts", "node", i);
  }
  BOOST_TEST(log.latest().size() == kEventsShown);
  BOOST_TEST(log.latest().back().find("199") != std::string::npos);
  BOOST_TEST(log.digest() == same.digest());
  same.note("counts", "node");
  BOOST_TEST(log.digest() != same.digest());
  log.violate("first", "a");
  log.violate("second", "b");
  BOOST_TEST(log.violated_oracle() == "first");
}

// What the simulation is fast enough for: tests may use it freely.
BOOST_AUTO_TEST_CASE(a_thousand_requests_on_eight_workers_end_well_apart_and_together) {
  FLAGS_minloglevel = google::GLOG_ERROR;
  const auto policy = make_policy("least_ttft");
  RandomWorkloadOptions load;
  load.requests = 1000;
  load.window = std::chrono::seconds(20);
  load.vocabulary = 32000;
  const RandomWorkload workload(load);
  for (const uint32_t prefill : {0U, 4U}) {
    WorldOptions options;
    options.prefill = options.decode = prefill;
    options.mixed = prefill > 0 ? 0 : 8;
    options.worker.model.vocabulary = 32000;
    options.worker.cost = gpu_cost();
    const Outcome outcome = World(options, *policy.value(), workload).run();
    BOOST_TEST(outcome.violated_oracle.empty(), outcome.violation);
    BOOST_TEST(outcome.measured.completed == 1000U);
    BOOST_TEST((outcome.imports_whole > 0) == (prefill > 0));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::sim
