// Clients that leave, read slowly or come in too great numbers, and the end of the server.

#include <sys/socket.h>

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/gateway/http/http_fixture.h"

namespace troupe {
namespace {

using namespace test;

const char* const kStream = R"(,"stream":true)";

// Every way of leaving, in every state of a request.
BOOST_FIXTURE_TEST_CASE(a_client_that_leaves_cancels_its_generation_in_every_state, HttpFixture) {
  start();
  const std::function<void(Client&)> ways[] = {[](Client& c) { c.close(); },
                                               [](Client& c) { c.reset(); },
                                               [](Client& c) { c.half_close(); }};
  for (const auto& leave : ways) {
    for (const bool stream : {false, true}) {
      for (const int tokens : {0, 1, 2}) {
        Client client(*this);
        client.post(kChatPath, chat_body(stream ? kStream : ""));
        until([&] { return generator.running() == 1; });
        const uint64_t id = generator.next_id - 1;
        for (int i = 0; i < tokens; ++i) generator.token(id, kHello);
        if (stream && tokens > 0) BOOST_REQUIRE(client.read_until("Hello"));
        leave(client);
        until([&] { return generator.running() == 0; });
        BOOST_TEST(generator.entry(id).cancelled);
        BOOST_TEST(frontend->running_generations() == 0U);
      }
    }
  }
  until([&] { return frontend->open_connections() == 0; });
}

BOOST_FIXTURE_TEST_CASE(requests_behind_the_running_one_do_not_hide_that_it_left, HttpFixture) {
  start();
  Client client(*this);
  client.post(kChatPath, chat_body());
  client.get("/ping");
  until([&] { return generator.running() == 1; });
  client.close();
  until([&] { return generator.running() == 0; });
  BOOST_TEST(generator.entry(1).cancelled);
}

BOOST_FIXTURE_TEST_CASE(pipelined_requests_are_answered_in_order, HttpFixture) {
  start();
  Client client(*this);
  client.post(kChatPath, chat_body());
  client.get("/version");
  until([&] { return generator.running() == 1; });
  generator.finish(1, FinishReason::kStop);
  BOOST_TEST(client.reply().json()["object"] == "chat.completion");
  BOOST_TEST(client.reply().json()["version"] == "1.2.3");
}

BOOST_FIXTURE_TEST_CASE(a_later_request_of_a_connection_is_watched_too, HttpFixture) {
  start();
  Client client(*this);
  client.post(kChatPath, chat_body());
  until([&] { return generator.running() == 1; });
  generator.finish(1, FinishReason::kStop);
  client.reply();
  client.post(kChatPath, chat_body(kStream));
  until([&] { return generator.running() == 1; });
  client.close();
  until([&] { return generator.running() == 0; });
  BOOST_TEST(generator.entry(2).cancelled);
}

BOOST_FIXTURE_TEST_CASE(a_cancel_ends_only_its_own_request_whatever_the_label, HttpFixture) {
  start();
  const std::string same = "X-Request-Id: same\r\n";
  Client first(*this);
  Client second(*this);
  first.post(kChatPath, chat_body(kStream), same);
  second.post(kChatPath, chat_body(kStream), same);
  until([&] { return generator.running() == 2; });
  // Which of the two came first is the network's choice; their order of arrival is that of the ids.
  first.close();
  until([&] { return generator.running() == 1; });
  Client third(*this);
  third.post(kChatPath, chat_body(kStream), same);
  until([&] { return generator.running() == 2; });
  for (uint64_t id = 1; id <= 3; ++id) {
    generator.token(id, kHello);
    generator.finish(id, FinishReason::kStop);
  }
  BOOST_TEST(second.reply().body.ends_with("data: [DONE]\n\n"));
  BOOST_TEST(third.reply().body.ends_with("data: [DONE]\n\n"));
}

BOOST_FIXTURE_TEST_CASE(a_client_that_does_not_read_is_cut_at_a_bounded_backlog, HttpFixture) {
  limits.pending_bytes_max = 100'000;
  start();
  Client slow(*this);
  slow.post(kChatPath, chat_body(R"(,"stream":true,"n":2)"));
  until([&] { return generator.running() == 1; });
  // Far more than the socket buffers of both ends hold, a little at a time.
  for (int step = 0; step < 200'000 && generator.running() == 1; ++step) {
    generator.token(1, kHello);
    if (step % 100 == 0) await(kj::evalLater([] {}));
  }
  BOOST_TEST(generator.entry(1).cancelled);
  until([&] { return frontend->open_connections() == 0; });
  slow.read_to_end();
  BOOST_TEST(slow.received.find("[DONE]") == std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_write_that_never_completes_is_given_up, HttpFixture) {
  limits.write_timeout = std::chrono::milliseconds(20);
  limits.pending_bytes_max = size_t{256} << 20;
  start();
  Client slow(*this);
  slow.post(kChatPath, chat_body(kStream));
  until([&] { return generator.running() == 1; });
  for (int step = 0; step < 100'000; ++step) generator.token(1, kHello);
  generator.finish(1, FinishReason::kStop);
  until([&] { return frontend->open_connections() == 0; });
}

BOOST_FIXTURE_TEST_CASE(more_generations_than_the_limit_are_told_to_retry, HttpFixture) {
  limits.generations_max = 2;
  start();
  Client a(*this);
  Client b(*this);
  Client c(*this);
  a.post(kChatPath, chat_body());
  b.post(kChatPath, chat_body());
  until([&] { return generator.running() == 2; });
  c.post(kChatPath, chat_body());
  const HttpReply refused = c.reply();
  BOOST_TEST(refused.status == 429);
  BOOST_TEST(refused.header("Retry-After") == "1");
  // Probes are answered all the same.
  c.get("/health");
  BOOST_TEST(c.reply().status == 200);
  a.close();
  until([&] { return generator.running() == 1; });
  c.post(kChatPath, chat_body());
  until([&] { return generator.running() == 2; });
}

BOOST_FIXTURE_TEST_CASE(more_connections_than_the_limit_are_closed_with_an_answer, HttpFixture) {
  limits.connections_max = 2;
  start();
  Client a(*this);
  Client b(*this);
  until([&] { return frontend->open_connections() == 2; });
  Client c(*this);
  const HttpReply refused = c.reply();
  BOOST_TEST(refused.status == 503);
  BOOST_TEST(refused.json()["error"]["code"] == "too_many_connections");
  BOOST_TEST(c.at_end());
  a.close();
  until([&] { return frontend->open_connections() == 1; });
  Client d(*this);
  d.get("/ping");
  BOOST_TEST(d.reply().status == 200);
}

BOOST_FIXTURE_TEST_CASE(draining_lets_running_requests_finish, HttpFixture) {
  start();
  Client idle(*this);
  Client running(*this);
  running.post(kChatPath, chat_body(kStream));
  until([&] { return generator.running() == 1 && frontend->open_connections() == 2; });
  bool drained = false;
  auto drain = frontend->drain(std::chrono::seconds(60))
                   .then([&] { drained = true; })
                   .eagerlyEvaluate(nullptr);
  BOOST_TEST(idle.at_end());  // nothing was asked on it
  generator.token(1, kHello);
  BOOST_REQUIRE(running.read_until("Hello"));
  BOOST_TEST(!drained);
  BOOST_CHECK_THROW(Client{*this}, kj::Exception);  // no new connection
  generator.finish(1, FinishReason::kStop);
  BOOST_TEST(running.reply().body.ends_with("data: [DONE]\n\n"));
  BOOST_TEST(running.at_end());
  until([&] { return drained; });
  BOOST_TEST(!generator.entry(1).cancelled);
}

BOOST_FIXTURE_TEST_CASE(draining_ends_what_is_left_at_its_deadline_with_an_error, HttpFixture) {
  start();
  Client streaming(*this);
  Client waiting(*this);
  streaming.post(kChatPath, chat_body(kStream));
  until([&] { return generator.running() == 1; });
  generator.token(1, kHello);
  BOOST_REQUIRE(streaming.read_until("Hello"));
  waiting.post(kChatPath, chat_body());
  until([&] { return generator.running() == 2; });
  bool drained = false;
  auto drain = frontend->drain(std::chrono::milliseconds(5))
                   .then([&] { drained = true; })
                   .eagerlyEvaluate(nullptr);
  const HttpReply ended = streaming.reply();
  BOOST_TEST(ended.body.find("shutting down") != std::string::npos);
  BOOST_TEST(ended.body.ends_with("data: [DONE]\n\n"));
  BOOST_TEST(waiting.reply().status == 503);
  until([&] { return drained; });
  BOOST_TEST(generator.running() == 0U);
}

BOOST_FIXTURE_TEST_CASE(draining_cuts_even_those_who_do_not_read, HttpFixture) {
  limits.abort_flush = std::chrono::milliseconds(5);
  limits.pending_bytes_max = size_t{256} << 20;
  start();
  Client deaf(*this);
  deaf.post(kChatPath, chat_body(kStream));
  until([&] { return generator.running() == 1; });
  for (int step = 0; step < 100'000; ++step) generator.token(1, kHello);
  await(frontend->drain(std::chrono::milliseconds(5)));
  BOOST_TEST(generator.running() == 0U);
  BOOST_TEST(frontend->open_connections() == 0U);
}

BOOST_FIXTURE_TEST_CASE(destroying_the_front_end_cancels_everything, HttpFixture) {
  start();
  Client a(*this);
  Client b(*this);
  a.post(kChatPath, chat_body(kStream));
  b.post(kChatPath, chat_body());
  until([&] { return generator.running() == 2; });
  frontend.reset();
  BOOST_TEST(generator.running() == 0U);
  BOOST_TEST(a.at_end());
}

// Fifty clients with one to four choices each leave at random states; nothing stays behind.
BOOST_FIXTURE_TEST_CASE(many_clients_leaving_at_once_leave_nothing_behind, HttpFixture) {
  start();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(std::make_unique<Client>(*this));
    clients.back()->post(
        kChatPath, chat_body(",\"n\":" + std::to_string(1 + i % 4) + (i % 2 == 0 ? kStream : "")));
  }
  until([&] { return generator.running() == 50; });
  for (uint64_t id = 1; id <= 50; ++id) {
    for (uint64_t t = 0; t < id % 5; ++t) generator.token(id, kWorld);
    if (id % 7 == 0) generator.finish(id, FinishReason::kLength);
  }
  clients.clear();
  until([&] { return generator.running() == 0 && frontend->open_connections() == 0; });
  BOOST_TEST(frontend->running_generations() == 0U);
}

}  // namespace
}  // namespace troupe
