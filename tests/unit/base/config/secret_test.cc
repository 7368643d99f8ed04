#include "base/config/secret.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/base/config/scratch_file.h"

namespace troupe {
namespace {

const std::string kSecret = "correct horse battery staple";

std::string refusal(const SecretOptions& options) {
  const auto read = read_secret(options);
  BOOST_TEST(!read.ok());
  const std::string& message = read.status().message();
  BOOST_TEST(message.find("horse") == std::string::npos, "the secret leaks: " << message);
  return message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_CASE(the_secret_is_the_file_without_its_line_end) {
  const ScratchFile file(kSecret + "\r\n");
  BOOST_TEST(read_secret({file.path(), ""}).value() == kSecret);
}

BOOST_AUTO_TEST_CASE(the_secret_comes_from_the_variable_as_well) {
  BOOST_TEST(read_secret({"", kSecret}).value() == kSecret);
}

BOOST_AUTO_TEST_CASE(a_group_may_read_the_file_but_not_everybody) {
  const ScratchFile shared(kSecret, 0640);
  BOOST_TEST(read_secret({shared.path(), ""}).ok());
  const ScratchFile open_to_all(kSecret, 0604);
  const std::string message = refusal({open_to_all.path(), ""});
  BOOST_TEST(has(message, "every user"), message);
  BOOST_TEST(has(message, "chmod 600 " + open_to_all.path()), message);
}

BOOST_AUTO_TEST_CASE(both_or_neither_are_refused) {
  const ScratchFile file(kSecret);
  BOOST_TEST(has(refusal({file.path(), kSecret}), "both set"));
  BOOST_TEST(has(refusal({"", ""}), "--secret-file"));
}

BOOST_AUTO_TEST_CASE(an_empty_short_long_or_missing_secret_is_refused_with_the_fix) {
  const ScratchFile empty("\n");
  const ScratchFile tiny("horse");
  const ScratchFile huge("horse" + std::string(kSecretBytesMax, 'x'));
  BOOST_TEST(has(refusal({empty.path(), ""}), "is empty; make one with"));
  BOOST_TEST(has(refusal({tiny.path(), ""}), "fewer than 16 bytes"));
  BOOST_TEST(has(refusal({huge.path(), ""}), "more than 4096 bytes"));
  BOOST_TEST(has(refusal({"", "horse"}), "TROUPE_SECRET has fewer than 16 bytes"));
  BOOST_TEST(has(refusal({"/nonexistent/secret", ""}), "cannot be read (No such file"));
  BOOST_TEST(has(refusal({"/", ""}), "every user"));
}

}  // namespace
}  // namespace troupe
