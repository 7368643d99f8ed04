#include "policies/routing/least_loaded.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

WorkerView worker(uint32_t id, bool accepting, uint32_t requests, uint64_t prompt_tokens) {
  WorkerView view;
  view.id = WorkerId(id);
  view.accepting = accepting;
  view.requests = requests;
  view.prompt_tokens = prompt_tokens;
  view.imports = true;
  return view;
}

WorkerView prefill_worker(uint32_t id, bool accepting, uint64_t queued_tokens,
                          double seconds_per_token) {
  WorkerView view;
  view.id = WorkerId(id);
  view.accepting = accepting;
  view.decodes = false;
  view.prefills = true;
  view.queued_tokens = queued_tokens;
  view.seconds_per_token = seconds_per_token;
  return view;
}

std::optional<RoutePlan> choose(const std::vector<WorkerView>& workers) {
  return LeastLoaded().decide({workers, 10});
}

BOOST_AUTO_TEST_SUITE(least_loaded)

BOOST_AUTO_TEST_CASE(takes_the_worker_with_the_fewest_requests_then_tokens_then_the_lowest_id) {
  BOOST_TEST(choose({worker(0, true, 3, 5), worker(1, true, 2, 900)})->decode == 1U);
  BOOST_TEST(choose({worker(0, true, 2, 900), worker(1, true, 2, 5)})->decode == 1U);
  BOOST_TEST(choose({worker(5, true, 2, 5), worker(4, true, 2, 5)})->decode == 1U);
}

BOOST_AUTO_TEST_CASE(never_takes_one_that_does_not_accept) {
  BOOST_TEST(choose({worker(0, false, 0, 0), worker(1, true, 9, 9)})->decode == 1U);
  BOOST_TEST(!choose({worker(0, false, 0, 0)}).has_value());
  BOOST_TEST(!choose({}).has_value());
  BOOST_TEST(!choose({prefill_worker(0, true, 0, 0.001)}).has_value());
}

BOOST_AUTO_TEST_CASE(names_the_prefill_worker_that_is_predicted_to_be_free_soonest) {
  const auto plan =
      choose({worker(0, true, 0, 0), prefill_worker(1, true, 1000, 0.002),
              prefill_worker(2, true, 1500, 0.001), prefill_worker(3, false, 0, 0.001)});
  BOOST_REQUIRE(plan.has_value());
  BOOST_TEST(plan->decode == 0U);
  BOOST_TEST(plan->prefill.value() == 2U);
  BOOST_TEST(plan->prefill_wait_seconds == 1.5);
}

BOOST_AUTO_TEST_CASE(names_no_prefill_worker_for_one_that_computes_its_prompts_itself) {
  WorkerView mixed = worker(0, true, 0, 0);
  mixed.imports = false;
  BOOST_TEST(!choose({mixed, prefill_worker(1, true, 0, 0.001)})->prefill.has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
