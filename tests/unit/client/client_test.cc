#include "troupe/client/client.h"

#include <boost/test/unit_test.hpp>
#include <future>
#include <string>

#include "tests/unit/client/server_thread.h"

namespace troupe::client {
namespace {

using namespace std::chrono_literals;
using test::ServerThread;

struct Fixture {
  Fixture() { server.start(); }

  void connect(ClientOptions options = {}) {
    auto connected = Client::connect("127.0.0.1", server.port, options);
    BOOST_REQUIRE_MESSAGE(connected.ok(), connected.status().message());
    client = std::move(connected).value();
  }
  static CompletionRequest completion(uint32_t max_tokens = 5) {
    CompletionRequest request{"tiny", "hi", {}};
    request.parameters.max_tokens = max_tokens;
    return request;
  }
  ServerThread server;
  std::unique_ptr<Client> client;
};

BOOST_FIXTURE_TEST_CASE(a_client_learns_what_there_is, Fixture) {
  connect();
  BOOST_TEST(client->server_version().value() == "1.2.3");
  const auto models = client->models();
  BOOST_REQUIRE(models.ok());
  BOOST_TEST(models->at(0).name == "tiny");
  BOOST_TEST(models->at(0).chat);
  BOOST_TEST(client->health().ok());
  server.healthy = false;
  BOOST_TEST((client->health() == Status(StatusCode::kUnavailable, "not now")));
  const auto tokens = client->tokenize("tiny", "hi");
  BOOST_REQUIRE(tokens.ok());
  BOOST_TEST((tokens.value() == std::vector<Token>{'h', 'i'}));
  BOOST_TEST(client->detokenize("", tokens.value()).value() == "hi");
}

BOOST_FIXTURE_TEST_CASE(an_answer_comes_whole, Fixture) {
  connect();
  CompletionRequest request = completion();
  request.parameters.n = 2;
  request.parameters.logprobs = 0;
  const auto answer = client->complete(request);
  BOOST_REQUIRE_MESSAGE(answer.ok(), answer.status().message());
  BOOST_REQUIRE(answer->choices.size() == 2U);
  BOOST_TEST(answer->choices[1].text == "xxxxx");
  BOOST_TEST(answer->choices[1].tokens[4].logprob == -0.5F);
  BOOST_TEST((answer->choices[1].finish_reason == FinishReason::kLength));
  BOOST_TEST((answer->usage == Usage{2, 10, 0}));
  ChatRequest chat{"tiny", {{"user", "hi"}}, {}};
  chat.parameters.max_tokens = 3;
  BOOST_TEST(client->chat(chat)->choices.at(0).text == "xxx");
}

BOOST_FIXTURE_TEST_CASE(a_stream_comes_in_pieces, Fixture) {
  connect();
  auto stream = client->stream(completion(100));
  BOOST_REQUIRE(stream.ok());
  std::string text;
  while (true) {
    const auto chunk = stream->next();
    BOOST_REQUIRE_MESSAGE(chunk.ok(), chunk.status().message());
    if (!chunk.value()) break;
    for (const Choice& choice : *chunk.value()) text += choice.text;
  }
  BOOST_TEST(text == std::string(100, 'x'));
  BOOST_TEST(stream->answer().usage.completion_tokens == 100U);
  BOOST_TEST(stream->answer().choices.empty());
  BOOST_TEST(!stream->next().value().has_value());  // again
}

BOOST_FIXTURE_TEST_CASE(a_reader_that_comes_late_gets_everything, Fixture) {
  connect();
  server.interval_us = 0;
  auto late = client->stream(completion(190));
  // Another request on the connection is not held up by chunks that nobody takes.
  BOOST_TEST(client->complete(completion(190))->choices.at(0).text.size() == 190U);
  size_t tokens = 0;
  while (true) {
    const auto chunk = late->next();
    BOOST_REQUIRE_MESSAGE(chunk.ok(), chunk.status().message());
    if (!chunk.value()) break;
    tokens += chunk.value()->at(0).tokens.size();
  }
  BOOST_TEST(tokens == 190U);
}

BOOST_FIXTURE_TEST_CASE(errors_have_the_servers_code_field_and_words, Fixture) {
  connect();
  CompletionRequest request = completion();
  request.parameters.temperature = 3;
  const Status expected(StatusCode::kInvalidArgument,
                        "temperature must be a number in [0, 2]; got 3", "temperature");
  BOOST_TEST((client->complete(request).status() == expected));
  auto stream = client->stream(request);
  BOOST_TEST((stream->next().status() == expected));
  BOOST_TEST((stream->next().status() == expected));
  request.model = "other";
  BOOST_TEST((client->complete(request).status().code() == StatusCode::kNotFound));
  request = completion(100'000);
  BOOST_TEST((client->complete(request).status().code() == StatusCode::kContextLength));
  request.prompt = std::string(9 << 20, 'x');
  BOOST_TEST((client->complete(request).status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST(client->health().ok());  // on the same connection
}

BOOST_FIXTURE_TEST_CASE(letting_go_of_a_stream_cancels_it, Fixture) {
  connect();
  server.interval_us = 1000;
  {
    auto stream = client->stream(completion(190));
    BOOST_REQUIRE(stream->next().ok());
  }
  BOOST_TEST(server.cancelled.reaches(1));
  auto stream = client->stream(completion(190));
  BOOST_REQUIRE(stream->next().ok());
  stream->cancel();
  BOOST_TEST((stream->next().status().code() == StatusCode::kCancelled));
  BOOST_TEST(server.cancelled.reaches(2));
}

BOOST_FIXTURE_TEST_CASE(waits_end_at_their_deadlines_and_cancel, Fixture) {
  ClientOptions options;
  options.answer_timeout = 20ms;
  options.chunk_timeout = 20ms;
  connect(options);
  server.interval_us = 60'000'000;
  BOOST_TEST((client->complete(completion()).status().code() == StatusCode::kDeadlineExceeded));
  BOOST_TEST(server.cancelled.reaches(1));
  auto stream = client->stream(completion());
  BOOST_TEST((stream->next().status().code() == StatusCode::kDeadlineExceeded));
  BOOST_TEST(server.cancelled.reaches(2));
}

BOOST_FIXTURE_TEST_CASE(nobody_waits_for_a_client_that_is_destroyed, Fixture) {
  connect();
  server.interval_us = 60'000'000;
  auto stream = client->stream(completion());
  auto waiting = std::async(std::launch::async, [&] { return stream->next().status().code(); });
  client = nullptr;
  BOOST_TEST((waiting.get() == StatusCode::kCancelled));
  stream->cancel();  // harmless
  BOOST_TEST(server.cancelled.reaches(1));
}

BOOST_FIXTURE_TEST_CASE(a_lost_connection_ends_requests_and_is_made_anew, Fixture) {
  connect();
  server.interval_us = 60'000'000;
  auto stream = client->stream(completion());
  auto waiting = std::async(std::launch::async, [&] { return stream->next().status().code(); });
  server.stop();
  BOOST_TEST((waiting.get() == StatusCode::kUnavailable));
  BOOST_TEST((client->models().status().code() == StatusCode::kUnavailable));
  server.start();
  server.interval_us = 0;
  BOOST_TEST(client->models().ok());
  BOOST_TEST(client->complete(completion())->choices.at(0).text == "xxxxx");
}

BOOST_AUTO_TEST_CASE(calls_of_tools_come_whole_or_in_pieces) {
  ServerThread server(
      "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}"
      "{{ m.content }}{% endfor %}>",
      "So: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>");
  server.start();
  auto client = Client::connect("127.0.0.1", server.port).value();
  ChatRequest chat{"tiny", {{"user", "hi"}}, {}};
  chat.parameters.tools = {{"f", "Does f.", R"({"type":"object"})"}, {"g", "", ""}};
  const auto answer = client->chat(chat);
  BOOST_REQUIRE_MESSAGE(answer.ok(), answer.status().message());
  const Choice& whole = answer->choices.at(0);
  BOOST_TEST(whole.text == "So:");
  BOOST_TEST((whole.finish_reason == FinishReason::kToolCalls));
  BOOST_REQUIRE(whole.tool_calls.size() == 1U);
  BOOST_TEST(whole.tool_calls[0].name == "f");
  BOOST_TEST(whole.tool_calls[0].arguments == "{\"a\": 1}");
  auto stream = client->stream(chat);
  ToolCall pieces;
  while (true) {
    const auto chunk = stream->next();
    BOOST_REQUIRE_MESSAGE(chunk.ok(), chunk.status().message());
    if (!chunk.value()) break;
    for (const ToolCall& call : chunk.value()->at(0).tool_calls) {
      pieces.id += call.id;
      pieces.name += call.name;
      pieces.arguments += call.arguments;
    }
  }
  BOOST_TEST(pieces.name == "f");
  BOOST_TEST(pieces.arguments == "{\"a\": 1}");
  BOOST_TEST(pieces.id.starts_with("call_"));
  chat.parameters.tool_choice = {ToolChoice::Kind::kNamed, "h"};
  BOOST_TEST(client->chat(chat).status().param() == "tool_choice.function.name");
  chat.parameters.tool_choice = {ToolChoice::Kind::kNone};
  BOOST_TEST(client->chat(chat)->choices.at(0).tool_calls.empty());
}

BOOST_AUTO_TEST_CASE(a_wrong_address_is_told_at_once) {
  ServerThread server;
  server.start();
  server.stop();
  const auto nobody = Client::connect("127.0.0.1", server.port);
  BOOST_REQUIRE(!nobody.ok());
  BOOST_TEST((nobody.status().code() == StatusCode::kUnavailable));
  BOOST_TEST(nobody.status().message().starts_with("cannot connect to 127.0.0.1:"));
}

BOOST_FIXTURE_TEST_CASE(many_threads_share_a_client, Fixture) {
  connect();
  std::vector<std::future<bool>> answers;
  for (int i = 0; i < 16; ++i) {
    answers.push_back(std::async(std::launch::async, [&] {
      const auto answer = client->complete(completion(20));
      return answer.ok() && answer->choices.at(0).text == std::string(20, 'x');
    }));
  }
  for (auto& answer : answers) BOOST_TEST(answer.get());
}

}  // namespace
}  // namespace troupe::client
