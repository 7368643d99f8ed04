#include "base/config/config_file.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/base/config/scratch_file.h"

namespace troupe {
namespace {

const std::vector<std::string> kOwn = {"threads", "kv-memory-mib"};

std::string refusal(const std::string& text) {
  const ScratchFile file(text);
  const auto read = read_config_file(file.path(), "decode", kOwn);
  if (read.ok() && read->faults.empty()) return "";
  BOOST_TEST((!read.ok() || read->faults.size() == 1));
  const std::string message = read.ok() ? read->faults.front() : read.status().message();
  BOOST_TEST(message.starts_with(file.path() + ":"), message);
  return message.substr(file.path().size());
}

BOOST_AUTO_TEST_CASE(settings_of_other_programs_are_left_to_them) {
  const ScratchFile file(
      "http-port = 8000\nthreads = 3\n[router]\nwhatever = 1\n[prefill]\n"
      "threads = 5\n");
  const auto read = read_config_file(file.path(), "decode", kOwn);
  BOOST_REQUIRE(read.ok());
  BOOST_TEST(read->values.size() == 1U);
  BOOST_TEST(read->values.at("threads").texts.front() == "3");
  BOOST_TEST(read->values.at("threads").place == file.path() + ":2");
}

BOOST_AUTO_TEST_CASE(an_unknown_name_is_refused_with_its_line_and_the_nearest_one) {
  BOOST_TEST(refusal("\nthrads = 3\n") == ":2: unknown setting \"thrads\"; did you mean threads?");
  BOOST_TEST(refusal("kv_memory_mib = 3\n") ==
             ":1: unknown setting \"kv_memory_mib\"; did you mean kv-memory-mib?");
  BOOST_TEST(refusal("[decode]\n\nkv-memory = 3\n") ==
             ":3: unknown setting \"kv-memory\" in [decode]; did you mean kv-memory-mib?");
  BOOST_TEST(refusal("colour = 3\n") ==
             ":1: unknown setting \"colour\"; the programs' --help lists the settings");
}

BOOST_AUTO_TEST_CASE(a_setting_of_another_program_in_the_own_table_is_refused) {
  BOOST_TEST(refusal("[decode]\nhttp-port = 1\n") ==
             ":2: http-port is no setting of [decode]; move it to the table of the program that "
             "it is for");
}

BOOST_AUTO_TEST_CASE(an_unknown_table_is_refused) {
  BOOST_TEST(refusal("[decoder]\nthreads = 1\n") ==
             ":1: unknown table [decoder]; did you mean decode?");
  BOOST_TEST(refusal("[database]\n").find("router, prefill, decode, monitor, serve") !=
             std::string::npos);
  BOOST_TEST(refusal("decode = 1\n") ==
             ":1: decode is the name of a table; write [decode] and its settings below it");
}

BOOST_AUTO_TEST_CASE(broken_toml_is_refused_with_line_and_column) {
  BOOST_TEST(refusal("threads = 1\nthreads = 2\n").starts_with(":2:"));
  BOOST_TEST(refusal("threads = \n").starts_with(":1:"));
  BOOST_TEST(refusal("threads = 1\n\"\xFF\xFE\" = 2\n").find("not valid TOML") !=
             std::string::npos);
  BOOST_TEST(refusal(std::string("a\0b", 3)).find("not valid TOML") != std::string::npos);
  const std::string deep = "x = " + std::string(100000, '[');
  BOOST_TEST(refusal(deep).find("not valid TOML") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_none_is_refused) {
  const auto missing = read_config_file("/nonexistent/cluster.toml", "decode", kOwn);
  BOOST_TEST((missing.status().code() == StatusCode::kNotFound));
  BOOST_TEST(
      missing.status().message().find("/nonexistent/cluster.toml: cannot be read (No such") == 0U);
  const auto folder = read_config_file("/", "decode", kOwn);
  BOOST_TEST(!folder.ok());
  BOOST_TEST(folder.status().message().find("cannot be read") != std::string::npos);
  const ScratchFile large(std::string(kConfigBytesMax + 1, '\n'));
  const auto refused = read_config_file(large.path(), "decode", kOwn);
  BOOST_TEST(refused.status().message().find("larger than 1048576 bytes") != std::string::npos);
}

}  // namespace
}  // namespace troupe
