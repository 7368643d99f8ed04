#include "loadgen/sse.h"

#include <boost/test/unit_test.hpp>

#include "loadgen/chunk.h"
#include "loadgen/limits.h"

namespace troupe::loadgen {
namespace {

std::vector<std::string> events_of(SseParser& parser, std::string_view bytes) {
  std::vector<std::string> events;
  BOOST_REQUIRE(parser.push(bytes, events).ok());
  return events;
}

BOOST_AUTO_TEST_SUITE(sse)

BOOST_AUTO_TEST_CASE(every_split_of_a_stream_gives_the_same_events) {
  const std::string stream =
      ": ping\n\ndata: {\"a\":1}\n\ndata:two\r\ndata: lines\r\n\r\nevent: x\rdata: cr\r\r"
      "id: 7\nretry: 3\n\ndata\n\ndata: [DONE]\n\n";
  const std::vector<std::string> expected = {"{\"a\":1}", "two\nlines", "cr", "", "[DONE]"};
  for (size_t first = 0; first <= stream.size(); ++first) {
    for (size_t second = first; second <= stream.size(); ++second) {
      SseParser parser;
      std::vector<std::string> events;
      for (const auto& [begin, end] : {std::pair(size_t{0}, first), std::pair(first, second),
                                       std::pair(second, stream.size())}) {
        BOOST_REQUIRE(
            parser.push(std::string_view(stream).substr(begin, end - begin), events).ok());
      }
      BOOST_TEST_REQUIRE(events == expected, boost::test_tools::per_element());
      BOOST_TEST_REQUIRE(!parser.has_rest());
    }
  }
}

BOOST_AUTO_TEST_CASE(an_event_without_its_blank_line_is_a_rest) {
  SseParser parser;
  BOOST_TEST(events_of(parser, "data: x\n").empty());
  BOOST_TEST(parser.has_rest());
  BOOST_TEST(events_of(parser, "\n").size() == 1U);
  BOOST_TEST(events_of(parser, "dat").empty());
  BOOST_TEST(parser.has_rest());
}

BOOST_AUTO_TEST_CASE(an_event_without_end_is_cut_off) {
  SseParser parser;
  std::vector<std::string> events;
  const std::string piece(1 << 20, 'x');
  Status status = parser.push("data: ", events);
  size_t pushed = 0;
  for (; status.ok() && pushed < 2 * kEventBytesMax; pushed += piece.size())
    status = parser.push(piece, events);
  BOOST_TEST((status.code() == StatusCode::kResourceExhausted));
  BOOST_TEST(pushed <= kEventBytesMax + piece.size());
}

BOOST_AUTO_TEST_CASE(chunks_of_both_endpoints_are_read) {
  const auto chat = parse_chunk(
      R"({"choices":[{"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]})");
  BOOST_REQUIRE(chat.ok());
  BOOST_TEST(chat->has_choices);
  BOOST_TEST(!chat->is_finished);
  BOOST_TEST(chat->text == "Hi");
  const auto thinking = parse_chunk(R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})");
  BOOST_TEST(thinking->text == "hm");
  const auto text = parse_chunk(R"({"choices":[{"text":" x","finish_reason":"stop"}],)"
                                R"("usage":{"prompt_tokens":3,"completion_tokens":2}})");
  BOOST_TEST(text->text == " x");
  BOOST_TEST(text->is_finished);
  BOOST_TEST((text->usage == Usage{3, 2}));
  const auto usage =
      parse_chunk(R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}})");
  BOOST_TEST(!usage->has_choices);
  BOOST_TEST(usage->usage.has_value());
  BOOST_TEST(parse_chunk("[DONE]")->is_done);
}

BOOST_AUTO_TEST_CASE(malformed_chunks_and_errors_are_told_apart) {
  for (const char* bad : {"", "{", "[]", "7", "<html>", R"({"choices":7})", R"({"choices":[7]})",
                          R"({"choices":[{"delta":[]}]})"}) {
    const auto chunk = parse_chunk(bad);
    BOOST_TEST(!chunk.ok(), bad);
    BOOST_TEST((chunk.status().code() == StatusCode::kDataLoss));
  }
  BOOST_TEST(parse_chunk(R"({"error":{"message":"full"}})")->error.value() == "full");
  BOOST_TEST(parse_chunk(R"({"error":"full"})")->error.value() == "full");
  BOOST_TEST(parse_chunk(R"({"error":)" + std::string(100000, '[') + std::string(100000, ']') + "}")
                 ->error.has_value());
  BOOST_TEST(!parse_chunk(R"({"usage":{"completion_tokens":-1}})")->usage.has_value());
  BOOST_TEST(!parse_chunk(R"({"usage":{"completion_tokens":1e30}})")->usage.has_value());
  BOOST_TEST(error_message_of(R"({"error":{"message":"no"}})") == "no");
  BOOST_TEST(error_message_of(R"({"detail":"no"})") == "no");
  BOOST_TEST(error_message_of("Bad Gateway") == "Bad Gateway");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::loadgen
