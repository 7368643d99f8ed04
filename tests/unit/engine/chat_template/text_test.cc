#include "engine/chat_template/text.h"

#include <boost/test/unit_test.hpp>
#include <random>

#include "engine/chat_template/strftime.h"
#include "engine/chat_template/unicode.h"

namespace {

using namespace troupe;

char letter_of(TextOrigin origin) {
  return origin == TextOrigin::kData ? 'd' : 't';
}

// One letter per byte: the plainest way to keep origins.
std::string origins_of(const TemplateText& text) {
  std::string letters;
  for (const TemplateText::Run& run : text.runs()) {
    letters.append(run.end - letters.size(), letter_of(run.origin));
  }
  return letters;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chat_template_text)

BOOST_AUTO_TEST_CASE(runs_agree_with_one_origin_per_byte) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    TemplateText text;
    std::string bytes;
    std::string letters;
    for (int step = 0; step < 20; ++step) {
      const TextOrigin origin = random() % 2 == 0 ? TextOrigin::kData : TextOrigin::kTemplate;
      const std::string part(random() % 4, static_cast<char>('a' + random() % 26));
      if (random() % 3 == 0 && !text.empty()) {
        const size_t begin = random() % (text.size() + 1);
        const size_t end = begin + random() % (text.size() - begin + 1);
        const TemplateText cut = text.slice(begin, end);
        BOOST_REQUIRE_EQUAL(cut.bytes(), bytes.substr(begin, end - begin));
        BOOST_REQUIRE_EQUAL(origins_of(cut), letters.substr(begin, end - begin));
        const bool has_data = letters.substr(begin, end - begin).find('d') != std::string::npos;
        BOOST_REQUIRE(text.origin_of(begin, end) ==
                      (has_data ? TextOrigin::kData : TextOrigin::kTemplate));
        text.append(cut);
        bytes += bytes.substr(begin, end - begin);
        letters += letters.substr(begin, end - begin);
      }
      text.append(part, origin);
      bytes += part;
      letters += std::string(part.size(), letter_of(origin));
    }
    BOOST_REQUIRE_EQUAL(text.bytes(), bytes);
    BOOST_REQUIRE_EQUAL(origins_of(text), letters);
    for (size_t i = 1; i < text.runs().size(); ++i) {
      BOOST_REQUIRE(text.runs()[i].origin != text.runs()[i - 1].origin);
    }
  }
}

BOOST_AUTO_TEST_CASE(bad_utf8_counts_byte_by_byte_and_round_trips) {
  using namespace chat_template;
  for (const std::string bytes : {"\xC3", "\xE2\x82", "\xF5\x80\x80\x80", "\xED\xA0\x80",
                                  "\xC0\xAF", "a\x80z", "\xE2\x82\xAC\xFF"}) {
    std::string copy;
    for (size_t at = 0; at < bytes.size();) {
      const CodePoint point = decode(bytes, at);
      append_utf8(copy, point.value);
      at += point.bytes;
    }
    BOOST_CHECK(copy == bytes);
  }
  BOOST_CHECK_EQUAL(code_point_count("\xE2\x82\xAC\xFF"), 2u);
  BOOST_CHECK_EQUAL(code_point_count("\xED\xA0\x80"), 3u);
}

BOOST_AUTO_TEST_CASE(dates_hold_over_leap_years_and_before_1970) {
  using chat_template::format_time;
  const auto date = [](int64_t seconds) { return format_time(seconds, "%F %T %j %u").value(); };
  BOOST_CHECK_EQUAL(date(0), "1970-01-01 00:00:00 001 4");
  BOOST_CHECK_EQUAL(date(-1), "1969-12-31 23:59:59 365 3");
  BOOST_CHECK_EQUAL(date(951782400), "2000-02-29 00:00:00 060 2");
  BOOST_CHECK_EQUAL(date(4107542400), "2100-03-01 00:00:00 060 1");
  BOOST_CHECK_EQUAL(date(1735689599), "2024-12-31 23:59:59 366 2");
  BOOST_CHECK(format_time(INT64_MAX, "%Y").ok());
  BOOST_CHECK(format_time(INT64_MIN, "%Y").ok());
  BOOST_CHECK(!format_time(0, "%Q").ok());
  BOOST_CHECK(!format_time(0, "%").ok());
}

BOOST_AUTO_TEST_SUITE_END()
