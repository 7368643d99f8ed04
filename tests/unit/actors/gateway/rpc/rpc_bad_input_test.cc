#include <boost/test/unit_test.hpp>
#include <cmath>

#include "actors/gateway/openai/request.h"
#include "tests/unit/actors/gateway/rpc/rpc_fixture.h"

namespace troupe {
namespace {

using namespace test;
using Type = kj::Exception::Type;

struct BadInputFixture : RpcFixture {
  BadInputFixture() {
    limits.body_bytes_max = 200'000;
    limits.body_timeout = std::chrono::milliseconds(20);
    start();
    client.emplace(*this);
  }
  // Sends the completion and expects it to be refused in these words, by exception and structure.
  template <class Request>
  void refuse(Request request, Type type, const std::string& structure) {
    Heard heard;
    request.setSink(kj::heap<RecordingSink>(heard));
    const kj::Exception thrown = failure(request.send());
    BOOST_TEST(static_cast<int>(thrown.getType()) == static_cast<int>(type));
    BOOST_REQUIRE(heard.errors.size() == 1U);
    BOOST_TEST(heard.errors[0].substr(0, structure.size()) == structure);
    const std::string message = heard.errors[0].substr(heard.errors[0].find(": ") + 2);
    BOOST_TEST(text_of(thrown) == "remote exception: " + message);
    BOOST_TEST(generator.running() == 0U);
    BOOST_TEST(load->generations() == 0U);
  }
  std::optional<RpcClient> client;
};

BOOST_FIXTURE_TEST_CASE(each_fault_of_a_parameter_is_told_as_by_http, BadInputFixture) {
  const auto complete = [&](auto set, Type type, const std::string& structure) {
    auto request = client->completion();
    set(request.initParameters());
    refuse(kj::mv(request), type, structure);
  };
  using P = rpc::Parameters::Builder;
  complete([](P p) { p.setTemperature(3); }, Type::FAILED,
           "invalidArgument temperature: temperature must be a number in [0, 2]; got 3");
  complete([](P p) { p.setTemperature(NAN); }, Type::FAILED,
           "invalidArgument temperature: temperature must be a number in [0, 2]; got nan");
  complete([](P p) { p.setTopP(0); }, Type::FAILED, "invalidArgument top_p: ");
  complete([](P p) { p.setN(0); }, Type::FAILED,
           "invalidArgument n: n must be an integer in [1, 16]; got 0");
  complete([](P p) { p.setMaxTokens(-2); }, Type::FAILED, "invalidArgument max_tokens: ");
  complete([](P p) { p.setMaxTokens(4000); }, Type::FAILED, "contextLength max_tokens: ");
  complete([](P p) { p.setLogprobs(21); }, Type::FAILED, "invalidArgument logprobs: ");
  complete([](P p) { p.initStop(5); }, Type::FAILED,
           "invalidArgument stop: stop must have at most 4 strings; got 5");
  complete([](P p) { p.initStop(1).set(0, "\xFF"); }, Type::FAILED,
           "invalidArgument stop[0]: stop[0] is not well-formed UTF-8 at byte 0; send UTF-8");
  complete([](P p) { p.initStopTokenIds(2000); }, Type::FAILED, "invalidArgument stop_token_ids: ");
  complete([](P p) { p.initLogitBias(2); }, Type::FAILED,
           "invalidArgument logit_bias: logit_bias names the token 0 twice");
  complete([](P p) { p.initLogitBias(1)[0].setBias(101); }, Type::FAILED,
           "invalidArgument logit_bias: ");
}

BOOST_FIXTURE_TEST_CASE(each_fault_of_a_prompt_is_told_as_by_http, BadInputFixture) {
  auto model = client->completion();
  model.setModel("other");
  refuse(kj::mv(model), Type::FAILED,
         "notFound model: the model \"other\" does not exist here; this server has \"tiny\"");
  auto none = client->completion();
  none.setModel("");
  refuse(kj::mv(none), Type::FAILED, "invalidArgument model: model is missing; send \"tiny\"");
  refuse(client->completion(""), Type::FAILED, "invalidArgument prompt: prompt must not be empty");
  refuse(client->completion(std::string(300, 'x')), Type::FAILED, "contextLength prompt: ");
  auto tokens = client->completion();
  tokens.initPrompt().initTokens(1).set(0, kTinyVocab);
  refuse(kj::mv(tokens), Type::FAILED,
         "invalidArgument prompt[0]: prompt[0] must be a token id in");
  auto chat = client->chat();
  chat.getMessages()[0].setRole("robot");
  refuse(kj::mv(chat), Type::FAILED, "invalidArgument messages[0].role: ");
  auto silent = client->chat();
  silent.initMessages(0);
  refuse(kj::mv(silent), Type::FAILED, "invalidArgument messages: ");
  auto many = client->chat();
  many.initMessages(4097);
  refuse(kj::mv(many), Type::FAILED,
         "invalidArgument messages: messages must have at most 4096 messages; got 4097");
  auto echo = client->chat();
  echo.initParameters().setEcho(true);
  refuse(kj::mv(echo), Type::UNIMPLEMENTED, "unsupported echo: ");
}

BOOST_FIXTURE_TEST_CASE(a_full_server_is_overloaded, BadInputFixture) {
  generator.reject_with = {StatusCode::kResourceExhausted, "the queue is full; retry later"};
  generator.reject_after = 0;
  refuse(client->completion(), Type::OVERLOADED, "resourceExhausted : the queue is full");
}

BOOST_FIXTURE_TEST_CASE(without_a_model_requests_are_to_be_retried, RpcFixture) {
  const ModelCatalogue empty;
  models = &empty;
  start();
  RpcClient client(*this);
  BOOST_TEST(await(client.serving.modelsRequest().send()).getModels().size() == 0U);
  const kj::Exception thrown = failure(client.completion().send());
  BOOST_TEST((thrown.getType() == Type::OVERLOADED));
  BOOST_TEST(text_of(thrown).find("no worker has joined yet") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(requests_and_connections_share_the_limits_of_http, RpcFixture) {
  limits.generations_max = 1;
  limits.connections_max = 2;
  start();
  RpcClient client(*this);
  auto running = client.completion().send();
  until([&] { return generator.running() == 1; });
  BOOST_TEST((failure(client.completion().send()).getType() == Type::OVERLOADED));
  BOOST_TEST(await(client.serving.healthRequest().send()).getReady());
  const auto second = connect();
  until([&] { return load->connections() == 2; });
  char byte = 0;
  BOOST_TEST(await(connect()->tryRead(&byte, 1, 1)) == 0U);
}

BOOST_FIXTURE_TEST_CASE(a_request_over_the_limit_is_refused_in_words, BadInputFixture) {
  refuse(client->completion(std::string(250'000, 'x')), Type::FAILED,
         "invalidArgument : the request must have at most 200000 bytes; send less");
  BOOST_TEST(await(client->serving.healthRequest().send()).getReady());
}

BOOST_FIXTURE_TEST_CASE(a_message_far_over_the_limit_cuts_its_connection_only, BadInputFixture) {
  RpcClient greedy(*this);
  BOOST_TEST((failure(greedy.completion(std::string(500'000, 'x')).send()).getType() ==
              Type::DISCONNECTED));
  BOOST_TEST(await(client->serving.healthRequest().send()).getReady());
}

BOOST_FIXTURE_TEST_CASE(bytes_that_are_no_message_cut_their_connection_only, BadInputFixture) {
  const std::string kBytes[] = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      std::string(64, '\xFF'),
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // TLS
      std::string("\0\0\0\0\xFF\xFF\xFF\x7F", 8),                       // one huge segment
      std::string("\0\0\0\0\1\0\0\0", 8) + std::string(8, '\x7F'),      // framed nonsense
      std::string("\0\0\0\0", 4),                                       // cut off, then silence
  };
  for (const std::string& bytes : kBytes) {
    auto stream = connect();
    await(stream->write(bytes.data(), bytes.size()));
    char buffer[4096];
    // Until the server closes; it may say before that it gives up.
    const auto read = [&] {
      return await(stream->tryRead(buffer, 1, sizeof buffer).catch_([](kj::Exception&&) {
        return size_t{0};
      }));
    };
    while (read() > 0) {
    }
    BOOST_TEST(await(client->serving.healthRequest().send()).getReady());
  }
  until([&] { return load->connections() == 1; });
}

BOOST_FIXTURE_TEST_CASE(a_client_may_be_silent_between_messages, BadInputFixture) {
  await(io.provider->getTimer().afterDelay(60 * kj::MILLISECONDS));  // three body timeouts
  BOOST_TEST(await(client->serving.healthRequest().send()).getReady());
}

BOOST_FIXTURE_TEST_CASE(random_bytes_do_no_harm, BadInputFixture) {
  uint64_t state = 1;
  for (int round = 0; round < 200; ++round) {
    std::string bytes("\0\0\0\0\4\0\0\0", 8);  // a frame of four words
    for (int i = 0; i < 32; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      // Mostly small numbers, as in real messages.
      bytes += static_cast<char>((state >> 40) % 3 == 0 ? state >> 56 : 0);
    }
    auto stream = connect();
    await(stream->write(bytes.data(), bytes.size()));
    stream->shutdownWrite();
    char buffer[4096];
    const auto read = [&] {
      return await(stream->tryRead(buffer, 1, sizeof buffer).catch_([](kj::Exception&&) {
        return size_t{0};
      }));
    };
    while (read() > 0) {
    }
  }
  BOOST_TEST(await(client->serving.healthRequest().send()).getReady());
  until([&] { return load->connections() == 1; });
}

}  // namespace
}  // namespace troupe
