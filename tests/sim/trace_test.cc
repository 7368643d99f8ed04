#include "sim/trace.h"

#include <boost/test/unit_test.hpp>

#include <sstream>

#include "sim/report.h"

namespace troupe::sim {
namespace {

Result<Trace> read(const std::string& text) {
  std::istringstream in(text);
  return read_trace(in, "trace");
}

void refuses(const std::string& text, const std::string& part) {
  const auto trace = read(text);
  BOOST_REQUIRE(!trace.ok());
  BOOST_TEST((trace.status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST(trace.status().message().find(part) != std::string::npos, trace.status().message());
}

BOOST_AUTO_TEST_SUITE(trace)

BOOST_AUTO_TEST_CASE(reads_mooncake_and_shares_the_prefixes_that_its_hashes_share) {
  const auto trace =
      read(R"({"timestamp": 500, "input_length": 1030, "output_length": 3, "hash_ids": [0, 1, 2]})"
           "\n"
           R"({"timestamp": 3500, "input_length": 1100, "output_length": 0, "hash_ids": [0, 1, 5]})"
           "\n");
  BOOST_REQUIRE(trace.ok());
  const TraceWorkload workload(trace.value(), {});
  BOOST_REQUIRE(workload.size() == 2U);
  BOOST_TEST((workload.arrival(1) - workload.arrival(0) == std::chrono::seconds(3)));
  const SimRequest first = workload.make(0), second = workload.make(1);
  BOOST_TEST(first.prompt.size() == 1030U);
  BOOST_TEST(second.prompt.size() == 1100U);
  BOOST_TEST(std::equal(first.prompt.begin(), first.prompt.begin() + 1024, second.prompt.begin()));
  BOOST_TEST(
      !std::equal(first.prompt.begin() + 1024, first.prompt.end(), second.prompt.begin() + 1024));
  BOOST_TEST(first.choices[0].max_tokens == 3U);
  BOOST_TEST(second.choices[0].max_tokens == 1U);
  BOOST_TEST(trace->context_tokens() == 1102U);
}

BOOST_AUTO_TEST_CASE(reads_azure_burstgpt_and_bailian) {
  const auto azure = read(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 23:59:59.5000000,374,44\r\n"
      "2023-11-17 00:00:00.7500000+00:00,396,109\r\n");
  BOOST_REQUIRE(azure.ok());
  BOOST_TEST((azure->requests[1].arrival == std::chrono::milliseconds(1250)));
  BOOST_TEST(azure->requests[1].output_tokens == 109U);
  const auto burst = read(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n");
  BOOST_REQUIRE(burst.ok());
  BOOST_TEST((burst->requests[1].arrival == std::chrono::seconds(40)));
  BOOST_TEST(burst->requests[0].input_tokens == 472U);
  const auto bailian =
      read(R"({"chat_id": 1, "timestamp": 1.5, "input_length": 20, "output_length": 2,)"
           R"( "hash_ids": [7, 9]})");
  BOOST_REQUIRE(bailian.ok());
  BOOST_TEST(bailian->hash_tokens == 16U);
}

BOOST_AUTO_TEST_CASE(a_bad_trace_is_refused_by_line) {
  refuses("", "no request");
  refuses("a,b,c\n1,2,3\n", "trace:1");
  refuses("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,37x,44\n", "trace:2");
  refuses("TIMESTAMP,ContextTokens,GeneratedTokens\nnow,37,44\n", "trace:2");
  refuses(R"({"timestamp": 0, "input_length": 10})", "trace:1");
  refuses(R"({"timestamp": 0, "input_length": -1, "output_length": 1})", "trace:1");
  refuses(R"({"timestamp": 0, "input_length": 1e12, "output_length": 1})", "trace:1");
  refuses(R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": ["a"]})",
          "trace:1");
  refuses(R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [-1]})",
          "trace:1");
  refuses("Timestamp,Request tokens,Response tokens\nnan,1,1\n", "trace:2");
  refuses("Timestamp,Request tokens,Response tokens\n1,inf,1\n", "trace:2");
  refuses("Timestamp,Request tokens,Response tokens\n0,1,1\n1e12,1,1\n", "days apart");
  refuses("{\"timestamp\": 0, \"x\": \"" + std::string(kTraceLineBytesMax, 'x') + "\"}", "bytes");
  refuses(std::string(100000, '['), "trace:1");
  refuses("{" + std::string("\"a\":{").append(100, '{'), "trace:1");
}

BOOST_AUTO_TEST_CASE(percentiles_are_those_of_the_values) {
  std::vector<float> values;
  for (int i = 100; i >= 0; --i) values.push_back(static_cast<float>(i));
  const Percentiles result = percentiles_of(values);
  BOOST_TEST(result.p50 == 50.0);
  BOOST_TEST(result.p90 == 90.0);
  BOOST_TEST(result.p99 == 99.0);
  BOOST_TEST(result.most == 100.0);
  BOOST_TEST(result.mean == 50.0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::sim
