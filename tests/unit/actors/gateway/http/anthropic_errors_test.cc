// Every refusal of a request to Anthropic's API has the form of that API, whichever layer refuses.

#include <boost/test/unit_test.hpp>

#include "actors/gateway/api_keys.h"
#include "tests/unit/actors/gateway/http/http_fixture.h"

namespace troupe {
namespace {

using namespace test;

const std::string kPath = "/v1/messages";
const std::string kMessage =
    R"({"model":"tiny","max_tokens":5,"messages":[{"role":"user","content":"hi"}]})";

struct Fixture : HttpFixture {
  Fixture() {
    limits.body_bytes_max = 10'000;
    limits.body_timeout = std::chrono::milliseconds(50);
  }
  void check(const HttpReply& reply, int status, const std::string& type) {
    BOOST_TEST(reply.status == status, reply.head);
    BOOST_TEST(reply.header("Content-Type") == "application/json");
    const auto body = reply.json();
    BOOST_TEST(body.size() == 3U, reply.body);
    BOOST_TEST(body["type"] == "error", reply.body);
    BOOST_TEST(body["error"]["type"] == type, reply.body);
    BOOST_TEST(!body["error"]["message"].get<std::string>().empty());
    BOOST_TEST(body["request_id"] == reply.header("Request-Id"));
  }
  // Sends these bytes on a connection of their own.
  void expect(const std::string& bytes, int status, const std::string& type) {
    BOOST_TEST_CONTEXT(bytes.substr(0, 100)) {
      Client client(*this);
      client.send(bytes);
      check(client.reply(), status, type);
    }
  }
  static std::string post(const std::string& path, const std::string& body,
                          const std::string& headers = "") {
    return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
};

BOOST_FIXTURE_TEST_CASE(what_the_client_does_wrong_is_told_in_anthropics_form, Fixture) {
  start();
  const std::string host = " HTTP/1.1\r\nHost: x\r\n";
  expect("GET " + kPath + host + "\r\n", 405, "invalid_request_error");
  expect("DELETE " + kPath + "/count_tokens" + host + "\r\n", 405, "invalid_request_error");
  expect(post(kPath + "/batches", "{}"), 404, "not_found_error");
  expect(post(kPath + "/", kMessage), 404, "not_found_error");
  for (const std::string& path : {kPath, kPath + "/count_tokens"}) {
    expect(post(path, "{"), 400, "invalid_request_error");
    expect(post(path, "[]"), 400, "invalid_request_error");
    expect(post(path, R"({"model":"other","max_tokens":1,"messages":[{"role":"user",)"
                      R"("content":"hi"}]})"),
           404, "not_found_error");
    expect(post(path, R"({"model":"tiny","max_tokens":1,"messages":[]})"), 400,
           "invalid_request_error");
    expect("POST " + path + host + "Content-Length: 10001\r\n\r\n", 413, "request_too_large");
    expect("POST " + path + host + "Content-Length: 9\r\n\r\n{", 408, "invalid_request_error");
    expect("POST " + path + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400,
           "invalid_request_error");
    expect("POST " + path + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400,
           "invalid_request_error");
    expect(post(path, kMessage, "Content-Encoding: gzip\r\n"), 415, "invalid_request_error");
    expect(post(path, kMessage, "Expect: wonders\r\n"), 417, "invalid_request_error");
  }
  std::string many;
  for (int i = 0; i < 101; ++i) many += "X-" + std::to_string(i) + ": 1\r\n";
  expect(post(kPath, kMessage, many), 431, "invalid_request_error");
  expect(post(kPath + "?" + std::string(9000, 'q'), kMessage), 414, "invalid_request_error");
  // Anthropic's clients ask for models, too.
  const std::string version = "anthropic-version: 2023-06-01\r\n";
  expect("GET /v1/models/other" + host + version + "\r\n", 404, "not_found_error");
  expect("GET /v1/files" + host + version + "\r\n", 404, "not_found_error");
  BOOST_TEST(generator.entries.empty());
}

BOOST_FIXTURE_TEST_CASE(other_apis_keep_their_form_whatever_the_header_says, Fixture) {
  start();
  Client client(*this);
  client.post(kChatPath, "{", "anthropic-version: 2023-06-01\r\n");
  BOOST_TEST(client.reply().json()["error"]["code"] == "invalid_value");
  client.get("/v1/models/other");
  BOOST_TEST(client.reply().json()["error"]["code"] == "model_not_found");
}

BOOST_FIXTURE_TEST_CASE(an_unknown_key_is_told_in_anthropics_form, Fixture) {
  const ApiKeys keys({"secret-key"});
  options.keys = &keys;
  start();
  for (const std::string& path : {kPath, kPath + "/count_tokens", kPath + "/batches"}) {
    expect(post(path, kMessage), 401, "authentication_error");
    expect(post(path, kMessage, "x-api-key: wrong\r\n"), 401, "authentication_error");
  }
  expect("GET /v1/models HTTP/1.1\r\nHost: x\r\nanthropic-version: 2023-06-01\r\n\r\n", 401,
         "authentication_error");
  Client client(*this);
  client.post(kPath, kMessage);
  BOOST_TEST(client.reply().header("WWW-Authenticate") == "Bearer realm=\"troupe\"");
  client.post(kPath + "/count_tokens", kMessage, "x-api-key: secret-key\r\n");
  BOOST_TEST(client.reply().status == 200);
}

BOOST_FIXTURE_TEST_CASE(what_the_server_cannot_do_now_is_told_in_anthropics_form, Fixture) {
  limits.generations_max = 1;
  start();
  generator.reject_with = {StatusCode::kResourceExhausted, "the queue is full"};
  expect(post(kPath, kMessage), 429, "rate_limit_error");
  generator.reject_with = {StatusCode::kUnavailable, "no worker is ready"};
  generator.reject_after = 0;
  expect(post(kPath, kMessage), 503, "overloaded_error");
  generator.reject_with = {StatusCode::kInternal, "broken"};
  generator.reject_after = 0;
  expect(post(kPath, kMessage), 500, "api_error");
  generator.reject_with = ok_status();
  Client busy(*this);
  busy.post(kPath, kMessage);
  until([&] { return generator.running() == 1; });
  Client refused(*this);
  refused.post(kPath, kMessage);
  const HttpReply reply = refused.reply();
  check(reply, 429, "rate_limit_error");
  BOOST_TEST(reply.header("Retry-After") == "1");
  generator.fail(1, {StatusCode::kUnavailable, "the worker is gone"});
  check(busy.reply(), 503, "overloaded_error");
}

BOOST_FIXTURE_TEST_CASE(without_a_model_it_is_anthropics_form_too, Fixture) {
  const ModelCatalogue none;
  models = &none;
  start();
  expect(post(kPath, kMessage), 503, "overloaded_error");
}

}  // namespace
}  // namespace troupe
