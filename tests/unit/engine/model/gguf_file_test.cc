#include "engine/model/gguf_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "tests/support/gguf_writer.h"

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(gguf_file)

namespace {

constexpr uint32_t kF32Type = static_cast<uint32_t>(WeightType::kF32);

// A file in memory with whatever `fill` adds.
struct Parsed {
  std::string bytes;
  std::unique_ptr<GgufFile> file;
};

template <class Fill>
Parsed parse(Fill fill) {
  GgufWriter writer;
  fill(writer);
  Parsed parsed{writer.finish(), nullptr};
  auto file = GgufFile::from_bytes(std::as_bytes(std::span<const char>(parsed.bytes)), "test.gguf");
  BOOST_REQUIRE_MESSAGE(file.ok(), file.status().message());
  parsed.file = std::move(file).value();
  return parsed;
}

bool says(const Status& status, StatusCode code, std::string_view part) {
  return status.code() == code && status.message().find(part) != std::string::npos;
}

// Resident bytes of this process's file mappings.
size_t resident_file_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    size_t kib = 0;
    if (word == "RssFile:" && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(numbers_of_every_width_are_read_as_the_type_asked_for) {
  const Parsed p = parse([](GgufWriter& w) {
    w.add_raw("u8", 0, bytes_of(uint8_t{200}));
    w.add_raw("i8", 1, bytes_of(int8_t{100}));
    w.add_raw("u16", 2, bytes_of(uint16_t{60'000}));
    w.add_raw("i16", 3, bytes_of(int16_t{30'000}));
    w.add_u32("u32", UINT32_MAX);
    w.add_i32("i32", 7);
    w.add_u64("u64", uint64_t{1} << 40);
    w.add_raw("i64", 11, bytes_of(int64_t{9}));
    w.add_f32("f32", 0.5F);
    w.add_raw("f64", 12, bytes_of(0.25));
    w.add_bool("yes", true);
  });
  BOOST_TEST(p.file->get_u32("u8").value() == 200U);
  BOOST_TEST(p.file->get_u32("i8").value() == 100U);
  BOOST_TEST(p.file->get_u32("u16").value() == 60'000U);
  BOOST_TEST(p.file->get_u32("i16").value() == 30'000U);
  BOOST_TEST(p.file->get_u32("u32").value() == UINT32_MAX);
  BOOST_TEST(p.file->get_u32("i32").value() == 7U);
  BOOST_TEST(p.file->get_u64("u64").value() == uint64_t{1} << 40);
  BOOST_TEST(p.file->get_u32("i64").value() == 9U);
  BOOST_TEST(p.file->get_f32("f32").value() == 0.5F);
  BOOST_TEST(p.file->get_f32("f64").value() == 0.25F);
  BOOST_TEST(p.file->get_bool("yes").value());
}

BOOST_AUTO_TEST_CASE(a_value_of_another_kind_is_named_with_what_it_holds) {
  const Parsed p = parse([](GgufWriter& w) {
    w.add_i32("negative", -3);
    w.add_u64("huge", UINT64_MAX);
    w.add_string("text", "x");
    w.add_f32s("floats", {1.0F});
    w.add_i32s("ints", {1});
  });
  const auto loss = StatusCode::kDataLoss;
  BOOST_TEST(says(p.file->get_u32("negative").status(), loss, "'negative' (at byte"));
  BOOST_TEST(says(p.file->get_u32("negative").status(), loss, "holds int32 -3"));
  BOOST_TEST(says(p.file->get_u64("huge").status(), loss, "'huge'"));
  BOOST_TEST(says(p.file->get_f32("text").status(), loss, "holds string; it must be a float"));
  BOOST_TEST(says(p.file->get_bool("text").status(), loss, "a bool"));
  BOOST_TEST(says(p.file->get_string("negative").status(), loss, "a string"));
  BOOST_TEST(says(p.file->get_u32("absent").status(), loss, "'absent' is missing"));
  BOOST_TEST(says(p.file->get_strings("floats").status(), loss, "array of float32"));
  BOOST_TEST(says(p.file->get_i32s("floats").status(), loss, "an array of integers"));
  BOOST_TEST(says(p.file->get_f32s("ints").status(), loss, "an array of floats"));
  BOOST_TEST(says(p.file->get_i32s("text").status(), loss, "an array of integers"));
}

BOOST_AUTO_TEST_CASE(a_default_stands_in_for_a_missing_key_but_not_for_a_wrong_one) {
  const Parsed p = parse([](GgufWriter& w) { w.add_string("text", "x"); });
  BOOST_TEST(p.file->get_u32_or("absent", 5).value() == 5U);
  BOOST_TEST(p.file->get_f32_or("absent", 0.5F).value() == 0.5F);
  BOOST_TEST(p.file->get_bool_or("absent", true).value());
  BOOST_TEST(p.file->get_string_or("absent", "y").value() == "y");
  BOOST_TEST(!p.file->get_u32_or("text", 5).ok());
  BOOST_TEST(!p.file->get_f32_or("text", 0.5F).ok());
  BOOST_TEST(!p.file->get_bool_or("text", true).ok());
}

BOOST_AUTO_TEST_CASE(arrays_are_read_in_order_and_strings_keep_all_their_bytes) {
  const std::vector<std::string> words = {"a", "", std::string("nul\0byte", 8), "\xff", "wörter"};
  const Parsed p = parse([&](GgufWriter& w) {
    w.add_strings("words", words);
    w.add_i32s("ints", {-1, 0, INT32_MAX});
    w.add_raw("u8s", 9, bytes_of(0U) + bytes_of(uint64_t{2}) + "\x01\xff");
    w.add_f32s("floats", {0.5F, -2.0F});
    w.add_strings("none", {});
  });
  const auto read = p.file->get_strings("words").value();
  BOOST_TEST(std::vector<std::string>(read.begin(), read.end()) == words);
  BOOST_TEST(p.file->get_i32s("ints").value() == std::vector<int32_t>({-1, 0, INT32_MAX}));
  BOOST_TEST(p.file->get_i32s("u8s").value() == std::vector<int32_t>({1, 255}));
  BOOST_TEST(p.file->get_f32s("floats").value() == std::vector<float>({0.5F, -2.0F}));
  BOOST_TEST(p.file->get_strings("none").value().empty());
}

BOOST_AUTO_TEST_CASE(tensors_are_found_with_shape_size_and_data) {
  std::string small(16, '\0');
  std::memcpy(small.data(), "sixteen bytes..!", 16);
  const Parsed p = parse([&](GgufWriter& w) {
    w.add_tensor("first", kF32Type, {3, 2}, std::string(24, 'a'));
    w.add_tensor("second", static_cast<uint32_t>(WeightType::kQ4_K), {256, 2, 1, 3},
                 std::string(144 * 6, 'b'));
    w.add_tensor("third", kF32Type, {4}, small);
  });
  BOOST_REQUIRE_EQUAL(p.file->tensors().size(), 3U);
  const GgufTensor* second = p.file->find_tensor("second");
  BOOST_REQUIRE(second != nullptr);
  BOOST_TEST(second->row_weights() == 256U);
  BOOST_TEST(second->rows() == 6U);
  BOOST_TEST(second->bytes == 864U);
  BOOST_TEST(shape_text(*second) == "[256, 2, 1, 3]");
  const GgufTensor* third = p.file->find_tensor("third");
  BOOST_REQUIRE(third != nullptr);
  BOOST_TEST(third->offset % 32 == 0U);
  BOOST_TEST(std::memcmp(third->data, small.data(), 16) == 0);
  BOOST_TEST(p.file->find_tensor("fourth") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_file_on_disk_reads_like_its_bytes_in_memory) {
  const std::string bytes = make_tiny_model({});
  const TemporaryFile disk(bytes);
  const auto opened = GgufFile::open(disk.path());
  BOOST_REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  const auto parsed = GgufFile::from_bytes(std::as_bytes(std::span<const char>(bytes)), "memory");
  BOOST_REQUIRE(parsed.ok());
  const GgufFile& a = *opened.value();
  const GgufFile& b = *parsed.value();
  BOOST_TEST(a.name() == disk.path());
  BOOST_TEST(a.size() == bytes.size());
  BOOST_REQUIRE_EQUAL(a.tensors().size(), b.tensors().size());
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    BOOST_TEST(a.tensors()[i].name == b.tensors()[i].name);
    BOOST_TEST(std::memcmp(a.tensors()[i].data, b.tensors()[i].data, b.tensors()[i].bytes) == 0);
  }
  BOOST_TEST(a.check_unchanged().ok());
  BOOST_TEST(b.check_unchanged().ok());
}

BOOST_AUTO_TEST_CASE(a_path_that_is_no_readable_file_is_refused_with_the_reason) {
  const auto invalid = StatusCode::kInvalidArgument;
  BOOST_TEST(says(GgufFile::open("/nonexistent/model.gguf").status(), StatusCode::kNotFound,
                  "/nonexistent/model.gguf: the model file cannot be opened: No such file"));
  BOOST_TEST(says(GgufFile::open("/").status(), invalid, "this is a directory"));
  BOOST_TEST(says(GgufFile::open("/dev/null").status(), invalid, "not a regular file"));
  const TemporaryFile empty("");
  BOOST_TEST(says(GgufFile::open(empty.path()).status(), StatusCode::kDataLoss, "file is empty"));
}

BOOST_AUTO_TEST_CASE(a_pipe_in_the_place_of_a_file_does_not_hang) {
  const TemporaryFile place("");
  const std::string path = place.path() + ".pipe";
  BOOST_REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  BOOST_TEST(says(GgufFile::open(path).status(), StatusCode::kInvalidArgument, "not a regular"));
  ::unlink(path.c_str());
}

BOOST_AUTO_TEST_CASE(a_file_without_permission_is_refused_with_the_reason) {
  const TemporaryFile secret(make_tiny_model({}));
  BOOST_REQUIRE(::chmod(secret.path().c_str(), 0) == 0);
  const auto opened = GgufFile::open(secret.path());
  if (::geteuid() == 0) {
    // Root may read everything.
    BOOST_TEST(opened.ok());
  } else {
    BOOST_TEST(says(opened.status(), StatusCode::kInvalidArgument, "Permission denied"));
  }
}

BOOST_AUTO_TEST_CASE(a_file_rewritten_in_place_is_noticed_and_one_replaced_is_not_disturbed) {
  const std::string bytes = make_tiny_model({});
  const TemporaryFile disk(bytes);
  const auto first = GgufFile::open(disk.path());
  BOOST_REQUIRE(first.ok());
  // Replaced: the mapping keeps the old file.
  const std::string next = disk.path() + ".next";
  std::ofstream(next) << bytes << "more";
  std::filesystem::rename(next, disk.path());
  BOOST_TEST(first.value()->check_unchanged().ok());
  const auto second = GgufFile::open(disk.path());
  BOOST_REQUIRE(second.ok());
  std::ofstream(disk.path(), std::ios::app) << "appended";
  BOOST_TEST(says(second.value()->check_unchanged(), StatusCode::kDataLoss, "changed on disk"));
}

BOOST_AUTO_TEST_CASE(released_pages_leave_memory_and_can_be_read_again) {
  constexpr size_t kBytes = size_t{32} << 20;
  GgufWriter writer;
  writer.add_tensor("before", kF32Type, {4}, std::string(16, 'b'));
  writer.add_tensor("big", kF32Type, {kBytes / 4}, std::string(kBytes, 'x'));
  const TemporaryFile disk(writer.finish());
  const auto file = GgufFile::open(disk.path());
  BOOST_REQUIRE(file.ok());
  const GgufTensor& big = *file.value()->find_tensor("big");
  const auto sum = [&] {
    size_t total = 0;
    for (size_t i = 0; i < big.bytes; i += 4096) total += static_cast<size_t>(big.data[i]);
    return total;
  };
  const size_t idle = resident_file_bytes();
  const size_t expected = sum();
  BOOST_TEST(expected == kBytes / 4096 * size_t{'x'});
  const size_t loaded = resident_file_bytes();
  BOOST_TEST(loaded > idle + kBytes / 2);
  file.value()->release_pages({big.data, static_cast<size_t>(big.bytes)});
  BOOST_TEST(resident_file_bytes() < loaded - kBytes / 2);
  BOOST_TEST(sum() == expected);
}

BOOST_AUTO_TEST_SUITE_END()
