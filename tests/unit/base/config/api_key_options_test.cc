#include "base/config/api_key_options.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/base/config/scratch_file.h"

namespace troupe {
namespace {

using Keys = std::vector<std::string>;

std::string refusal(const ApiKeyOptions& options) {
  const auto read = read_api_keys(options);
  BOOST_TEST(!read.ok());
  const std::string& message = read.status().message();
  BOOST_TEST(message.find("horse") == std::string::npos, "a key leaks: " << message);
  return message;
}

BOOST_AUTO_TEST_SUITE(api_key_options)

BOOST_AUTO_TEST_CASE(without_keys_there_are_none) {
  BOOST_TEST(read_api_keys({}).value().empty());
}

BOOST_AUTO_TEST_CASE(keys_come_from_both_places_and_comments_and_blanks_do_not_count) {
  const ScratchFile file("# ours\n\n  from-the-file  \r\nanother-one\n");
  const Keys keys = read_api_keys({{"from-a-flag"}, file.path()}).value();
  BOOST_TEST(keys == (Keys{"from-a-flag", "from-the-file", "another-one"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_a_key_is_refused_without_being_quoted) {
  const ScratchFile spaced("good-enough-key\nhorse battery staple\n");
  BOOST_TEST(refusal({{}, spaced.path()}).find(":2 has a key") != std::string::npos);
  BOOST_TEST(refusal({{"horse"}, ""}).find("api-key has a key") != std::string::npos);
  BOOST_TEST(refusal({{std::string(600, 'x')}, ""}).find("8 to 512") != std::string::npos);
  BOOST_TEST(refusal({{"horse\x01horse"}, ""}).find("visible ASCII") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_without_a_key_or_open_to_all_opens_no_server) {
  const ScratchFile empty("# none yet\n");
  BOOST_TEST(refusal({{}, empty.path()}).find("has no key") != std::string::npos);
  const ScratchFile open_to_all("horse-battery\n", 0644);
  BOOST_TEST(refusal({{}, open_to_all.path()}).find("chmod 600") != std::string::npos);
  BOOST_TEST(refusal({{}, "/nonexistent/keys"}).find("cannot be read") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
