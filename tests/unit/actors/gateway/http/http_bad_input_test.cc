// Requests that break HTTP's rules or ours. After each, the server still serves.

#include <boost/test/unit_test.hpp>

#include "engine/tokenizer/utf8.h"
#include "tests/unit/actors/gateway/http/http_fixture.h"

namespace troupe {
namespace {

using namespace test;

struct BadInputFixture : HttpFixture {
  BadInputFixture() {
    limits.body_bytes_max = 10'000;
    limits.body_timeout = std::chrono::milliseconds(500);
    limits.header_timeout = std::chrono::milliseconds(500);
  }
  ~BadInputFixture() {
    Client witness(*this);
    witness.get("/ping");
    BOOST_TEST(witness.reply().status == 200);
    BOOST_TEST(generator.entries.empty());
  }
  void expect(const HttpReply& reply, int status, const std::string& code) {
    BOOST_TEST(reply.status == status, reply.head);
    BOOST_REQUIRE(!find_invalid_utf8(reply.body));
    BOOST_TEST(reply.body.size() < 4096U);
    BOOST_TEST(reply.json()["error"]["code"] == code, reply.body);
    BOOST_TEST(reply.json()["error"]["type"].is_string());
    BOOST_TEST(!reply.header("X-Request-Id").empty());
  }
};

BOOST_FIXTURE_TEST_CASE(unknown_paths_and_wrong_methods_are_named, BadInputFixture) {
  start();
  Client client(*this);
  for (const char* path : {"/", "/v1", "/v1/chat", "/v1/chat/completions/", "/v1/models/",
                           "/v1/rerank", "/%00", "/../etc/passwd"}) {
    client.get(path);
    expect(client.reply(), 404, "not_found");
  }
  client.get("/" + std::string(5000, 'p'));
  expect(client.reply(), 404, "not_found");
  for (const char* method : {"GET", "PUT", "DELETE", "PATCH"}) {
    client.get(kChatPath, method);
    const HttpReply reply = client.reply();
    expect(reply, 405, "method_not_allowed");
    BOOST_TEST(reply.header("Allow") == "POST, OPTIONS");
  }
  client.post("/health", "{}");
  const HttpReply reply = client.reply();
  expect(reply, 405, "method_not_allowed");
  BOOST_TEST(reply.header("Allow") == "GET, HEAD, OPTIONS");
}

BOOST_FIXTURE_TEST_CASE(unknown_methods_and_broken_request_lines_are_refused, BadInputFixture) {
  start();
  for (const char* bytes : {"BREW /pot HTTP/1.1\r\n\r\n", "GET\r\n\r\n", "\x01\x02\x03\r\n\r\n",
                            "get / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno colon here\r\n\r\n",
                            "CONNECT x:1 HTTP/1.1\r\n\r\n"}) {
    Client client(*this);
    client.send(bytes);
    const HttpReply reply = client.reply();
    BOOST_TEST((reply.status == 400 || reply.status == 501), bytes << reply.head);
    BOOST_TEST(reply.json()["error"]["message"].is_string());
    BOOST_TEST(client.at_end());
  }
}

BOOST_FIXTURE_TEST_CASE(foreign_bytes_come_back_as_valid_text, BadInputFixture) {
  start();
  Client client(*this);
  client.post(kChatPath,
              "{\"model\":\"tiny\",\"messages\":[{\"role\":\"user\",\"content\":"
              "\"\xC4\xE3\xC0\xAF\"}]}");
  const HttpReply content = client.reply();
  expect(content, 400, "invalid_value");
  BOOST_TEST(content.json()["error"]["param"] == "messages[0].content");
  client.post(kChatPath, chat_body(",\"\xC4\xE3\":1"));
  expect(client.reply(), 400, "invalid_value");
  client.post(kChatPath, chat_body(",\"stop\":\"\xFF\""));
  expect(client.reply(), 400, "invalid_value");
  client.post(kChatPath, chat_body(R"(,"user":"\ud800")"));
  expect(client.reply(), 400, "invalid_value");
  client.get("/\xC4\xE3\xC0\xAF");
  expect(client.reply(), 404, "not_found");
  client.get("/v1/models/\xC4\xE3");
  expect(client.reply(), 404, "model_not_found");
  client.get("/v1/models/%c4%e3");
  expect(client.reply(), 404, "model_not_found");
  client.send("GET /nowhere HTTP/1.1\r\nHost: x\r\nX-Request-Id: \xC4\xE3\r\n\r\n");
  const HttpReply header = client.reply();
  expect(header, 404, "not_found");
  BOOST_TEST(header.header("X-Request-Id").starts_with("req-"));
}

BOOST_FIXTURE_TEST_CASE(a_bad_stream_request_is_a_plain_error, BadInputFixture) {
  start();
  Client client(*this);
  client.post(kChatPath, R"({"model":"tiny","messages":[],"stream":true})");
  const HttpReply reply = client.reply();
  expect(reply, 400, "invalid_value");
  BOOST_TEST(reply.header("Content-Type") == "application/json");
  BOOST_TEST(reply.json()["error"]["param"] == "messages");
}

BOOST_FIXTURE_TEST_CASE(a_prompt_over_the_context_names_both_numbers, BadInputFixture) {
  start();
  Client client(*this);
  client.post("/v1/completions", R"({"model":"tiny","prompt":")" + std::string(300, 'x') + "\"}");
  const HttpReply reply = client.reply();
  expect(reply, 400, "context_length_exceeded");
  const std::string message = reply.json()["error"]["message"];
  BOOST_TEST(message.find("200") != std::string::npos);
  BOOST_TEST(message.find("300") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(long_request_ids_are_replaced, BadInputFixture) {
  start();
  Client client(*this);
  client.send("GET /ping HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + std::string(129, 'i') +
              "\r\n\r\n");
  BOOST_TEST(client.reply().header("X-Request-Id").starts_with("req-"));
  client.send("GET /ping HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + std::string(128, 'i') +
              "\r\n\r\n");
  BOOST_TEST(client.reply().header("X-Request-Id") == std::string(128, 'i'));
}

BOOST_FIXTURE_TEST_CASE(a_body_over_the_limit_is_refused_without_reading_it, BadInputFixture) {
  start();
  for (const char* length : {"10001", "10737418240", "18446744073709551615"}) {
    Client client(*this);
    client.send(std::string("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: ") + length +
                "\r\n\r\n");
    expect(client.reply(), 413, "body_too_large");
  }
  Client exact(*this);
  const std::string padding(10'000 - 15, ' ');
  exact.post("/tokenize", padding + R"({"prompt":"hi"})");
  BOOST_TEST(exact.reply().status == 200);
}

BOOST_FIXTURE_TEST_CASE(a_chunked_body_without_end_is_refused_at_the_limit, BadInputFixture) {
  start();
  Client client(*this);
  client.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 11; ++i) client.send("3e8\r\n" + std::string(1000, 'x') + "\r\n");
  expect(client.reply(), 413, "body_too_large");
  client.read_to_end();
}

BOOST_FIXTURE_TEST_CASE(a_chunked_body_is_read_like_any_other, BadInputFixture) {
  start();
  Client client(*this);
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\n{\"pro\r\na\r\nmpt\":\"hi\"}\r\n0\r\n\r\n");
  BOOST_TEST(client.reply().json()["count"] == 2);
}

BOOST_FIXTURE_TEST_CASE(a_slow_body_is_given_up_at_its_deadline, BadInputFixture) {
  limits.body_timeout = std::chrono::milliseconds(5);
  start();
  Client client(*this);
  client.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  expect(client.reply(), 408, "body_timeout");
  BOOST_TEST(client.at_end());
}

BOOST_FIXTURE_TEST_CASE(slow_headers_are_closed_at_their_deadline, BadInputFixture) {
  limits.header_timeout = std::chrono::milliseconds(5);
  start();
  Client client(*this);
  client.send("GET /ping HTTP/1.1\r\nHo");
  client.read_to_end();
  until([&] { return frontend->open_connections() == 0; });
}

BOOST_FIXTURE_TEST_CASE(a_body_that_breaks_off_is_forgotten, BadInputFixture) {
  start();
  Client client(*this);
  client.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"prompt\"");
  client.close();
  until([&] { return frontend->open_connections() == 0; });
}

// Two lengths: whoever stands in between may believe the other one.
BOOST_FIXTURE_TEST_CASE(smuggled_requests_are_not_served, BadInputFixture) {
  start();
  Client client(*this);
  const std::string smuggled = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
      "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
      smuggled);
  const HttpReply reply = client.reply();
  expect(reply, 400, "invalid_framing");
  BOOST_TEST(reply.header("Connection") == "close");
  client.read_to_end();
  BOOST_TEST(client.received.find("\"object\":\"list\"") == std::string::npos);
  for (const char* framing :
       {"Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: -1\r\n",
        "Content-Length: 1x\r\n", "Content-Length: +3\r\n", "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: xchunked\r\n"}) {
    Client bad(*this);
    bad.send(std::string("POST /tokenize HTTP/1.1\r\nHost: x\r\n") + framing + "\r\n{}\r\n" +
             smuggled);
    const HttpReply refused = bad.reply();
    BOOST_TEST((refused.status == 400 || refused.status == 413 || refused.status == 501),
               framing << refused.head);
    bad.read_to_end();
    BOOST_TEST(bad.received.find("\"object\":\"list\"") == std::string::npos, framing);
  }
}

BOOST_FIXTURE_TEST_CASE(broken_chunks_are_refused, BadInputFixture) {
  start();
  Client client(*this);
  client.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  expect(client.reply(), 400, "invalid_http");
  client.read_to_end();
}

BOOST_FIXTURE_TEST_CASE(floods_of_headers_are_refused_and_closed, BadInputFixture) {
  start();
  std::string many = "GET /ping HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 50'000; ++i) many += "X-Header-" + std::to_string(i) + ": 1\r\n";
  for (const std::string& flood :
       {"GET /ping HTTP/1.1\r\nX-Large: " + std::string(2'000'000, 'x') + "\r\n\r\n",
        "GET /" + std::string(1'000'000, 'u') + " HTTP/1.1\r\n\r\n", many + "\r\n"}) {
    Client client(*this);
    try {
      client.send(flood);
    } catch (const kj::Exception&) {
      // Cut before all was sent.
    }
    client.read_to_end();
    BOOST_TEST((client.received.empty() || client.received.starts_with("HTTP/1.1 431")),
               client.received.substr(0, 100));
    until([&] { return frontend->open_connections() == 0; });
  }
}

}  // namespace
}  // namespace troupe
