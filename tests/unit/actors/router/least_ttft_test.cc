#include "policies/routing/least_ttft.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

WorkerView decode(uint32_t id, uint32_t requests = 0, uint32_t cached = 0) {
  WorkerView view;
  view.id = WorkerId(id);
  view.accepting = true;
  view.imports = view.exports = true;
  view.requests = requests;
  view.cached_tokens = cached;
  view.seconds_per_token = 0.001;
  return view;
}

WorkerView prefill(uint32_t id, uint64_t queued = 0, uint32_t cached = 0) {
  WorkerView view;
  view.id = WorkerId(id);
  view.accepting = true;
  view.decodes = false;
  view.prefills = true;
  view.queued_tokens = queued;
  view.cached_tokens = cached;
  view.seconds_per_token = 0.001;
  return view;
}

WorkerView mixed(uint32_t id, uint32_t requests = 0, uint32_t cached = 0) {
  WorkerView view = decode(id, requests, cached);
  view.imports = view.exports = false;
  return view;
}

RoutePlan plan(const std::vector<WorkerView>& workers, uint32_t prompt_tokens = 1000) {
  return LeastTtft().decide({workers, prompt_tokens}).value();
}

BOOST_AUTO_TEST_SUITE(least_ttft)

BOOST_AUTO_TEST_CASE(a_long_prompt_goes_to_the_prefill_worker_that_is_through_soonest) {
  BOOST_TEST(plan({decode(0), prefill(1, 500), prefill(2, 100)}).prefill.value() == 2U);
  // Unless another has so much of it that its queue does not matter.
  BOOST_TEST(plan({decode(0), prefill(1, 500, 800), prefill(2, 100)}).prefill.value() == 1U);
}

BOOST_AUTO_TEST_CASE(a_worker_that_has_computed_nothing_yet_is_tried) {
  WorkerView fast = prefill(1, 500), fresh = prefill(2);
  fast.seconds_per_token = 0.00001;  // far faster than what is assumed while nothing is known
  fresh.seconds_per_token = 0.0;
  WorkerView to = decode(0);
  to.seconds_per_token = 0.00001;
  to.requests = 100;
  BOOST_TEST(plan({to, fast, fresh}, 10000).prefill.value() == 2U);
}

BOOST_AUTO_TEST_CASE(a_short_prompt_is_computed_where_it_is_decoded) {
  BOOST_TEST(!plan({decode(0), prefill(1)}, 5).prefill.has_value());
  BOOST_TEST(plan({decode(0), prefill(1)}, 50).prefill.has_value());
  BOOST_TEST(!plan({decode(0), prefill(1)}, 1).prefill.has_value());
}

BOOST_AUTO_TEST_CASE(a_long_queue_at_all_prefill_workers_is_passed_by) {
  BOOST_TEST(!plan({decode(0), prefill(1, 5000)}).prefill.has_value());
  BOOST_TEST(plan({decode(0, 8), prefill(1, 5000)}).prefill.has_value());  // eight would wait
}

BOOST_AUTO_TEST_CASE(decodes_where_the_prefix_is_cached_unless_that_worker_is_much_busier) {
  BOOST_TEST(plan({mixed(0, 0), mixed(1, 2, 900)}).decode == 1U);
  BOOST_TEST(plan({mixed(0, 0), mixed(1, 3, 900)}).decode == 0U);
  BOOST_TEST(plan({mixed(0, 40), mixed(1, 50, 900)}).decode == 1U);
  BOOST_TEST(plan({mixed(0, 1), mixed(1, 0)}).decode == 1U);
  BOOST_TEST(plan({mixed(3, 1), mixed(2, 1)}).decode == 1U);
}

BOOST_AUTO_TEST_CASE(a_prefix_that_a_busy_decode_worker_holds_is_fetched_from_it) {
  const RoutePlan fetched = plan({decode(0, 0), decode(1, 9, 992), prefill(2)});
  BOOST_TEST(fetched.decode == 0U);
  BOOST_TEST(fetched.prefill.value() == 1U);
  BOOST_TEST(fetched.prefill_tokens == 992U);
  // One that holds no more than what is here has nothing to give.
  BOOST_TEST(!plan({decode(0, 0, 992), decode(1, 9, 992)}).prefill.has_value());
  // Never more than there is to have.
  BOOST_TEST(plan({decode(0, 0), decode(1, 9, 1008), prefill(2)}, 1005).prefill_tokens == 1004U);
}

BOOST_AUTO_TEST_CASE(never_takes_one_that_does_not_accept) {
  WorkerView away = prefill(1);
  away.accepting = false;
  BOOST_TEST(!plan({decode(0), away}).prefill.has_value());
  WorkerView gone = decode(0);
  gone.accepting = false;
  BOOST_TEST(!LeastTtft().decide({std::vector{gone, prefill(1)}, 10}).has_value());
  BOOST_TEST(!LeastTtft().decide({{}, 10}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
