#include "apps/node/chat_templates.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/gguf_writer.h"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(chat_templates)

namespace {

// A file in memory, which refers to its bytes.
struct Model {
  std::string bytes;
  std::unique_ptr<GgufFile> file;
  const GgufFile& operator*() const { return *file; }
};

Model model_with(const std::string& plain, const std::string& with_tools = "") {
  test::TinyModelOptions options;
  options.chat_template = plain;
  test::GgufWriter writer = test::tiny_model_writer(options);
  if (!with_tools.empty()) writer.add_string("tokenizer.chat_template.tool_use", with_tools);
  Model model{writer.finish(), nullptr};
  // Short strings move with their string; a model is none.
  model.file =
      GgufFile::from_bytes(std::as_bytes(std::span<const char>(model.bytes)), "tiny.gguf").value();
  return model;
}

class TemplateFile {
 public:
  explicit TemplateFile(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              ("troupe_chat_templates_test_" + std::to_string(::getpid()) + ".jinja")) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemplateFile() { std::filesystem::remove(path_); }
  TemplateFile(const TemplateFile&) = delete;
  TemplateFile& operator=(const TemplateFile&) = delete;
  [[nodiscard]] std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void check_says(const Status& status, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    BOOST_TEST(status.message().find(part) != std::string::npos, status.message());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_models_template_for_tools_is_a_second_one) {
  const auto one = ChatTemplates::of(*model_with("{{ 1 }}"));
  BOOST_REQUIRE(one.ok());
  BOOST_TEST(one->plain()->source() == "{{ 1 }}");
  BOOST_TEST(one->with_tools() == nullptr);
  const auto two = ChatTemplates::of(*model_with("{{ 1 }}", "{{ tools }}"));
  BOOST_REQUIRE(two.ok());
  BOOST_TEST(two->plain()->source() == "{{ 1 }}");
  BOOST_TEST(two->with_tools()->source() == "{{ tools }}");
}

BOOST_AUTO_TEST_CASE(errors_in_a_model_name_the_file_the_key_the_line_and_the_way_out) {
  check_says(ChatTemplates::of(*model_with("\n{% if %}")).status(),
             {"tiny.gguf", "(tokenizer.chat_template)", "line 2", "--chat-template"});
  check_says(ChatTemplates::of(*model_with("x", "{{ x | nofilter }}")).status(),
             {"tool_use", "line 1", "'nofilter'"});
}

BOOST_AUTO_TEST_CASE(a_file_replaces_all_of_the_models_templates_broken_ones_too) {
  const TemplateFile file("{{ 3 }}");
  const auto chosen = ChatTemplates::choose({file.path()}, *model_with("{% if %}", "{% for %}"));
  BOOST_REQUIRE_MESSAGE(chosen.ok(), chosen.status().message());
  BOOST_TEST(chosen->plain()->source() == "{{ 3 }}");
  BOOST_TEST(chosen->with_tools() == nullptr);
  BOOST_TEST(ChatTemplates::check({file.path()}).ok());
  BOOST_TEST(ChatTemplates::check({}).ok());
}

BOOST_AUTO_TEST_CASE(errors_in_a_file_name_it_and_the_line) {
  const TemplateFile broken("a\nb\n{{ c");
  check_says(ChatTemplates::check({broken.path()}), {broken.path(), "line 3"});
  const TemplateFile huge(std::string((1 << 20) + 5, 'x'));
  check_says(ChatTemplates::check({huge.path()}), {huge.path(), "source_bytes_max"});
  check_says(ChatTemplates::check({"/nowhere/x.jinja"}), {"/nowhere/x.jinja", "--chat-template"});
  check_says(ChatTemplates::check({"/tmp"}), {"/tmp"});
}

BOOST_AUTO_TEST_SUITE_END()
