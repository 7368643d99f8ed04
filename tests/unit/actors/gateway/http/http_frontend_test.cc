#include "actors/gateway/http/http_frontend.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/gateway/http/http_fixture.h"

namespace troupe {
namespace {

using namespace test;
using Json = nlohmann::json;

BOOST_FIXTURE_TEST_CASE(a_chat_is_answered_on_a_connection_that_stays_open, HttpFixture) {
  start();
  Client client(*this);
  for (uint64_t id = 1; id <= 3; ++id) {
    client.post(kChatPath, chat_body(), "X-Request-Id: mine\r\n");
    until([&] { return generator.running() == 1; });
    BOOST_TEST(generator.entry(id).request.label == "mine");
    generator.token(id, kHello);
    generator.finish(id, FinishReason::kStop);
    const HttpReply reply = client.reply();
    BOOST_TEST(reply.status == 200);
    BOOST_TEST(reply.header("Content-Type") == "application/json");
    BOOST_TEST(reply.header("X-Request-Id") == "mine");
    BOOST_TEST(reply.json()["choices"][0]["message"]["content"] == "Hello");
    BOOST_TEST(reply.json()["id"].get<std::string>().starts_with("chatcmpl-"));
  }
  BOOST_TEST(frontend->open_connections() == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_gateway_without_models_says_so_until_one_joins, HttpFixture) {
  ModelCatalogue joining;
  models = &joining;
  start();
  Client client(*this);
  client.get("/v1/models");
  BOOST_TEST(client.reply().body == R"({"object":"list","data":[]})");
  client.get("/v1/models/tiny");
  BOOST_TEST(client.reply().status == 503);
  client.post(kChatPath, chat_body());
  const HttpReply refused = client.reply();
  BOOST_TEST(refused.status == 503);
  BOOST_TEST(refused.header("Retry-After") == "2");
  BOOST_TEST(refused.body.find("no worker has joined yet") != std::string::npos);
  BOOST_REQUIRE(joining.add({"tiny", kTinyContext, 1, model.tokenizer(), nullptr}).ok());
  client.get("/v1/models/tiny");
  BOOST_TEST(client.reply().status == 200);
  client.post("/v1/completions", R"({"model":"tiny","prompt":"x","max_tokens":0})");
  BOOST_TEST(client.reply().status == 200);
}

BOOST_FIXTURE_TEST_CASE(response_ids_are_unique, HttpFixture) {
  start();
  Client client(*this);
  std::set<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    client.post("/v1/completions", R"({"model":"tiny","prompt":"x","max_tokens":0})");
    ids.insert(client.reply().json()["id"]);
  }
  BOOST_TEST(ids.size() == 20U);
}

BOOST_FIXTURE_TEST_CASE(a_stream_is_events_then_done, HttpFixture) {
  start();
  Client client(*this);
  client.post(kChatPath, chat_body(R"(,"stream":true,"stream_options":{"include_usage":true})"));
  until([&] { return generator.running() == 1; });
  generator.token(1, kHello);
  BOOST_REQUIRE(client.read_until("\"content\":\"Hello\""));  // sent without waiting for more
  generator.token(1, kWorld);
  generator.token(1, kImEnd);
  generator.finish(1, FinishReason::kStop);
  const HttpReply reply = client.reply();
  BOOST_TEST(reply.status == 200);
  BOOST_TEST(reply.header("Content-Type") == "text/event-stream; charset=utf-8");
  BOOST_TEST(reply.header("Cache-Control") == "no-cache");
  std::vector<std::string> events;
  std::string rest = reply.body;
  while (!rest.empty()) {
    const size_t end = rest.find("\n\n");
    BOOST_REQUIRE(end != std::string::npos);
    BOOST_REQUIRE(rest.starts_with("data: "));
    events.push_back(rest.substr(6, end - 6));
    rest.erase(0, end + 2);
  }
  BOOST_REQUIRE(events.size() == 6U);
  BOOST_TEST(events.back() == "[DONE]");
  std::set<std::string> ids;
  std::string text;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const Json event = Json::parse(events[i]);
    ids.insert(event["id"]);
    if (!event["choices"].empty()) text += event["choices"][0]["delta"].value("content", "");
  }
  BOOST_TEST(ids.size() == 1U);
  BOOST_TEST(text == "Hello world");
  BOOST_TEST(Json::parse(events[4])["usage"]["completion_tokens"] == 3);
  // The connection serves the next request.
  client.get("/ping");
  BOOST_TEST(client.reply().status == 200);
}

BOOST_FIXTURE_TEST_CASE(silence_in_a_stream_is_filled_with_comments, HttpFixture) {
  limits.ping_interval = std::chrono::milliseconds(2);
  start();
  Client client(*this);
  client.post(kChatPath, chat_body(R"(,"stream":true)"));
  BOOST_REQUIRE(client.read_until(": ping\n\n"));
  generator.finish(1, FinishReason::kLength);
  const HttpReply reply = client.reply();
  BOOST_TEST(reply.status == 200);
  BOOST_TEST(reply.body.ends_with("data: [DONE]\n\n"));
}

BOOST_FIXTURE_TEST_CASE(what_fails_before_the_first_event_has_a_status_of_its_own, HttpFixture) {
  start();
  Client client(*this);
  for (const char* stream : {"false", "true"}) {
    client.post(kChatPath, chat_body(std::string(",\"stream\":") + stream));
    until([&] { return generator.running() == 1; });
    generator.fail(generator.next_id - 1, {StatusCode::kUnavailable, "the worker is gone"});
    const HttpReply reply = client.reply();
    BOOST_TEST(reply.status == 503);
    BOOST_TEST(reply.header("Retry-After") == "2");
    BOOST_TEST(reply.json()["error"]["message"] == "the worker is gone");
    BOOST_TEST(reply.json()["error"]["code"] == "unavailable");
    BOOST_TEST(reply.json()["error"]["param"].is_null());
  }
}

BOOST_FIXTURE_TEST_CASE(a_full_queue_is_answered_at_once_with_when_to_retry, HttpFixture) {
  start();
  generator.reject_with = {StatusCode::kResourceExhausted, "the queue is full"};
  Client client(*this);
  client.post(kChatPath, chat_body(R"(,"stream":true)"));
  const HttpReply reply = client.reply();
  BOOST_TEST(reply.status == 429);
  BOOST_TEST(reply.header("Retry-After") == "1");
  BOOST_TEST(reply.json()["error"]["type"] == "rate_limit_error");
  BOOST_TEST(frontend->running_generations() == 0U);
}

BOOST_FIXTURE_TEST_CASE(an_error_in_a_stream_is_an_event_and_then_done, HttpFixture) {
  start();
  Client client(*this);
  client.post(kChatPath, chat_body(R"(,"stream":true)"));
  until([&] { return generator.running() == 1; });
  generator.token(1, kHello);
  BOOST_REQUIRE(client.read_until("Hello"));
  generator.fail(1, {StatusCode::kUnavailable, "the worker \"w1\" is gone"});
  const HttpReply reply = client.reply();
  BOOST_TEST(reply.status == 200);
  const std::string expected =
      "data: {\"error\":{\"message\":\"the worker \\\"w1\\\" is gone\",\"type\":"
      "\"service_unavailable\",\"param\":null,\"code\":\"unavailable\"}}\n\ndata: [DONE]\n\n";
  BOOST_TEST(reply.body.ends_with(expected));
}

BOOST_FIXTURE_TEST_CASE(the_small_endpoints_answer, HttpFixture) {
  start();
  Client client(*this);
  const auto fetch = [&](const std::string& path) {
    client.get(path);
    return client.reply();
  };
  const Json model_object = fetch("/v1/models/tiny").json();
  BOOST_TEST(model_object["id"] == "tiny");
  BOOST_TEST(model_object["max_model_len"] == kTinyContext);
  BOOST_TEST(fetch("/v1/models").json()["data"] == Json::array({model_object}));
  BOOST_TEST(fetch("/v1/models?limit=3").status == 200);
  BOOST_TEST(fetch("/v1/models/%74iny").status == 200);
  const HttpReply unknown = fetch("/v1/models/other");
  BOOST_TEST(unknown.status == 404);
  BOOST_TEST(unknown.json()["error"]["code"] == "model_not_found");
  BOOST_TEST(fetch("/version").json()["version"] == "1.2.3");
  BOOST_TEST(fetch("/ping").status == 200);
  const HttpReply metrics_page = fetch("/metrics");
  BOOST_TEST(metrics_page.body.starts_with("# TYPE x gauge\nx 1\n"), metrics_page.body);
  BOOST_TEST(metrics_page.body.find("troupe_http_responses_total{code=\"200\"}") !=
             std::string::npos);
  BOOST_TEST(metrics_page.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
  client.post("/tokenize", R"({"prompt":"hi"})");
  BOOST_TEST(client.reply().json()["tokens"] == (Json{104, 105}));
  client.post("/detokenize", R"({"tokens":[104,105]})");
  BOOST_TEST(client.reply().json()["prompt"] == "hi");
}

BOOST_FIXTURE_TEST_CASE(head_requests_get_headers_only, HttpFixture) {
  start();
  Client client(*this);
  for (const char* path : {"/metrics", "/health", "/v1/models"}) {
    client.get(path, "HEAD");
    BOOST_TEST(client.reply(true).status == 200);
  }
  client.get("/ping");
  BOOST_TEST(client.reply().json()["status"] == "ok");
}

BOOST_FIXTURE_TEST_CASE(health_says_why_not, HttpFixture) {
  start();
  Client client(*this);
  client.get("/health");
  BOOST_TEST(client.reply().status == 200);
  health.status = {StatusCode::kInternal, "the device made no step for 12 s"};
  client.get("/health");
  const HttpReply sick = client.reply();
  BOOST_TEST(sick.status == 503);
  BOOST_TEST(sick.header("Retry-After") == "1");
  BOOST_TEST(sick.json()["error"]["message"] == "the device made no step for 12 s");
  client.get("/ping");
  BOOST_TEST(client.reply().status == 200);
}

BOOST_FIXTURE_TEST_CASE(a_client_that_expects_a_continue_gets_it, HttpFixture) {
  start();
  Client client(*this);
  const std::string body = R"({"prompt":"hi"})";
  client.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  BOOST_REQUIRE(client.read_until("HTTP/1.1 100 Continue\r\n\r\n"));
  client.received.clear();
  client.send(body);
  BOOST_TEST(client.reply().status == 200);
}

}  // namespace
}  // namespace troupe
