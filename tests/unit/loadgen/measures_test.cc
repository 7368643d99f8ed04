#include "loadgen/measures.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

#include "loadgen/client_health.h"

namespace troupe::loadgen {
namespace {

using std::chrono::milliseconds;

RequestRecord answered(milliseconds start, std::vector<int> chunks_ms, uint32_t tokens) {
  RequestRecord record;
  record.start = record.scheduled = start;
  for (const int at : chunks_ms) record.chunks.emplace_back(milliseconds(at));
  record.first_text = record.chunks.front();
  record.prompt_tokens = 10;
  record.output_tokens = tokens;
  record.token_source = TokenSource::kUsage;
  record.ending = Ending::kOk;
  return record;
}

void refuses(const std::vector<std::string>& slos) {
  const auto parsed = parse_slos(slos);
  BOOST_REQUIRE(!parsed.ok());
  BOOST_TEST(parsed.status().message().find("--slo") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE(measures)

BOOST_AUTO_TEST_CASE(percentiles_lie_between_the_nearest_values) {
  BOOST_TEST(percentile({}, 50) == 0.0);
  BOOST_TEST(percentile({7}, 99) == 7.0);
  const std::vector<double> values = {1, 2, 3, 4};
  BOOST_TEST(percentile(values, 0) == 1.0);
  BOOST_TEST(percentile(values, 100) == 4.0);
  BOOST_TEST(percentile(values, 50) == 2.5);
  BOOST_TEST(percentile(values, 90) == 3.7, boost::test_tools::tolerance(1e-12));
  const Summary summary = summarize({4, 1, 3, 2});
  BOOST_TEST(summary.mean == 2.5);
  BOOST_TEST(summary.std == std::sqrt(1.25), boost::test_tools::tolerance(1e-12));
  BOOST_TEST(summary.least == 1.0);
  BOOST_TEST(summary.most == 4.0);
}

BOOST_AUTO_TEST_CASE(the_definitions_are_those_of_the_formulas) {
  std::deque<RequestRecord> records;
  records.push_back(answered(milliseconds(0), {100, 120, 160}, 3));
  records.push_back(answered(milliseconds(500), {200, 300}, 5));  // two tokens in some chunks
  records.push_back(answered(milliseconds(1100), {50}, 1));       // no TPOT
  records.push_back(answered(milliseconds(1200), {70, 80}, 0));   // none either
  RequestRecord& failed = records.emplace_back();
  failed.ending = Ending::kFailed;
  failed.error = "http 500";
  failed.detail = "oh";
  failed.tries = 3;
  records.emplace_back().ending = Ending::kCancelled;
  const Measures m = measure(records, std::chrono::seconds(2), {});
  BOOST_TEST(m.completed == 4U);
  BOOST_TEST(m.failed == 1U);
  BOOST_TEST(m.cancelled == 1U);
  BOOST_TEST(m.retries == 2U);
  BOOST_TEST(m.errors.at("http 500").sample == "oh");
  BOOST_TEST(m.input_tokens == 40U);
  BOOST_TEST(m.output_tokens == 9U);
  BOOST_TEST(m.requests_per_s == 2.0);
  BOOST_TEST(m.output_tokens_per_s == 4.5);
  BOOST_TEST(m.total_tokens_per_s == 24.5);
  BOOST_TEST(m.ttft.mean == 105.0);
  BOOST_TEST(m.e2el.mean == 147.5);
  BOOST_TEST(m.tpot.count == 2U);
  BOOST_TEST(m.tpot.mean == 27.5);  // (60 / 2 + 100 / 4) / 2
  BOOST_TEST(m.itl.count == 4U);    // pooled: 20, 40, 100, 10
  BOOST_TEST(m.itl.mean == 42.5);
  BOOST_TEST(m.peak_concurrency == 1U);
  BOOST_TEST(m.peak_output_tokens_per_s == 5.0);  // chunks in the first second
  BOOST_TEST(m.goodput_per_s == 0.0);
}

BOOST_AUTO_TEST_CASE(who_leaves_in_the_instant_of_an_arrival_is_gone) {
  std::deque<RequestRecord> records;
  records.push_back(answered(milliseconds(0), {100}, 1));
  records.push_back(answered(milliseconds(100), {100}, 1));
  records.push_back(answered(milliseconds(150), {100}, 1));
  BOOST_TEST(measure(records, std::chrono::seconds(1), {}).peak_concurrency == 2U);
}

BOOST_AUTO_TEST_CASE(goodput_counts_who_keeps_every_slo) {
  std::deque<RequestRecord> records;
  records.push_back(answered(milliseconds(0), {100, 120, 160}, 3));  // TPOT 30
  records.push_back(answered(milliseconds(0), {100, 400}, 2));       // TPOT 300
  records.push_back(answered(milliseconds(0), {101}, 1));            // TPOT counts as 0
  const auto good = [&](const std::vector<std::string>& slos) {
    return measure(records, std::chrono::seconds(2), parse_slos(slos).value()).good;
  };
  BOOST_TEST(good({"ttft:100"}) == 2U);
  BOOST_TEST(good({"tpot:30"}) == 2U);
  BOOST_TEST(good({"ttft:100", "tpot:30"}) == 1U);
  BOOST_TEST(good({"e2el:399.9"}) == 2U);
  BOOST_TEST(
      measure(records, std::chrono::seconds(2), parse_slos({"ttft:200"}).value()).goodput_per_s ==
      1.5);
}

BOOST_AUTO_TEST_CASE(slos_that_say_nothing_are_refused) {
  for (const char* bad : {"", "ttft", "ttft:", "ttft:x", "ttft:-1", "ttft:0", "ttft:nan",
                          "ttft:inf", "itl:5", "ttft:5ms"}) {
    refuses({bad});
  }
  refuses({"ttft:1", "ttft:2"});
}

BOOST_AUTO_TEST_CASE(a_client_that_is_late_or_busy_says_so) {
  Measures measures;
  measures.ttft = summarize({40, 50, 60});
  measures.tpot = summarize({9, 10, 11});
  const auto reasons = [&](std::vector<double> lag, double share, std::vector<double> late) {
    return judge({std::move(lag), share, std::move(late)}, measures).reasons.size();
  };
  BOOST_TEST(reasons({0.1, 1.2}, 0.3, {0.5, 2}) == 0U);
  BOOST_TEST(reasons({8, 9}, 0.3, {}) == 1U);
  BOOST_TEST(reasons({0.1}, 0.99, {}) == 1U);
  BOOST_TEST(reasons({0.1}, 0.3, {30, 40}) == 1U);
  measures.ttft = summarize({5000});
  measures.tpot = summarize({400});
  BOOST_TEST(reasons({8, 9}, 0.3, {30, 40}) == 0U);  // late, but against nothing to speak of
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::loadgen
