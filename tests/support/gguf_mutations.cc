#include "tests/support/gguf_mutations.h"

#include <cmath>
#include <functional>
#include <limits>

#include "base/assert.h"

namespace troupe::test {
namespace {

constexpr StatusCode kLoss = StatusCode::kDataLoss;
constexpr StatusCode kUnsupported = StatusCode::kUnsupported;
constexpr uint32_t kArray = static_cast<uint32_t>(GgufType::kArray);
constexpr uint32_t kU32 = static_cast<uint32_t>(GgufType::kUint32);
constexpr uint32_t kF32Type = static_cast<uint32_t>(WeightType::kF32);

using Edit = std::function<void(GgufWriter&)>;

std::string sound() {
  return smallest_model_writer().finish();
}

std::string edited(const Edit& edit, const std::string& architecture = "llama") {
  GgufWriter writer = smallest_model_writer(architecture);
  edit(writer);
  return writer.finish();
}

size_t position(const std::string& bytes, const std::string& text) {
  const size_t at = bytes.find(text);
  TROUPE_ASSERT(at != std::string::npos, text);
  return at;
}

// The sound file with `replacement` written over the bytes `distance` away from where `text`
// begins.
std::string patched(const std::string& text, ptrdiff_t distance, const std::string& replacement) {
  std::string bytes = sound();
  const size_t at = position(bytes, text) + static_cast<size_t>(distance);
  return bytes.replace(at, replacement.size(), replacement);
}

std::string with_number(const std::string& key, uint32_t value) {
  return edited([&](GgufWriter& w) {
    w.remove(key);
    w.add_u32(key, value);
  });
}

std::string with_float(const std::string& key, float value) {
  return edited([&](GgufWriter& w) {
    w.remove(key);
    w.add_f32(key, value);
  });
}

std::string with_text(const std::string& key, const std::string& value) {
  return edited([&](GgufWriter& w) {
    w.remove(key);
    w.add_string(key, value);
  });
}

std::string without(const std::string& key) {
  return edited([&](GgufWriter& w) { w.remove(key); });
}

std::string with_raw(const std::string& key, uint32_t type, const std::string& payload) {
  return edited([&](GgufWriter& w) { w.add_raw(key, type, payload); });
}

std::string without_tensor(const std::string& name) {
  return edited([&](GgufWriter& w) { w.remove_tensor(name); });
}

// One more tensor; or, where the model has one of that name, another in its place.
std::string with_tensor(const std::string& name, uint32_t type, const std::vector<uint64_t>& dims,
                        size_t bytes, std::optional<uint64_t> offset = {}) {
  return edited([&](GgufWriter& w) {
    w.remove_tensor(name);
    w.add_tensor(name, type, dims, std::string(bytes, '\0'), offset);
  });
}

std::string with_rope_factors(const std::vector<float>& factors) {
  return edited([&](GgufWriter& w) {
    std::string data;
    for (const float factor : factors) data += bytes_of(factor);
    w.add_tensor("rope_freqs.weight", kF32Type, {factors.size()}, data);
  });
}

// `depth` arrays, each the only element of the one before, the innermost empty.
std::string nested_array(uint32_t depth) {
  std::string payload;
  for (uint32_t i = 1; i < depth; ++i) payload += bytes_of(kArray) + bytes_of(uint64_t{1});
  return payload + bytes_of(kU32) + bytes_of(uint64_t{0});
}

std::string tensor_type_patch(uint32_t type) {
  // After the name: rank, two dimensions.
  const std::string name = "token_embd.weight";
  return patched(name, static_cast<ptrdiff_t>(name.size() + 4 + 16), bytes_of(type));
}

std::string tensor_rank_patch(uint32_t rank) {
  const std::string name = "token_embd.weight";
  return patched(name, static_cast<ptrdiff_t>(name.size()), bytes_of(rank));
}

void add_foreign_files(std::vector<GgufMutation>& out) {
  out.push_back({"empty", "", kLoss, "the file is empty"});
  out.push_back({"foreign_ggml", "lmgg\x01\x02\x03\x04", kLoss, "a GGML file from before GGUF"});
  out.push_back({"foreign_html", "<!DOCTYPE html><html></html>", kLoss, "looks like a web page"});
  out.push_back({"foreign_lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
                 kLoss, "a Git LFS pointer"});
  out.push_back({"foreign_safetensors", bytes_of(uint64_t{64}) + "{\"a\":{\"dtype\":\"F32\"}}",
                 kLoss, "a safetensors file"});
  out.push_back({"foreign_zip", "PK\x03\x04" + std::string(40, 'x'), kLoss, "a zip archive"});
  out.push_back({"foreign_bytes", std::string("\x1b[31m\xff\0", 7), kLoss, "not a GGUF file"});
}

void add_header(std::vector<GgufMutation>& out) {
  const auto version = [](uint32_t number) { return patched("GGUF", 4, bytes_of(number)); };
  out.push_back({"magic_only", "GGUF", kLoss, "ends before the format version (at byte 4)"});
  out.push_back({"version_0", version(0), kUnsupported, "the GGUF version is 0"});
  out.push_back({"version_1", version(1), kUnsupported, "the GGUF version is 1"});
  out.push_back({"version_4", version(4), kUnsupported, "2 and 3 are supported"});
  out.push_back(
      {"version_big_endian", version(0x03000000), kUnsupported, "a big-endian GGUF file"});
  out.push_back({"cut_in_tensor_count", sound().substr(0, 12), kLoss, "before the tensor count"});
  out.push_back(
      {"cut_in_key_count", sound().substr(0, 20), kLoss, "before the metadata key count"});
  const auto counts = [](std::optional<uint64_t> tensors, std::optional<uint64_t> keys) {
    return edited([&](GgufWriter& w) { w.override_counts(tensors, keys); });
  };
  out.push_back({"tensor_count_2_60", counts(uint64_t{1} << 60, {}), kLoss,
                 "the tensor count is 1152921504606846976, above the limit of 262144"});
  out.push_back({"tensor_count_all_ones", counts(UINT64_MAX, {}), kLoss,
                 "the tensor count is 18446744073709551615"});
  out.push_back({"tensor_count_of_bigger_file", counts(5000, {}), kLoss, "above what fits into"});
  out.push_back(
      {"tensor_count_1_more", counts(11 + 1, {}), kLoss, "tensor number 12 of 12 is empty"});
  out.push_back({"key_count_2_60", counts({}, uint64_t{1} << 60), kLoss,
                 "the metadata key count is 1152921504606846976, above the limit of 65536"});
  out.push_back({"key_count_of_bigger_file", counts({}, 60'000), kLoss, "above what fits into"});
  out.push_back({"key_count_0", counts({}, 0), kLoss, "'general.architecture' has 8 dimensions"});
}

void add_keys(std::vector<GgufMutation>& out) {
  const std::string first = "general.architecture";
  const std::string bytes = sound();
  out.push_back(
      {"cut_in_key", bytes.substr(0, position(bytes, first) + 5), kLoss, "bytes that are left"});
  out.push_back({"key_length_all_ones", patched(first, -8, bytes_of(UINT64_MAX)), kLoss,
                 "the length of metadata key number 1"});
  out.push_back({"key_length_2_30", patched(first, -8, bytes_of(uint64_t{1} << 30)), kLoss,
                 "is 1073741824, above the limit of 65535 bytes"});
  out.push_back({"key_length_of_bigger_file", patched(first, -8, bytes_of(uint64_t{60'000})), kLoss,
                 "bytes are left (at byte 24)"});
  out.push_back({"key_empty", with_raw("", kU32, bytes_of(1U)), kLoss, "has an empty name"});
  out.push_back({"value_length_all_ones", patched(first, 24, bytes_of(UINT64_MAX)), kLoss,
                 "the value of metadata key 'general.architecture' is 18446744073709551615"});
  out.push_back({"value_length_2_20", patched(first, 24, bytes_of(uint64_t{1} << 20)), kLoss,
                 "is 1048576 but only"});
  out.push_back({"value_type_13", with_raw("x.type", 13, ""), kLoss,
                 "the type of metadata key 'x.type' is 13"});
  out.push_back({"value_type_all_ones", with_raw("x.type", UINT32_MAX, ""), kLoss,
                 "none of the types 0 to 12"});
  out.push_back({"bool_2", with_raw("x.bool", 7, "\x02"), kLoss, "a bool is 0 or 1"});
  out.push_back({"key_twice", edited([](GgufWriter& w) { w.add_u32("llama.block_count", 1); }),
                 kLoss, "metadata key 'llama.block_count' occurs twice"});
}

void add_arrays(std::vector<GgufMutation>& out) {
  const auto array = [](uint32_t type, uint64_t count, const std::string& elements) {
    return with_raw("x.array", kArray, bytes_of(type) + bytes_of(count) + elements);
  };
  out.push_back({"array_type_99", array(99, 0, ""), kLoss,
                 "the element type of metadata key 'x.array' is 99"});
  out.push_back({"array_length_2_61", array(kU32, uint64_t{1} << 61, ""), kLoss,
                 "the array length of metadata key 'x.array' is 2305843009213693952"});
  out.push_back({"array_length_2_25", array(kU32, uint64_t{1} << 25, ""), kLoss,
                 "claims 33554432 elements of type uint32 but only"});
  out.push_back({"array_string_length", array(8, 2, string_bytes("a") + bytes_of(UINT64_MAX)),
                 kLoss, "the length of element 1 of metadata key 'x.array'"});
  out.push_back({"array_string_past_end", array(8, 1, bytes_of(uint64_t{100'000})), kLoss,
                 "is 100000 but only"});
  out.push_back({"array_depth_5", with_raw("x.array", kArray, nested_array(5)), kLoss,
                 "nests arrays deeper than 4 levels"});
  out.push_back({"array_depth_300", with_raw("x.array", kArray, nested_array(300)), kLoss,
                 "metadata key 'x.array' nests arrays deeper"});
}

void add_general(std::vector<GgufMutation>& out) {
  for (const uint32_t alignment : {0U, 4U, 24U, 1U << 30U}) {
    const std::string number = std::to_string(alignment);
    out.push_back({"alignment_" + number, with_number("general.alignment", alignment), kLoss,
                   "general.alignment is " + number + "; it must be a power of two from 8"});
  }
  out.push_back({"alignment_text", with_text("general.alignment", "32"), kLoss,
                 "'general.alignment' (at byte"});
  out.push_back(
      {"split", with_number("split.count", 3), kUnsupported, "one of 3 parts of a split"});
}

void add_tensor_directory(std::vector<GgufMutation>& out) {
  const std::string first = "token_embd.weight";
  const std::string bytes = sound();
  out.push_back({"cut_in_directory", bytes.substr(0, position(bytes, "output_norm.weight")), kLoss,
                 "the name of tensor number"});
  out.push_back({"name_length_2_40", patched(first, -8, bytes_of(uint64_t{1} << 40)), kLoss,
                 "the name of tensor number 1 of 11 is 1099511627776"});
  out.push_back(
      {"name_empty", with_tensor("", kF32Type, {4}, 16), kLoss, "tensor number 12 of 12 is empty"});
  out.push_back({"rank_0", tensor_rank_patch(0), kLoss, "has 0 dimensions; 1 to 4 are allowed"});
  out.push_back({"rank_5", tensor_rank_patch(5), kLoss, "'token_embd.weight' has 5 dimensions"});
  out.push_back({"rank_all_ones", tensor_rank_patch(UINT32_MAX), kLoss, "4294967295 dimensions"});
  out.push_back({"dimension_0", with_tensor("x", kF32Type, {4, 0}, 16), kLoss,
                 "dimension 1 of tensor 'x' is 0"});
  out.push_back({"dimensions_overflow",
                 with_tensor("x", kF32Type, {(uint64_t{1} << 42) + 1, uint64_t{1} << 22}, 16),
                 kLoss, "the dimensions of tensor 'x' overflow"});
  out.push_back({"dimension_all_ones", with_tensor("x", kF32Type, {UINT64_MAX}, 16), kLoss,
                 "the dimensions of tensor 'x' overflow"});
  out.push_back({"bytes_overflow", with_tensor("x", kF32Type, {uint64_t{1} << 62}, 16), kLoss,
                 "the size of tensor 'x' overflows 64 bits"});
  out.push_back({"type_999", tensor_type_patch(999), kUnsupported, "has the type 999"});
  out.push_back({"type_q2_k", tensor_type_patch(10), kUnsupported, "has the type Q2_K (10)"});
  out.push_back({"type_removed", tensor_type_patch(4), kUnsupported, "Use a file whose tensors"});
  out.push_back({"row_not_of_blocks", tensor_type_patch(2), kLoss,
                 "have 4 weights; Q4_0 needs a multiple of 32"});
  out.push_back({"tensor_twice", edited([](GgufWriter& w) {
                   w.add_tensor("output_norm.weight", kF32Type, {4}, std::string(16, '\0'));
                 }),
                 kLoss, "tensor 'output_norm.weight' occurs twice"});
  out.push_back({"offset_all_but_32", with_tensor("x", kF32Type, {4}, 16, UINT64_MAX - 31), kLoss,
                 "tensor 'x' needs 16 bytes at offset 18446744073709551584"});
  out.push_back({"offset_past_end", with_tensor("x", kF32Type, {4}, 16, uint64_t{1} << 20), kLoss,
                 "bytes at offset 1048576"});
  out.push_back({"offset_unaligned", with_tensor("x", kF32Type, {4}, 16, 33), kLoss,
                 "the offset 33 of tensor 'x' is not a multiple of the alignment 32"});
  out.push_back({"tensors_overlap", with_tensor("x", kF32Type, {4}, 16, 0), kLoss, "overlap"});
}

void add_cut_data(std::vector<GgufMutation>& out) {
  const std::string bytes = sound();
  uint64_t data = 0;
  static_cast<void>(smallest_model_writer().finish(nullptr, &data));
  out.push_back({"cut_by_one_byte", bytes.substr(0, bytes.size() - 1), kLoss,
                 "tensor 'output_norm.weight' needs 16 bytes"});
  out.push_back(
      {"cut_before_data", bytes.substr(0, data), kLoss, "tensor 'token_embd.weight' needs"});
  out.push_back({"cut_in_data", bytes.substr(0, data + 300), kLoss, "but the file has only"});
}

void add_architecture(std::vector<GgufMutation>& out) {
  const std::string key = "general.architecture";
  out.push_back({"architecture_gpt2", with_text(key, "gpt2"), kUnsupported,
                 "the model's architecture is 'gpt2'; this build serves: llama"});
  out.push_back({"architecture_hostile", with_text(key, "\x1b[31m\xff\n"), kUnsupported,
                 R"('\u{1b}[31m\xff\n')"});
  out.push_back({"architecture_missing", without(key), kLoss,
                 "metadata key 'general.architecture' is missing"});
  out.push_back({"architecture_number", with_number(key, 7), kLoss, "holds uint32 7; it must be"});
  out.push_back({"no_tensors", edited([](GgufWriter& w) {
                   w = GgufWriter();
                   w.add_string("general.architecture", "llama");
                   for (const char* name : {"block_count", "context_length", "embedding_length",
                                            "feed_forward_length", "attention.head_count"})
                     w.add_u32("llama." + std::string(name), 1);
                   w.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
                   w.add_u32("llama.rope.dimension_count", 2);
                   w.add_u32("llama.attention.key_length", 2);
                 }),
                 kLoss, "tensor 'token_embd.weight' is missing from the file's 0 tensors"});
}

void add_shape_numbers(std::vector<GgufMutation>& out) {
  const std::string layers = "llama.block_count";
  out.push_back(
      {"layers_0", with_number(layers, 0), kLoss, "'llama.block_count' is 0; it must be"});
  out.push_back({"layers_10_9", with_number(layers, 1'000'000'000), kLoss, "from 1 to 4096"});
  out.push_back(
      {"layers_2", with_number(layers, 2), kLoss, "tensor 'blk.1.attn_norm.weight' is missing"});
  out.push_back({"layers_missing", without(layers), kLoss, "'llama.block_count' is missing"});
  out.push_back(
      {"layers_text", with_text(layers, "1"), kLoss, "holds string; it must be an integer"});
  out.push_back({"width_6", with_number("llama.embedding_length", 6), kLoss,
                 "has the shape [4, 16]; the metadata asks for [6, 16]"});
  out.push_back({"heads_0", with_number("llama.attention.head_count", 0), kLoss,
                 "'llama.attention.head_count' is 0"});
  out.push_back({"kv_heads_0", with_number("llama.attention.head_count_kv", 0), kLoss,
                 "'llama.attention.head_count_kv' is 0"});
  out.push_back({"kv_heads_3", with_number("llama.attention.head_count_kv", 3), kLoss,
                 "not a multiple of attention.head_count_kv 3"});
  out.push_back({"kv_heads_per_layer", edited([](GgufWriter& w) {
                   w.remove("llama.attention.head_count_kv");
                   w.add_i32s("llama.attention.head_count_kv", {1});
                 }),
                 kUnsupported, "'llama.attention.head_count_kv' differs by layer"});
  out.push_back({"heads_without_size", edited([](GgufWriter& w) {
                   w.remove("llama.attention.key_length");
                   w.remove("llama.attention.head_count");
                   w.add_u32("llama.attention.head_count", 3);
                 }),
                 kLoss, "'llama.embedding_length' is 4, not a multiple of attention.head_count 3"});
  out.push_back({"heads_too_wide", edited([](GgufWriter& w) {
                   for (const char* key : {"head_count", "key_length", "value_length"}) {
                     w.remove("llama.attention." + std::string(key));
                     w.add_u32("llama.attention." + std::string(key), 65'536);
                   }
                 }),
                 kLoss, "the width exceeds the limit"});
  out.push_back({"value_length", with_number("llama.attention.value_length", 4), kUnsupported,
                 "'llama.attention.value_length' is 4 and differs from the key length 2"});
  out.push_back({"context_negative", edited([](GgufWriter& w) {
                   w.remove("llama.context_length");
                   w.add_i32("llama.context_length", -1);
                 }),
                 kLoss, "'llama.context_length' (at byte"});
  out.push_back({"context_2_40", edited([](GgufWriter& w) {
                   w.remove("llama.context_length");
                   w.add_u64("llama.context_length", uint64_t{1} << 40);
                 }),
                 kLoss, "holds uint64 1099511627776"});
  out.push_back({"ffn_float", with_float("llama.feed_forward_length", 8.0F), kLoss,
                 "'llama.feed_forward_length' (at byte"});
}

void add_arithmetic(std::vector<GgufMutation>& out) {
  const std::string epsilon = "llama.attention.layer_norm_rms_epsilon";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  out.push_back({"epsilon_nan", with_float(epsilon, nan), kLoss, "rms_epsilon' is nan"});
  out.push_back({"epsilon_infinite", with_float(epsilon, infinity), kLoss, "rms_epsilon' is inf"});
  out.push_back({"epsilon_0", with_float(epsilon, 0.0F), kLoss, "a positive finite number"});
  out.push_back({"epsilon_missing", without(epsilon), kLoss, "rms_epsilon' is missing"});
  out.push_back({"rope_base_nan", with_float("llama.rope.freq_base", nan), kLoss,
                 "'llama.rope.freq_base' is nan"});
  out.push_back({"rope_dims_odd", with_number("llama.rope.dimension_count", 1), kLoss,
                 "'llama.rope.dimension_count' is 1; it must be even"});
  out.push_back({"rope_dims_4", with_number("llama.rope.dimension_count", 4), kLoss,
                 "at most the head size 2"});
  out.push_back({"rope_yarn", with_text("llama.rope.scaling.type", "yarn"), kUnsupported,
                 "'llama.rope.scaling.type' is 'yarn'; none, linear and llama3"});
  out.push_back({"rope_linear_0", edited([](GgufWriter& w) {
                   w.add_string("llama.rope.scaling.type", "linear");
                   w.add_f32("llama.rope.scaling.factor", 0.0F);
                 }),
                 kLoss, "'llama.rope.scaling.factor' is 0.0"});
  out.push_back({"rope_linear_subnormal", edited([](GgufWriter& w) {
                   w.add_string("llama.rope.scaling.type", "linear");
                   w.add_f32("llama.rope.scaling.factor", 1e-45F);
                 }),
                 kLoss, "'llama.rope.scaling.factor' is 0.000000; it must be from 0.000977"});
  out.push_back({"rope_llama3_order", edited([](GgufWriter& w) {
                   w.add_string("llama.rope.scaling.type", "llama3");
                   w.add_f32("llama.rope.scaling.low_freq_factor", 4.0F);
                   w.add_f32("llama.rope.scaling.high_freq_factor", 4.0F);
                 }),
                 kLoss, "must be above low_freq_factor"});
  out.push_back({"rope_factors_count", with_rope_factors({1.0F, 2.0F}), kLoss,
                 "tensor 'rope_freqs.weight' is F32 [2]; it must be F32 [1]"});
  out.push_back(
      {"rope_factors_nan", with_rope_factors({nan}), kLoss, "'rope_freqs.weight' holds nan"});
  out.push_back({"rope_factors_tiny", with_rope_factors({1e-45F}), kLoss, "factors are from"});
  out.push_back({"rope_base_tiny", with_float("llama.rope.freq_base", 1e-30F), kLoss,
                 "'llama.rope.freq_base' is 0.000000; it must be from 1.0"});
  out.push_back({"experts", with_number("llama.expert_count", 8), kUnsupported,
                 "metadata key 'llama.expert_count' asks for an operation"});
  out.push_back({"sliding_window", with_number("llama.attention.sliding_window", 128), kUnsupported,
                 "attention over a sliding window"});
  out.push_back({"logit_scale", with_float("llama.logit_scale", 0.5F), kUnsupported,
                 "'llama.logit_scale' asks for an operation"});
}

void add_model_tensors(std::vector<GgufMutation>& out) {
  for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight",
                           "blk.0.ffn_down.weight"}) {
    out.push_back({"without_" + std::string(name), without_tensor(name), kLoss,
                   "tensor '" + std::string(name) + "' is missing"});
  }
  out.push_back({"ffn_down_turned", with_tensor("blk.0.ffn_down.weight", kF32Type, {4, 8}, 128),
                 kLoss, "has the shape [4, 8]; the metadata asks for [8, 4]"});
  out.push_back({"norm_of_rank_2", with_tensor("output_norm.weight", kF32Type, {4, 1}, 16), kLoss,
                 "has the shape [4, 1]; the metadata asks for [4]"});
  out.push_back({"embeddings_of_rank_1", with_tensor("token_embd.weight", kF32Type, {64}, 256),
                 kLoss, "it must be [width, vocabulary]"});
  out.push_back({"bias", with_tensor("blk.0.attn_q.bias", kF32Type, {4}, 16), kUnsupported,
                 "tensor 'blk.0.attn_q.bias' is no part of the llama architecture"});
  out.push_back({"vocab_size", with_number("llama.vocab_size", 17), kLoss,
                 "'llama.vocab_size' is 17 but token_embd.weight has 16 rows"});
  out.push_back({"token_count", edited([](GgufWriter& w) {
                   w.remove("tokenizer.ggml.tokens");
                   w.add_strings("tokenizer.ggml.tokens", {"a", "b"});
                 }),
                 kLoss, "'tokenizer.ggml.tokens' has 2 tokens but token_embd.weight has 16 rows"});
}

// One of the keys and tensors that only some families have.
void add_families(std::vector<GgufMutation>& out) {
  const auto gemma = [](const Edit& edit) { return edited(edit, "gemma3"); };
  const auto gemma_number = [&](const char* key, uint32_t value) {
    return gemma([key, value](GgufWriter& w) { w.add_u32("gemma3." + std::string(key), value); });
  };
  const auto vector = [](const char* name, uint32_t size) {
    return [name, size](GgufWriter& w) {
      w.remove_tensor(name);
      w.add_tensor(name, kF32Type, {size}, std::string(size * sizeof(float), '\0'));
    };
  };
  const std::string window = "attention.sliding_window";
  out.push_back({"gemma_window_2_30", gemma_number(window.c_str(), 1U << 30), kLoss,
                 "'gemma3.attention.sliding_window' is 1073741824; it must be from 0"});
  out.push_back({"gemma_window_text", gemma([](GgufWriter& w) {
                   w.add_string("gemma3.attention.sliding_window", "512");
                 }),
                 kLoss, "holds string; it must be an integer"});
  out.push_back({"gemma_pattern_0", gemma_number("attention.sliding_window_pattern", 0), kLoss,
                 "'gemma3.attention.sliding_window_pattern' is 0; it must be from 1"});
  out.push_back({"gemma_pattern_per_layer", gemma([](GgufWriter& w) {
                   w.add_i32s("gemma3.attention.sliding_window_pattern", {1, 0});
                 }),
                 kUnsupported, "differs by layer"});
  out.push_back({"gemma_window_base_nan", gemma([](GgufWriter& w) {
                   w.add_f32("gemma3.rope.freq_base_swa", std::numeric_limits<float>::quiet_NaN());
                 }),
                 kLoss, "'gemma3.rope.freq_base_swa' is nan"});
  out.push_back({"gemma_softcap",
                 gemma([](GgufWriter& w) { w.add_f32("gemma3.final_logit_softcapping", 30.0F); }),
                 kUnsupported, "the gemma3 architecture of this build does not have"});
  out.push_back({"gemma_without_post_norm",
                 gemma([](GgufWriter& w) { w.remove_tensor("blk.0.post_ffw_norm.weight"); }), kLoss,
                 "tensor 'blk.0.post_ffw_norm.weight' is missing"});
  out.push_back({"gemma_head_norm_of_width", gemma(vector("blk.0.attn_q_norm.weight", 4)), kLoss,
                 "has the shape [4]; the metadata asks for [2]"});
  out.push_back({"qwen2_without_bias",
                 edited([](GgufWriter& w) { w.remove_tensor("blk.0.attn_k.bias"); }, "qwen2"),
                 kLoss, "tensor 'blk.0.attn_k.bias' is missing"});
  out.push_back({"qwen2_bias_of_width", edited(vector("blk.0.attn_v.bias", 4), "qwen2"), kLoss,
                 "has the shape [4]; the metadata asks for [2]"});
  out.push_back(
      {"qwen2_window",
       edited([](GgufWriter& w) { w.add_u32("qwen2.attention.sliding_window", 16); }, "qwen2"),
       kUnsupported, "attention over a sliding window"});
  out.push_back({"qwen3_bias", edited(vector("blk.0.attn_q.bias", 4), "qwen3"), kUnsupported,
                 "'blk.0.attn_q.bias' is no part of the qwen3 architecture"});
  out.push_back({"llama_head_norm", edited(vector("blk.0.attn_q_norm.weight", 2)), kUnsupported,
                 "is no part of the llama architecture"});
}

}  // namespace

GgufWriter smallest_model_writer(const std::string& architecture) {
  TinyModelOptions options;
  options.architecture = architecture;
  options.layers = 1;
  options.heads = 2;
  options.kv_heads = 1;
  options.head_size = 2;
  options.width = 4;
  options.ffn_width = 8;
  options.vocab = 16;
  options.tokenizer = false;
  GgufWriter writer = tiny_model_writer(options);
  std::vector<std::string> tokens;
  for (char c = 'a'; tokens.size() < options.vocab; ++c) tokens.emplace_back(1, c);
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  return writer;
}

std::vector<GgufMutation> gguf_mutations() {
  std::vector<GgufMutation> out;
  add_foreign_files(out);
  add_header(out);
  add_keys(out);
  add_arrays(out);
  add_general(out);
  add_tensor_directory(out);
  add_cut_data(out);
  add_architecture(out);
  add_shape_numbers(out);
  add_arithmetic(out);
  add_model_tensors(out);
  add_families(out);
  return out;
}

std::vector<GgufMutation> sound_gguf_files() {
  std::vector<GgufMutation> out;
  const auto add = [&](const std::string& name, const std::string& bytes) {
    out.push_back({"sound_" + name, bytes, StatusCode::kOk, ""});
  };
  add("model", sound());
  add("version_2", patched("GGUF", 4, bytes_of(2U)));
  add("nested_array", with_raw("x.array", kArray, nested_array(GgufLimits::kArrayDepthMax)));
  add("rope_factors", with_rope_factors({8.0F}));
  add("rope_linear", edited([](GgufWriter& w) {
        w.add_string("llama.rope.scaling.type", "linear");
        w.add_f32("llama.rope.scaling.factor", 4.0F);
      }));
  add("rope_llama3", with_text("llama.rope.scaling.type", "llama3"));
  add("aligned_to_64", edited([](GgufWriter& w) {
        w.add_u32("general.alignment", 64);
        w.set_alignment(64);
      }));
  add("every_value_type", edited([](GgufWriter& w) {
        for (uint32_t type = 0; type <= 12; ++type) {
          const auto kind = static_cast<GgufType>(type);
          if (const uint32_t size = fixed_bytes(kind); size != 0)
            w.add_raw("x." + std::string(to_string(kind)), type, std::string(size, '\1'));
        }
      }));
  add("untied_output", with_tensor("output.weight", kF32Type, {4, 16}, 256));
  for (const char* architecture : {"qwen2", "qwen3", "gemma3"})
    add(architecture, smallest_model_writer(architecture).finish());
  add("gemma3_window", edited(
                           [](GgufWriter& w) {
                             w.add_u32("gemma3.attention.sliding_window", 4);
                             w.add_u32("gemma3.attention.sliding_window_pattern", 2);
                           },
                           "gemma3"));
  return out;
}

}  // namespace troupe::test
