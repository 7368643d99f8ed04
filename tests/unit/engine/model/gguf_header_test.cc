// A model file without its tensors' data, as it travels to a process that has no file.

#include <boost/test/unit_test.hpp>
#include <string>

#include "engine/model/gguf_file.h"
#include "engine/model/model_config.h"
#include "engine/tokenizer/gguf_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/gguf_writer.h"

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(gguf_header)

namespace {

struct Whole {
  std::string bytes = make_tiny_model({});
  std::unique_ptr<GgufFile> file =
      GgufFile::from_bytes(std::as_bytes(std::span<const char>(bytes)), "whole.gguf").value();
};

std::vector<std::byte> header_of(const Whole& whole) {
  return {whole.file->header().begin(), whole.file->header().end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_header_alone_says_what_the_file_says) {
  const Whole whole;
  BOOST_TEST(whole.file->header().size() < whole.bytes.size() / 2);
  const auto header = GgufFile::from_header(header_of(whole), "peer");
  BOOST_REQUIRE_MESSAGE(header.ok(), header.status().message());
  BOOST_REQUIRE(header.value()->values().size() == whole.file->values().size());
  for (size_t i = 0; i < whole.file->values().size(); ++i) {
    const GgufValue& a = whole.file->values()[i];
    const GgufValue& b = header.value()->values()[i];
    BOOST_TEST((a.key == b.key && a.type == b.type && a.payload == b.payload));
  }
  BOOST_REQUIRE(header.value()->tensors().size() == whole.file->tensors().size());
  for (size_t i = 0; i < whole.file->tensors().size(); ++i) {
    const GgufTensor& a = whole.file->tensors()[i];
    const GgufTensor& b = header.value()->tensors()[i];
    BOOST_TEST((a.name == b.name && a.type == b.type && a.dims == b.dims));
    BOOST_TEST((a.offset == b.offset && a.bytes == b.bytes));
    BOOST_TEST(b.data == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(a_tokenizer_of_a_header_gives_the_same_tokens) {
  const Whole whole;
  const auto header = GgufFile::from_header(header_of(whole), "peer").value();
  const auto expected = Tokenizer::create(tokenizer_spec_of(*whole.file).value()).value();
  const auto tokenizer = Tokenizer::create(tokenizer_spec_of(*header).value()).value();
  const TextPiece text{"the rain in spain stays mainly", false};
  BOOST_TEST(tokenizer->encode(text).value() == expected->encode(text).value(),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bytes_behind_the_header_are_ignored) {
  const Whole whole;
  const auto bytes = std::as_bytes(std::span<const char>(whole.bytes));
  const auto header = GgufFile::from_header({bytes.begin(), bytes.end()}, "peer");
  BOOST_REQUIRE(header.ok());
  BOOST_TEST(header.value()->header().size() == whole.file->header().size());
  BOOST_TEST(header.value()->tensors()[0].data == nullptr);
}

BOOST_AUTO_TEST_CASE(a_header_cut_short_anywhere_is_refused) {
  const Whole whole;
  const std::vector<std::byte> full = header_of(whole);
  for (size_t size = 0; size < full.size(); size += size < 64 ? 1 : 37) {
    const auto cut = GgufFile::from_header({full.begin(), full.begin() + size}, "peer");
    BOOST_TEST(!cut.ok(), size);
  }
}

BOOST_AUTO_TEST_CASE(tensors_of_a_header_may_not_overlap_or_overflow) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{INT64_MAX} / 32 * 32, UINT64_MAX / 32 * 32}) {
    GgufWriter writer;
    constexpr auto kF32 = static_cast<uint32_t>(WeightType::kF32);
    writer.add_tensor("a", kF32, {32}, std::string(128, 'x'));
    writer.add_tensor("b", kF32, {32}, std::string(128, 'x'), offset);
    const std::string bytes = writer.finish();
    const auto view = std::as_bytes(std::span<const char>(bytes));
    BOOST_TEST(!GgufFile::from_header({view.begin(), view.end()}, "peer").ok(), offset);
  }
}

BOOST_AUTO_TEST_CASE(a_header_is_no_model_to_compute_with) {
  const Whole whole;
  const auto header = GgufFile::from_header(header_of(whole), "peer").value();
  const auto model = read_model(*header);
  BOOST_REQUIRE(!model.ok());
  BOOST_TEST((model.status().code() == StatusCode::kUnsupported));
}

BOOST_AUTO_TEST_SUITE_END()
