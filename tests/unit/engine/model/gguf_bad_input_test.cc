#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

#include "engine/model/gguf_file.h"
#include "engine/model/inspect.h"
#include "engine/model/model_config.h"
#include "tests/support/gguf_mutations.h"

using namespace troupe;
using namespace troupe::test;

namespace troupe::test {
std::ostream& operator<<(std::ostream& out, const GgufMutation& mutation) {
  return out << mutation.name;
}
}  // namespace troupe::test

BOOST_AUTO_TEST_SUITE(gguf_bad_input)

namespace {

// Parses from memory of exactly the file's size, so that a sanitizer sees any read beyond it.
Status load(const std::string& bytes) {
  const std::vector<std::byte> copy(
      reinterpret_cast<const std::byte*>(bytes.data()),
      reinterpret_cast<const std::byte*>(bytes.data()) + bytes.size());
  const auto file = GgufFile::from_bytes(copy, "broken.gguf");
  if (!file.ok()) return file.status();
  // A sound container with an unusable model must still be described.
  BOOST_TEST(inspect_text(*file.value()).find("cannot be served") != std::string::npos);
  return read_model(*file.value()).status();
}

bool names_a_fix(const std::string& message) {
  for (const char* fix : {"download it again", "onvert the model again", "Use a ",
                          "Merge the parts", "Give the path", "Get the little-endian"})
    if (message.find(fix) != std::string::npos) return true;
  return false;
}

}  // namespace

BOOST_DATA_TEST_CASE(a_broken_file_gives_an_error_with_input_rule_and_fix,
                     boost::unit_test::data::make(gguf_mutations()), mutation) {
  const Status status = load(mutation.bytes);
  BOOST_TEST_CONTEXT(mutation.name << ": " << status.message()) {
    BOOST_REQUIRE(!status.ok());
    BOOST_TEST(to_string(status.code()) == to_string(mutation.code));
    BOOST_TEST(status.message().starts_with("broken.gguf: "));
    BOOST_TEST(status.message().find(mutation.message_part) != std::string::npos);
    BOOST_TEST(names_a_fix(status.message()));
  }
}

BOOST_AUTO_TEST_CASE(the_mutations_are_many_and_their_names_differ) {
  std::set<std::string> names;
  for (const GgufMutation& mutation : gguf_mutations()) names.insert(mutation.name);
  BOOST_TEST(names.size() == gguf_mutations().size());
  BOOST_TEST(names.size() >= 40U);
}

BOOST_DATA_TEST_CASE(a_sound_file_of_any_shape_loads,
                     boost::unit_test::data::make(sound_gguf_files()), sound) {
  const std::span<const char> bytes(sound.bytes);
  const auto file = GgufFile::from_bytes(std::as_bytes(bytes), "sound.gguf");
  BOOST_REQUIRE_MESSAGE(file.ok(), file.status().message());
  const auto model = read_model(*file.value());
  BOOST_TEST(model.ok(), model.status().message());
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_gives_an_error) {
  const std::string bytes = smallest_model_writer().finish();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Status status = load(bytes.substr(0, size));
    BOOST_REQUIRE_MESSAGE(status.code() == StatusCode::kDataLoss, "cut to " << size << " bytes");
    BOOST_REQUIRE(names_a_fix(status.message()));
  }
}

// Every byte of the directory in turn set to the extremes: an error or a sound file, never a crash.
BOOST_AUTO_TEST_CASE(a_file_with_any_byte_changed_never_ends_the_process) {
  GgufWriter writer = smallest_model_writer();
  uint64_t data = 0;
  const std::string bytes = writer.finish(nullptr, &data);
  size_t refused = 0;
  for (size_t at = 0; at < data; ++at) {
    for (const char value : {'\0', '\x7F', '\xFF'}) {
      std::string changed = bytes;
      changed[at] = value;
      const auto file = GgufFile::from_bytes(std::as_bytes(std::span<const char>(changed)), "x");
      if (!file.ok() || !read_model(*file.value()).ok()) ++refused;
    }
  }
  BOOST_TEST(refused > data);
}

BOOST_AUTO_TEST_SUITE_END()
