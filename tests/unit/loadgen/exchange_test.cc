#include "loadgen/exchange.h"

#include <boost/test/unit_test.hpp>

namespace troupe::loadgen {
namespace {

using std::chrono::milliseconds;

constexpr const char* kRole = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
constexpr const char* kText = "data: {\"choices\":[{\"delta\":{\"content\":\"ab\"}}]}\n\n";
constexpr const char* kStop =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
constexpr const char* kUsage =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n";
constexpr const char* kDone = "data: [DONE]\n\n";

struct Asked {
  ManualClock clock;
  TimePoint began = clock.now();
  RequestRecord record;
  Exchange exchange{clock, began, record};

  Asked() {
    clock.advance(milliseconds(1000));
    record.start = milliseconds(1000);
    record.prompt_tokens_aimed = 5;
    exchange.on_head(200, std::nullopt);
  }
  bool after(int ms, const std::string& bytes) {
    clock.advance(milliseconds(ms));
    return exchange.on_bytes(bytes);
  }
  void failed_as(const std::string& kind) {
    BOOST_TEST((record.ending == Ending::kFailed));
    BOOST_TEST(record.error == kind);
    BOOST_TEST(!record.detail.empty());
  }
};

BOOST_AUTO_TEST_SUITE(exchange)

BOOST_AUTO_TEST_CASE(times_are_those_of_chunks_with_choices) {
  Asked asked;
  BOOST_TEST(asked.after(100, kRole));
  BOOST_TEST(asked.after(50, kText));
  BOOST_TEST(asked.after(30, kText));
  BOOST_TEST(asked.after(20, kStop));
  BOOST_TEST(asked.after(500, std::string(kUsage) + kDone));
  asked.exchange.on_end(std::nullopt);
  const RequestRecord& record = asked.record;
  BOOST_TEST((record.ending == Ending::kOk));
  BOOST_TEST((record.ttft() == milliseconds(100)));
  BOOST_TEST((record.first_text == milliseconds(150)));
  BOOST_TEST((record.latency() == milliseconds(200)));
  BOOST_TEST(record.chunks.size() == 4U);
  BOOST_TEST(record.output_tokens == 4U);
  BOOST_TEST(record.prompt_tokens == 9U);
  BOOST_TEST((record.token_source == TokenSource::kUsage));
  BOOST_TEST((record.end == milliseconds(1700)));
  BOOST_TEST(asked.exchange.text() == "abab");
}

BOOST_AUTO_TEST_CASE(without_usage_chunks_with_text_are_counted) {
  Asked asked;
  static_cast<void>(asked.exchange.on_bytes(std::string(kRole) + kText + kText + kStop));
  asked.exchange.on_end(std::nullopt);  // finish_reason is enough where [DONE] lacks
  BOOST_TEST((asked.record.ending == Ending::kOk));
  BOOST_TEST(asked.record.output_tokens == 2U);
  BOOST_TEST(asked.record.prompt_tokens == 5U);
  BOOST_TEST((asked.record.token_source == TokenSource::kChunks));
}

BOOST_AUTO_TEST_CASE(a_stream_that_stops_in_the_middle_has_failed) {
  Asked cut;
  static_cast<void>(cut.exchange.on_bytes(kText));
  cut.exchange.on_end(std::nullopt);
  cut.failed_as("cut");
  Asked reset;
  static_cast<void>(reset.exchange.on_bytes(std::string(kText) + kStop));
  reset.exchange.on_end("connection reset by peer");
  reset.failed_as("cut");
  Asked empty;
  static_cast<void>(empty.exchange.on_bytes(kDone));
  empty.exchange.on_end(std::nullopt);
  empty.failed_as("no chunk");
}

BOOST_AUTO_TEST_CASE(what_is_no_chunk_ends_the_request_at_once) {
  Asked malformed;
  BOOST_TEST(!malformed.exchange.on_bytes("data: {oops\n\n"));
  malformed.failed_as("malformed event");
  BOOST_TEST(!malformed.exchange.on_bytes(kText));
  malformed.exchange.on_end(std::nullopt);
  malformed.failed_as("malformed event");
  Asked error;
  BOOST_TEST(!error.exchange.on_bytes("data: {\"error\":{\"message\":\"worker lost\"}}\n\n"));
  error.failed_as("error event");
  BOOST_TEST(error.record.detail == "worker lost");
}

BOOST_AUTO_TEST_CASE(a_refusal_is_told_by_its_status_and_words) {
  Asked asked;
  asked.exchange.on_head(429, 2.5);
  static_cast<void>(asked.exchange.on_bytes("{\"error\":{\"message\":"));
  static_cast<void>(asked.exchange.on_bytes("\"queue full\"}}"));
  asked.exchange.on_end(std::nullopt);
  asked.failed_as("http 429");
  BOOST_TEST(asked.record.detail == "queue full");
  BOOST_TEST(asked.exchange.is_refused_for_now());
  BOOST_TEST(asked.exchange.retry_after_s().value() == 2.5);
}

BOOST_AUTO_TEST_CASE(no_answer_and_a_late_one_are_failures_of_their_own) {
  ManualClock clock;
  RequestRecord refused, silent, late;
  Exchange(clock, clock.now(), refused).on_end("connect(): Connection refused");
  BOOST_TEST(refused.error == "connection refused");
  Exchange(clock, clock.now(), silent).on_end("peer disconnected");
  BOOST_TEST(silent.error == "no answer");
  Exchange third(clock, clock.now(), late);
  third.on_timeout(std::chrono::seconds(2));
  BOOST_TEST(late.error == "timeout");
  third.on_end(std::nullopt);
  BOOST_TEST(late.error == "timeout");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::loadgen
