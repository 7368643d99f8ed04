#include "transport/session/frames.h"

#include <boost/test/unit_test.hpp>

#include "transport/session/bytes.h"
#include "transport/session/limits.h"

namespace troupe {
namespace {

BOOST_AUTO_TEST_SUITE(frames)

BOOST_AUTO_TEST_CASE(frames_come_out_whole_whatever_the_sizes_in_which_they_arrive) {
  std::string bytes;
  for (int i = 0; i < 20; ++i) {
    bytes += encode_frame({FrameKind::kPing, std::string(static_cast<size_t>(i * 7), 'x')});
  }
  for (const size_t step : {size_t{1}, size_t{2}, size_t{13}, bytes.size()}) {
    FrameReader reader;
    int frames = 0;
    for (size_t at = 0; at < bytes.size(); at += step) {
      reader.add(std::string_view(bytes).substr(at, step));
      while (true) {
        auto frame = reader.next();
        BOOST_REQUIRE(frame.ok());
        if (!frame.value()) break;
        BOOST_TEST(frame.value()->payload.size() == static_cast<size_t>(frames * 7));
        ++frames;
      }
    }
    BOOST_TEST(frames == 20);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_a_frame_is_refused_before_it_is_stored) {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1"), std::string(4, '\0'),
                                   std::string("\x05\x00\x00\x00\x63"
                                               "four",
                                               9)}) {
    FrameReader reader;
    reader.add(bytes);
    const auto frame = reader.next();
    BOOST_REQUIRE(!frame.ok());
    BOOST_TEST((frame.status().code() == StatusCode::kDataLoss));
  }
}

BOOST_AUTO_TEST_CASE(a_reader_of_truncated_fields_turns_bad_and_gives_nothing) {
  ByteWriter out;
  out.u32(7);
  out.text("hello");
  out.u64(9);
  const std::string bytes = out.take();
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(std::string_view(bytes).substr(0, size));
    static_cast<void>(in.u32());
    static_cast<void>(in.text(100));
    BOOST_TEST(in.u64() == 0U);
    BOOST_TEST(!in.complete());
  }
  ByteReader in(bytes);
  BOOST_TEST(in.u32() == 7U);
  BOOST_TEST(in.text(5) == "hello");
  BOOST_TEST(in.u64() == 9U);
  BOOST_TEST(in.complete());
  ByteReader limited(bytes);
  static_cast<void>(limited.u32());
  BOOST_TEST(limited.text(4).empty());
  BOOST_TEST(!limited.good());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
