#include "actors/wire/codec.h"

#include <boost/test/unit_test.hpp>

#include "base/philox.h"

namespace troupe::wire {
namespace {

TimePoint at(int64_t ns) {
  return TimePoint(Duration(ns));
}

SamplingParams full_params() {
  SamplingParams params;
  params.temperature = 0.7F;
  params.top_k = 40;
  params.top_p = 0.9F;
  params.min_p = 0.05F;
  params.repetition_penalty = 1.1F;
  params.presence_penalty = -0.5F;
  params.frequency_penalty = 0.25F;
  params.logit_bias = {{3, -100.0F}, {17, 2.5F}};
  params.seed = 0xfedcba9876543210;
  params.stop_token_ids = {2, 5};
  params.ignore_eos = true;
  params.min_tokens = 3;
  params.max_tokens = 99;
  params.logprobs = 5;
  params.prompt_logprobs = 0;
  params.grammar = {GrammarKind::kJsonSchema, R"({"type":"object"})"};
  params.score_from = 7;
  params.pooling = Pooling::kLast;
  params.allowed_tokens = {4, 6};
  params.bad_words = {{7}, {8, 9, 8}};
  return params;
}

Request full_request() {
  return {RequestId(7),
          "client's \"name\"",
          "gateway",
          {1, 2, 49151},
          {{SequenceId(8), full_params()}, {SequenceId(9), {}}},
          "salt",
          at(123456789),
          "digest"};
}

Load full_load() {
  return {3, 4, 5000, 1000, 17, 0.25, 0.125};
}

Heartbeat full_heartbeat() {
  return {WorkerId(3),
          12,
          true,
          std::chrono::milliseconds(999),
          "10.0.0.7:7000/worker",
          Role::kDecode,
          true,
          true,
          "digest",
          8192,
          full_load(),
          "smol",
          KvType::kF32};
}

WorkerStatus full_worker_status() {
  return {WorkerId(3), "10.0.0.7:7000/worker",        Role::kPrefill, true,     "ready", 12,
          6,           std::chrono::milliseconds(40), full_load(),    "digest", "smol"};
}

std::vector<Message> every_message() {
  Emission emission;
  emission.request = RequestId(7);
  emission.sequence = SequenceId(8);
  emission.attempt = 2;
  emission.first_index = 11;
  emission.cached_tokens = 3;
  emission.tokens = {{5, -0.5F, {{5, -0.5F}, {6, -1.5F}}}, {6, -2.0F, {}}};
  emission.first_score = 4;
  emission.prompt_scores = {{9, -3.0F, {}}};
  emission.embedding = {0.25F, -1.5F};
  End end;
  end.reason = FinishReason::kLength;
  end.stop_token = 2;
  end.prompt_tokens = 10;
  end.cached_tokens = 4;
  end.output_tokens = 13;
  emission.stops = {{Stop::kReserved, at(6)}, {Stop::kFinished, at(9)}};
  emission.compute = Duration(123456);
  emission.end = end;
  Emission failed;
  failed.request = RequestId(1);
  failed.end = End{};
  failed.end->error = {StatusCode::kContextLength, "too long", "prompt"};
  return {Accepted{full_request()},
          Routed{full_request(), 3, "10.0.0.7:7000/worker", std::chrono::milliseconds(250),
                 "10.0.0.7:7000/router", 77},
          Rejected{RequestId(7),
                   1,
                   {StatusCode::kResourceExhausted, "full", ""},
                   std::chrono::milliseconds(1500)},
          Cancelled{RequestId(7), {SequenceId(8), SequenceId(9)}},
          Cancelled{RequestId(7), {}},
          Emitted{WorkerId(3), 77, at(1), at(2), at(3), {emission, failed, Emission{}}},
          Finished{RequestId(7), 2, WorkerId(3)},
          full_heartbeat(),
          Health{false, "no worker", {full_worker_status(), WorkerStatus{}}, 9},
          Reserved{RequestId(7),
                   2,
                   "10.0.0.7:7000/worker",
                   {0xfedcba9876543210, 7, (uint64_t{2} << 32) | 5},
                   {1, 2, 49151},
                   "salt",
                   3,
                   std::chrono::milliseconds(1500),
                   30,
                   12288,
                   "digest",
                   15,
                   512,
                   KvType::kInt8},
          Prefilled{0xfedcba9876543210,
                    {StatusCode::kUnavailable, "the device failed", ""},
                    32,
                    at(5),
                    at(6),
                    at(7)},
          Released{0xfedcba9876543210},
          Refused{"model: this cluster has X, the worker has Y"},
          Observe{"10.0.0.7:7002/monitor"},
          Describe{"10.0.0.7:7000/models"},
          Described{"digest",
                    "SmolLM2",
                    8192,
                    {std::byte{'G'}, std::byte{0}, std::byte{255}},
                    {"smol", "a second name"}}};
}

BOOST_AUTO_TEST_SUITE(codec)

BOOST_AUTO_TEST_CASE(every_message_comes_back_as_it_was) {
  for (const Message& message : every_message()) {
    const auto decoded = decode(encode(message));
    BOOST_REQUIRE_MESSAGE(decoded.ok(), decoded.status().message());
    BOOST_TEST((decoded.value() == message), "message of kind " << message.index());
  }
}

BOOST_AUTO_TEST_CASE(a_message_cut_short_anywhere_is_an_error_or_reads_without_its_end) {
  for (const Message& message : every_message()) {
    const MessageWords words = encode(message);
    for (size_t keep = 0; keep < words.size(); ++keep) {
      const auto decoded = decode(MessageWords(words.begin(), words.begin() + keep));
      BOOST_TEST(!decoded.ok());
    }
  }
}

BOOST_AUTO_TEST_CASE(no_corrupted_message_ends_the_process) {
  size_t refused = 0;
  for (const Message& message : every_message()) {
    const MessageWords words = encode(message);
    for (uint64_t i = 0; i < 2000; ++i) {
      MessageWords bad = words;
      const uint64_t random = philox_u64(message.index(), i, 0);
      bad[random % bad.size()] ^= uint64_t{1} << (random >> 32) % 64;
      if (!decode(bad).ok()) ++refused;
    }
  }
  BOOST_TEST(refused > 0U);
}

BOOST_AUTO_TEST_CASE(a_large_prompt_fits) {
  Accepted accepted{full_request()};
  accepted.request.prompt.assign(200000, 42);
  const auto decoded = decode(encode(accepted));
  BOOST_REQUIRE(decoded.ok());
  BOOST_TEST((decoded.value() == Message(accepted)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::wire
