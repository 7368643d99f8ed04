#include "engine/model/model_digest.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

#include "tests/support/gguf_writer.h"

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(model_digests)

namespace {

std::string digest_of(const std::string& bytes) {
  return model_digest(
      *GgufFile::from_bytes(std::as_bytes(std::span<const char>(bytes)), "x.gguf").value());
}

}  // namespace

BOOST_AUTO_TEST_CASE(equal_files_have_equal_digests_and_each_changed_byte_another) {
  const std::string bytes = make_tiny_model({});
  const std::string digest = digest_of(bytes);
  BOOST_TEST(digest.size() == 32U);
  BOOST_TEST(digest.find_first_not_of("0123456789abcdef") == std::string::npos);
  BOOST_TEST(digest_of(std::string(bytes)) == digest);
  std::set<std::string> seen{digest};
  // Within the tensors' data, so that the file stays readable.
  for (size_t at = bytes.size() - 1; at > bytes.size() / 2; at -= 997) {
    std::string other = bytes;
    other[at] ^= 1;
    BOOST_TEST(seen.insert(digest_of(other)).second, at);
  }
}

BOOST_AUTO_TEST_SUITE_END()
