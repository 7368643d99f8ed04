#include "engine/model/inspect.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/gguf_writer.h"

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(inspect)

namespace {

std::string text_of(const GgufWriter& writer) {
  const std::string bytes = writer.finish();
  const auto file = GgufFile::from_bytes(std::as_bytes(std::span<const char>(bytes)), "a.gguf");
  BOOST_REQUIRE_MESSAGE(file.ok(), file.status().message());
  return inspect_text(*file.value());
}

bool has_line(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_text_tells_metadata_tensors_totals_numbers_and_memory) {
  TinyModelOptions options;
  options.weights = WeightType::kQ8_0;
  options.vocab = 512;
  const std::string text = text_of(tiny_model_writer(options));
  BOOST_TEST_INFO(text);
  BOOST_TEST(text.starts_with("File a.gguf\n  GGUF version 3, "));
  BOOST_TEST(text.find("  llama.block_count                       uint32       2\n") !=
             std::string::npos);
  BOOST_TEST(text.find("string[512]  [\"<|endoftext|>\", \"<|im_start|>\", \"<|im_end|>\", ") !=
             std::string::npos);
  BOOST_TEST(has_line(text, "  token_embd.weight         F32   [32, 512]  65,536"));
  BOOST_TEST(has_line(text, "  Q8_0  14       18,432   19,584"));
  BOOST_TEST(has_line(text, "  layers              2"));
  BOOST_TEST(has_line(text, "  heads               4 (2 for keys and values) of 8"));
  BOOST_TEST(has_line(text, "  rotary embedding    8 dimensions, base 10000"));
  BOOST_TEST(has_line(text, "  output layer        the embedding table"));
  BOOST_TEST(
      has_line(text, "  KV cache per token               256 bytes (f16)  160 bytes (int8)"));
  BOOST_TEST(has_line(text, "  KV cache per block of 16 tokens  4.0 KiB          2.5 KiB"));
  BOOST_TEST(has_line(text, "  KV cache of one full context     64.0 KiB         40.0 KiB"));
}

BOOST_AUTO_TEST_CASE(a_model_that_cannot_be_served_is_described_with_the_reason) {
  GgufWriter writer;
  writer.add_string("general.architecture", "gpt2");
  const std::string text = text_of(writer);
  BOOST_TEST(text.find("This model cannot be served: a.gguf: the model's architecture is 'gpt2'") !=
             std::string::npos);
  BOOST_TEST(text.ends_with("\n"));
}

BOOST_AUTO_TEST_CASE(hostile_bytes_never_reach_the_terminal) {
  GgufWriter writer;
  const std::string hostile = "\x1b]0;x\x07\xff\n\xe2\x80\xae";
  writer.add_string("evil" + hostile, hostile);
  writer.add_strings("list", {hostile, std::string(1000, 'y')});
  writer.add_tensor("tensor" + hostile, 0, {4}, std::string(16, '\0'));
  const std::string text = text_of(writer);
  const std::string escaped = R"(\u{1b}]0;x\u{7}\xff\n\u{202e})";
  BOOST_TEST(text.find("evil" + escaped) != std::string::npos);
  BOOST_TEST(text.find("tensor" + escaped) != std::string::npos);
  BOOST_TEST(text.find('\x1b') == std::string::npos);
  BOOST_TEST(text.find('\x07') == std::string::npos);
  BOOST_TEST(text.find('\xff') == std::string::npos);
  BOOST_TEST(text.find("... (1000 bytes)\"]") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(extreme_values_are_shown_in_full) {
  GgufWriter writer;
  writer.add_u64("big", UINT64_MAX);
  writer.add_raw("small", 11, bytes_of(INT64_MIN));
  writer.add_raw("f64", 12, bytes_of(-0.1));
  writer.add_bool("no", false);
  writer.add_raw("nested", 9, bytes_of(9U) + bytes_of(uint64_t{0}));
  const std::string text = text_of(writer);
  BOOST_TEST(has_line(text, "  big     uint64    18446744073709551615"));
  BOOST_TEST(has_line(text, "  small   int64     -9223372036854775808"));
  BOOST_TEST(has_line(text, "  f64     float64   -0.1"));
  BOOST_TEST(has_line(text, "  no      bool      false"));
  BOOST_TEST(has_line(text, "  nested  array[0]  (nested)"));
}

BOOST_AUTO_TEST_SUITE_END()
