#include "actors/gateway/openai/generation_run.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/gateway/openai/json_answer.h"
#include "engine/tokenizer/utf8.h"
#include "tests/unit/actors/gateway/openai/fake_generator.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe {
namespace {

using namespace test;
using Json = nlohmann::json;

struct RecordingSink final : JsonSink {
  std::vector<Json> events;
  std::optional<std::string> body;
  std::optional<Status> error;

  void on_event(std::string_view json) override {
    BOOST_REQUIRE(!body && !error);
    events.push_back(Json::parse(json));  // throws unless it is strict JSON
  }
  void on_end(std::string answer) override {
    BOOST_REQUIRE(!body && !error);
    body = std::move(answer);
  }
  void on_error(const Status& status) override {
    BOOST_REQUIRE(!body && !error);
    error = status;
  }
  [[nodiscard]] Json answer() const { return Json::parse(body.value()); }

  // The joined deltas of one choice.
  [[nodiscard]] std::string text(uint32_t index = 0) const {
    std::string out;
    for (const Json& event : events) {
      for (const Json& choice : event["choices"]) {
        if (choice["index"] != index) continue;
        if (choice.contains("text")) out += choice["text"].get<std::string>();
        if (choice.contains("delta")) out += choice["delta"].value("content", "");
      }
    }
    return out;
  }
};

struct Fixture {
  TinyModel model;
  FakeGenerator generator;
  RecordingSink sink;
  std::unique_ptr<JsonAnswer> answer;
  std::unique_ptr<GenerationRun> run;

  Status begin(Result<GenerationBody> body) {
    BOOST_REQUIRE_MESSAGE(body.ok(), body.status().message());
    auto prepared = prepare_request(std::move(body).value(), model.catalogue().at(0), 0);
    BOOST_REQUIRE_MESSAGE(prepared.ok(), prepared.status().message());
    const RunIdentity identity{"id-1", "label", "tiny", 1700000000, 99};
    answer = std::make_unique<JsonAnswer>(prepared->body, identity, model.tokenizer(), sink);
    run =
        std::make_unique<GenerationRun>(std::move(prepared).value(), identity, generator, *answer);
    return run->start();
  }
  Status chat(const std::string& fields = "") {
    return begin(parse_chat_body(
        R"({"model":"tiny","messages":[{"role":"user","content":"hi"}])" + fields + "}",
        model.catalogue().rules()));
  }
  Status completion(const std::string& fields) {
    return begin(
        parse_completions_body(R"({"model":"tiny",)" + fields + "}", model.catalogue().rules()));
  }
};

#define REQUIRE_OK(expression)                                \
  do {                                                        \
    const Status required = (expression);                     \
    BOOST_REQUIRE_MESSAGE(required.ok(), required.message()); \
  } while (false)

BOOST_FIXTURE_TEST_CASE(a_chat_answer_has_openais_shape, Fixture) {
  REQUIRE_OK(chat());
  generator.token(1, kHello);
  generator.token(1, kWorld);
  generator.token(1, kImEnd);
  BOOST_TEST(!sink.body);
  generator.finish(1, FinishReason::kStop, 0, 16);
  const size_t prompt_tokens = generator.entry(1).request.prompt.size();
  const Json expected = {
      {"id", "id-1"},
      {"object", "chat.completion"},
      {"created", 1700000000},
      {"model", "tiny"},
      {"choices",
       {{{"index", 0},
         {"message", {{"role", "assistant"}, {"content", "Hello world"}, {"refusal", nullptr}}},
         {"logprobs", nullptr},
         {"finish_reason", "stop"}}}},
      {"usage",
       {{"prompt_tokens", prompt_tokens},
        {"completion_tokens", 3},
        {"total_tokens", prompt_tokens + 3},
        {"prompt_tokens_details", {{"cached_tokens", 16}}}}}};
  BOOST_TEST(sink.answer() == expected);
  BOOST_TEST(run->ended());
}

BOOST_FIXTURE_TEST_CASE(a_chat_stream_starts_with_the_role_and_ends_with_the_reason, Fixture) {
  REQUIRE_OK(chat(R"(,"stream":true,"stream_options":{"include_usage":true})"));
  generator.token(1, kHello);
  generator.token(1, kWorld);
  generator.finish(1, FinishReason::kLength);
  BOOST_REQUIRE(sink.events.size() == 5U);
  for (size_t i = 0; i < 5; ++i) {
    BOOST_TEST(sink.events[i]["id"] == "id-1");
    BOOST_TEST(sink.events[i]["object"] == "chat.completion.chunk");
    BOOST_TEST(sink.events[i]["created"] == 1700000000);
    if (i < 4) BOOST_TEST(sink.events[i]["usage"].is_null());
    if (i < 3) BOOST_TEST(sink.events[i]["choices"][0]["finish_reason"].is_null());
  }
  BOOST_TEST(sink.events[0]["choices"][0]["delta"] ==
             (Json{{"role", "assistant"}, {"content", ""}}));
  BOOST_TEST(sink.events[1]["choices"][0]["delta"] == (Json{{"content", "Hello"}}));
  BOOST_TEST(sink.events[3]["choices"][0]["delta"] == Json::object());
  BOOST_TEST(sink.events[3]["choices"][0]["finish_reason"] == "length");
  BOOST_TEST(sink.events[4]["choices"] == Json::array());
  BOOST_TEST(sink.events[4]["usage"]["completion_tokens"] == 2);
  BOOST_TEST(sink.body.value().empty());
}

BOOST_FIXTURE_TEST_CASE(usage_is_not_sent_unless_asked_for, Fixture) {
  REQUIRE_OK(chat(R"(,"stream":true)"));
  generator.token(1, kHello);
  generator.finish(1, FinishReason::kLength);
  BOOST_TEST(sink.events.size() == 3U);
  for (const Json& event : sink.events) BOOST_TEST(!event.contains("usage"));
}

BOOST_FIXTURE_TEST_CASE(continuous_usage_counts_with_each_event, Fixture) {
  REQUIRE_OK(chat(
      R"(,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true})"));
  generator.token(1, kHello);
  generator.token(1, kWorld);
  BOOST_TEST(sink.events[1]["usage"]["completion_tokens"] == 1);
  BOOST_TEST(sink.events[2]["usage"]["completion_tokens"] == 2);
  BOOST_TEST(sink.events[2]["usage"]["prompt_tokens_details"].is_null());
}

BOOST_FIXTURE_TEST_CASE(nothing_is_sent_for_held_back_text_until_it_is_certain, Fixture) {
  REQUIRE_OK(chat(R"(,"stream":true)"));
  generator.token(1, kOtter);
  BOOST_TEST(sink.events.size() == 1U);  // the role
  generator.token(1, kOtterTail);
  BOOST_TEST(sink.text() == "\xF0\x9F\xA6\xA6!");
}

BOOST_FIXTURE_TEST_CASE(a_stop_string_ends_its_choice_and_cancels_it, Fixture) {
  REQUIRE_OK(chat(R"(,"stop":["lo wor"],"n":2)"));
  generator.token(1, kHello, 0);
  generator.token(1, kWorld, 0);
  BOOST_TEST(generator.entry(1).cancelled_choices.contains(0));
  BOOST_TEST(generator.is_open(1, 1));
  generator.token(1, kHello, 1);
  generator.finish(1, FinishReason::kLength, 1);
  const Json answer = sink.answer();
  BOOST_TEST(answer["choices"][0]["message"]["content"] == "Hel");
  BOOST_TEST(answer["choices"][0]["finish_reason"] == "stop");
  BOOST_TEST(answer["choices"][1]["message"]["content"] == "Hello");
  BOOST_TEST(answer["choices"][1]["finish_reason"] == "length");
  BOOST_TEST(answer["usage"]["completion_tokens"] == 3);
}

BOOST_FIXTURE_TEST_CASE(tokens_behind_a_stop_string_in_one_step_are_not_counted, Fixture) {
  REQUIRE_OK(chat(R"(,"stop":"b","logprobs":true)"));
  std::vector<SampledToken> tokens;
  for (const char c : std::string("abc")) tokens.push_back({static_cast<uint8_t>(c), -1.0F, {}});
  generator.tokens(1, tokens);
  const Json answer = sink.answer();
  BOOST_TEST(answer["choices"][0]["message"]["content"] == "a");
  BOOST_TEST(answer["usage"]["completion_tokens"] == 2);
  BOOST_TEST(answer["choices"][0]["logprobs"]["content"].size() == 2U);
  BOOST_TEST(answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 1);
}

// The text before the first occurrence, streamed and not, for every substring as the stop.
BOOST_FIXTURE_TEST_CASE(every_substring_as_stop_cuts_streams_and_answers_alike, Fixture) {
  const std::string text = "one two, one \xC3\xA9t\xC3\xA9 two.";
  for (size_t start = 0; start < text.size(); ++start) {
    for (size_t length = 2; length <= 8 && start + length <= text.size(); ++length) {
      const std::string stop = text.substr(start, length);
      if (find_invalid_utf8(stop)) continue;
      const std::string expected = text.substr(0, text.find(stop));
      for (const bool stream : {false, true}) {
        sink = RecordingSink();
        const Json fields = {{"stop", stop}, {"stream", stream}};
        const std::string dump = fields.dump();
        REQUIRE_OK(chat("," + dump.substr(1, dump.size() - 2)));
        const uint64_t id = generator.next_id - 1;
        generator.text(id, text);
        generator.finish(id, FinishReason::kLength);
        BOOST_REQUIRE(sink.body);
        BOOST_TEST((stream
                        ? sink.text()
                        : sink.answer()["choices"][0]["message"]["content"].get<std::string>()) ==
                   expected);
        BOOST_TEST((stream ? sink.events.back() : sink.answer())["choices"][0]["finish_reason"] ==
                   "stop");
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(held_back_text_is_flushed_at_another_end, Fixture) {
  REQUIRE_OK(chat(R"(,"stop":["Hello!"],"stream":true)"));
  generator.token(1, kHello);
  BOOST_TEST(sink.text() == "");
  generator.finish(1, FinishReason::kStop);
  BOOST_TEST(sink.text() == "Hello");
}

BOOST_FIXTURE_TEST_CASE(the_stop_string_is_included_when_asked_for, Fixture) {
  REQUIRE_OK(chat(R"(,"stop":["lo"],"include_stop_str_in_output":true)"));
  generator.token(1, kHello);
  BOOST_TEST(sink.answer()["choices"][0]["message"]["content"] == "Hello");
}

BOOST_FIXTURE_TEST_CASE(chat_logprobs_have_bytes_and_one_entry_per_token, Fixture) {
  REQUIRE_OK(chat(R"(,"logprobs":true,"top_logprobs":2,"stream":true)"));
  generator.tokens(1, {{kOtter, -0.25F, {{kOtter, -0.25F}, {'x', -1e-5F}}}});
  generator.tokens(1, {{kImEnd, -INFINITY, {}}});
  generator.finish(1, FinishReason::kStop);
  Json entries = Json::array();
  for (const Json& event : sink.events) {
    const Json& logprobs = event["choices"][0]["logprobs"];
    if (logprobs.is_null()) continue;
    for (const Json& entry : logprobs["content"]) entries.push_back(entry);
  }
  BOOST_REQUIRE(entries.size() == 2U);
  BOOST_TEST(entries[0]["token"] == "\xEF\xBF\xBD");
  BOOST_TEST(entries[0]["bytes"] == (Json{0xF0, 0x9F, 0xA6}));
  BOOST_TEST(entries[0]["logprob"] == -0.25);
  BOOST_TEST(entries[0]["top_logprobs"].size() == 2U);
  BOOST_TEST(entries[0]["top_logprobs"][1]["token"] == "x");
  BOOST_TEST(entries[0]["top_logprobs"][1]["logprob"] == Json::parse("-1e-05"));
  BOOST_TEST(entries[1]["token"] == "<|im_end|>");
  BOOST_TEST(entries[1]["logprob"] == -9999.0);
}

BOOST_FIXTURE_TEST_CASE(completion_logprobs_have_names_values_and_offsets, Fixture) {
  REQUIRE_OK(completion(R"("prompt":"p","logprobs":2)"));
  generator.tokens(1, {{kHello, -0.5F, {{kHello, -0.5F}, {kOtter, -2.0F}}}});
  generator.tokens(1, {{kOtter, -1.0F, {}}, {kOtterTail, -1.5F, {}}, {'z', -3.0F, {}}});
  generator.finish(1, FinishReason::kLength);
  const Json choice = sink.answer()["choices"][0];
  BOOST_TEST(sink.answer()["object"] == "text_completion");
  BOOST_TEST(choice["text"] == "Hello\xF0\x9F\xA6\xA6!z");
  const Json expected = {{"tokens", {"Hello", "bytes:\\xf0\\x9f\\xa6", "bytes:\\xa6\\x21", "z"}},
                         {"token_logprobs", {-0.5, -1.0, -1.5, -3.0}},
                         {"top_logprobs",
                          {{{"Hello", -0.5}, {"bytes:\\xf0\\x9f\\xa6", -2.0}},
                           Json::object(),
                           Json::object(),
                           Json::object()}},
                         {"text_offset", {0, 5, 5, 7}}};
  BOOST_TEST(choice["logprobs"] == expected);
}

BOOST_FIXTURE_TEST_CASE(echo_puts_the_prompt_and_its_scores_first, Fixture) {
  REQUIRE_OK(completion(R"("prompt":[258,259],"echo":true,"logprobs":1,"n":2)"));
  const auto& choices = generator.entry(1).request.choices;
  BOOST_TEST(choices[0].prompt_logprobs == 1);
  BOOST_TEST(choices[1].prompt_logprobs == -1);  // once is enough
  generator.scores(1, {{kWorld, -0.125F, {{'x', -0.5F}}}});
  for (const uint32_t c : {0U, 1U}) {
    generator.tokens(1, {{'!', -1.0F, {}}}, c);
    generator.finish(1, FinishReason::kLength, c);
  }
  const Json answer = sink.answer();
  for (const Json& choice : answer["choices"]) {
    BOOST_TEST(choice["text"] == "Hello world!");
    BOOST_TEST(choice["logprobs"]["tokens"] == (Json{"Hello", " world", "!"}));
    BOOST_TEST(choice["logprobs"]["token_logprobs"] == (Json{nullptr, -0.125, -1.0}));
    BOOST_TEST(choice["logprobs"]["text_offset"] == (Json{0, 5, 11}));
    BOOST_TEST(choice["logprobs"]["top_logprobs"][0].is_null());
  }
  BOOST_TEST(answer["usage"]["prompt_tokens"] == 2);
  BOOST_TEST(answer["usage"]["completion_tokens"] == 2);
}

BOOST_FIXTURE_TEST_CASE(tokens_before_the_prompts_scores_wait_for_them, Fixture) {
  REQUIRE_OK(completion(R"("prompt":[258,259],"echo":true,"logprobs":0,"n":2,"stream":true)"));
  generator.token(1, '!', 1);
  BOOST_TEST(sink.events.empty());
  generator.scores(1, {{kWorld, -0.125F, {}}});
  BOOST_REQUIRE(sink.events.size() == 1U);
  BOOST_TEST(sink.text(1) == "Hello world!");
  BOOST_TEST(sink.events[0]["choices"][0]["logprobs"]["tokens"] == (Json{"Hello", " world", "!"}));
}

BOOST_FIXTURE_TEST_CASE(scoring_a_prompt_needs_no_new_token, Fixture) {
  REQUIRE_OK(completion(R"("prompt":"Hi","max_tokens":0,"echo":true,"logprobs":1)"));
  BOOST_TEST(generator.entry(1).request.choices[0].max_tokens == 0U);
  generator.scores(1, {{'i', -2.0F, {}}});
  generator.finish(1, FinishReason::kLength);
  const Json choice = sink.answer()["choices"][0];
  BOOST_TEST(choice["text"] == "Hi");
  BOOST_TEST(choice["finish_reason"] == "length");
  BOOST_TEST(choice["logprobs"]["token_logprobs"] == (Json{nullptr, -2.0}));
  BOOST_TEST(sink.answer()["usage"]["completion_tokens"] == 0);
}

BOOST_FIXTURE_TEST_CASE(an_echo_of_nothing_else_is_answered_without_the_engine, Fixture) {
  REQUIRE_OK(completion(R"("prompt":["Hi","Yo"],"max_tokens":0,"echo":true)"));
  BOOST_TEST(generator.entries.empty());
  BOOST_TEST(sink.answer()["choices"][0]["text"] == "Hi");
  BOOST_TEST(sink.answer()["choices"][1]["text"] == "Yo");
  BOOST_TEST(sink.answer()["usage"]["prompt_tokens"] == 4);
}

BOOST_FIXTURE_TEST_CASE(missing_scores_are_an_error_and_not_a_wrong_answer, Fixture) {
  REQUIRE_OK(completion(R"("prompt":"Hiya","max_tokens":0,"echo":true,"logprobs":1)"));
  generator.scores(1, {{'i', -2.0F, {}}});
  generator.finish(1, FinishReason::kLength);
  BOOST_REQUIRE(sink.error);
  BOOST_TEST((sink.error->code() == StatusCode::kInternal));
}

BOOST_FIXTURE_TEST_CASE(a_batch_is_indexed_by_prompt_and_choice, Fixture) {
  REQUIRE_OK(completion(R"("prompt":["a","bb","ccc"],"n":2,"seed":7,"cache_salt":"s")"));
  BOOST_TEST(generator.entries.size() == 3U);
  // The same prompt gives the same choices in any batch; the choices differ from each other.
  const auto seed = [&](uint64_t id, size_t c) {
    return generator.entry(id).request.choices[c].seed;
  };
  BOOST_TEST(seed(1, 0) == seed(3, 0));
  BOOST_TEST(seed(1, 1) == seed(3, 1));
  BOOST_TEST(seed(1, 0) != seed(1, 1));
  for (const uint64_t id : {3, 1, 2}) {
    BOOST_TEST(generator.entry(id).request.cache_salt == "s");
    BOOST_TEST(generator.entry(id).request.choices[0].max_tokens == 16U);
    for (const uint32_t c : {1U, 0U}) {
      generator.token(id, static_cast<TokenId>('0' + 10 * c + id), c);
      generator.finish(id, FinishReason::kLength, c, 1);
    }
  }
  const Json answer = sink.answer();
  BOOST_REQUIRE(answer["choices"].size() == 6U);
  for (uint32_t i = 0; i < 6; ++i) {
    BOOST_TEST(answer["choices"][i]["index"] == i);
    BOOST_TEST(answer["choices"][i]["text"] ==
               std::string(1, static_cast<char>('0' + 10 * (i % 2) + i / 2 + 1)));
  }
  BOOST_TEST(answer["usage"]["prompt_tokens"] == 6);
  BOOST_TEST(answer["usage"]["completion_tokens"] == 6);
  BOOST_TEST(answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 3);
}

BOOST_FIXTURE_TEST_CASE(seeds_depend_on_the_request_and_the_choice_alone, Fixture) {
  std::set<uint64_t> seen;
  for (const char* seed : {"1", "2", "3"}) {
    REQUIRE_OK(chat(std::string(",\"n\":4,\"seed\":") + seed));
    for (const auto& c : generator.entry(generator.next_id - 1).request.choices)
      seen.insert(c.seed);
  }
  BOOST_TEST(seen.size() == 12U);
  REQUIRE_OK(chat(R"(,"n":2,"seed":3)"));
  for (const auto& c : generator.entry(4).request.choices) BOOST_TEST(seen.contains(c.seed));
}

BOOST_FIXTURE_TEST_CASE(destroying_a_run_cancels_everything_that_runs, Fixture) {
  REQUIRE_OK(completion(R"("prompt":["a","b"],"n":2)"));
  generator.token(1, 'x');
  run.reset();
  BOOST_TEST(generator.entry(1).cancelled);
  BOOST_TEST(generator.entry(2).cancelled);
  BOOST_TEST(generator.running() == 0U);
}

BOOST_FIXTURE_TEST_CASE(a_finished_run_cancels_nothing, Fixture) {
  REQUIRE_OK(chat());
  generator.finish(1, FinishReason::kStop);
  run.reset();
  BOOST_TEST(!generator.entry(1).cancelled);
}

BOOST_FIXTURE_TEST_CASE(one_refused_prompt_refuses_the_request_and_leaves_nothing, Fixture) {
  generator.reject_with = {StatusCode::kResourceExhausted, "full"};
  generator.reject_after = 2;
  const Status status = completion(R"("prompt":["a","b","c"])");
  BOOST_TEST((status.code() == StatusCode::kResourceExhausted));
  BOOST_TEST(generator.running() == 0U);
  BOOST_TEST(!sink.error);
}

BOOST_FIXTURE_TEST_CASE(one_failed_prompt_ends_the_whole_request, Fixture) {
  REQUIRE_OK(completion(R"("prompt":["a","b"],"stream":true)"));
  generator.token(2, 'x');
  generator.fail(1, {StatusCode::kUnavailable, "the worker is gone"});
  BOOST_REQUIRE(sink.error);
  BOOST_TEST((sink.error->code() == StatusCode::kUnavailable));
  BOOST_TEST(generator.entry(2).cancelled);
}

}  // namespace
}  // namespace troupe
