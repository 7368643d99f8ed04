#include "tests/support/gguf_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/assert.h"
#include "base/philox.h"
#include "kernels/reference/float16.h"

namespace troupe::test {
namespace {

uint32_t number_of(GgufType type) {
  return static_cast<uint32_t>(type);
}

std::string array_bytes(GgufType element, uint64_t count, const std::string& elements) {
  return bytes_of(number_of(element)) + bytes_of(count) + elements;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  TROUPE_ASSERT(code < 0x800, code);
  out += static_cast<char>(0xC0U | (code >> 6U));
  out += static_cast<char>(0x80U | (code & 0x3FU));
}

// How byte-level BPE spells a byte: printable Latin-1 as itself, the others from U+0100 on.
std::string byte_token(uint32_t byte) {
  const auto itself = [](uint32_t b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  uint32_t code = byte;
  if (!itself(byte)) {
    code = 0x100;
    for (uint32_t b = 0; b < byte; ++b) code += itself(b) ? 0 : 1;
  }
  std::string text;
  append_utf8(text, code);
  return text;
}

constexpr char kChatMl[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

void add_tokenizer(GgufWriter& writer, const TinyModelOptions& options) {
  const std::vector<std::string> tokens = tiny_vocabulary(options.vocab);
  const size_t named = kTinySpecialTokens + 256 + tiny_merges().size();
  std::vector<int32_t> types(tokens.size(), 1);                              // normal
  std::fill(types.begin(), types.begin() + kTinySpecialTokens, 3);           // control
  std::fill(types.begin() + static_cast<ptrdiff_t>(named), types.end(), 5);  // unused
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", options.pre_tokenizer);
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  writer.add_i32s("tokenizer.ggml.token_type", types);
  writer.add_strings("tokenizer.ggml.merges", tiny_merges());
  writer.add_u32("tokenizer.ggml.bos_token_id", 1);
  writer.add_u32("tokenizer.ggml.eos_token_id", 2);
  writer.add_u32("tokenizer.ggml.unknown_token_id", 0);
  writer.add_u32("tokenizer.ggml.padding_token_id", 2);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
  writer.add_bool("tokenizer.ggml.add_space_prefix", false);
  writer.add_string("tokenizer.chat_template",
                    options.chat_template.empty() ? kChatMl : options.chat_template);
}

void add_numbers(GgufWriter& writer, const TinyModelOptions& o, uint32_t vocab) {
  const auto key = [&](const char* suffix) { return o.architecture + "." + suffix; };
  writer.add_string("general.architecture", o.architecture);
  writer.add_string("general.name", "tiny random " + o.architecture);
  writer.add_u32(key("block_count"), o.layers);
  writer.add_u32(key("context_length"), o.context_length);
  writer.add_u32(key("embedding_length"), o.width);
  writer.add_u32(key("feed_forward_length"), o.ffn_width);
  writer.add_u32(key("attention.head_count"), o.heads);
  writer.add_u32(key("attention.head_count_kv"), o.kv_heads);
  writer.add_u32(key("attention.key_length"), o.head_size);
  writer.add_u32(key("attention.value_length"), o.head_size);
  writer.add_u32(key("rope.dimension_count"), o.head_size);
  writer.add_f32(key("rope.freq_base"), o.rope_freq_base);
  writer.add_f32(key("attention.layer_norm_rms_epsilon"), o.rms_epsilon);
  writer.add_u32(key("vocab_size"), vocab);
  if (o.window != 0) writer.add_u32(key("attention.sliding_window"), o.window);
  if (o.global_every != 0) writer.add_u32(key("attention.sliding_window_pattern"), o.global_every);
}

// Adds tensors whose contents differ by name and seed.
class TensorMaker {
 public:
  TensorMaker(GgufWriter& writer, const TinyModelOptions& options)
      : writer_(writer), options_(options) {}

  void add_matrix(const std::string& name, WeightType type, uint32_t inputs, uint32_t outputs,
                  float magnitude) {
    TROUPE_ASSERT(inputs % traits_of(type).block_weights == 0, name, inputs);
    const uint64_t seed = philox_u64(options_.seed, count_++, 0);
    writer_.add_tensor(name, static_cast<uint32_t>(type), {inputs, outputs},
                       random_weights(type, uint64_t{inputs} * outputs, magnitude, seed));
  }

  // Uniform weights of variance 1 / inputs keep the size of what passes through.
  void add_linear(const std::string& name, uint32_t inputs, uint32_t outputs) {
    add_matrix(name, options_.weights, inputs, outputs,
               std::sqrt(3.0F / static_cast<float>(inputs)));
  }

  // Uniform from `least` to `least` + 1.
  void add_vector(const std::string& name, uint32_t size, float least) {
    std::string data;
    const uint64_t seed = philox_u64(options_.seed, count_++, 0);
    for (uint32_t i = 0; i < size; ++i)
      data += bytes_of(least + static_cast<float>(philox_uniform(seed, i, 0)));
    writer_.add_tensor(name, static_cast<uint32_t>(WeightType::kF32), {size}, data);
  }

  void add_norm(const std::string& name) { add_vector(name, options_.width, 0.5F); }

 private:
  GgufWriter& writer_;
  const TinyModelOptions& options_;
  uint64_t count_ = 0;
};

void add_tensors(GgufWriter& writer, const TinyModelOptions& o, uint32_t vocab) {
  TensorMaker make(writer, o);
  const uint32_t query_width = o.heads * o.head_size;
  const uint32_t kv_width = o.kv_heads * o.head_size;
  make.add_matrix("token_embd.weight", o.embeddings, o.width, vocab, 0.5F);
  for (uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    make.add_norm(prefix + "attn_norm.weight");
    make.add_linear(prefix + "attn_q.weight", o.width, query_width);
    make.add_linear(prefix + "attn_k.weight", o.width, kv_width);
    make.add_linear(prefix + "attn_v.weight", o.width, kv_width);
    make.add_linear(prefix + "attn_output.weight", query_width, o.width);
    make.add_norm(prefix + "ffn_norm.weight");
    make.add_linear(prefix + "ffn_gate.weight", o.width, o.ffn_width);
    make.add_linear(prefix + "ffn_up.weight", o.width, o.ffn_width);
    make.add_linear(prefix + "ffn_down.weight", o.ffn_width, o.width);
    if (o.architecture == "qwen2") {
      make.add_vector(prefix + "attn_q.bias", query_width, -0.5F);
      make.add_vector(prefix + "attn_k.bias", kv_width, -0.5F);
      make.add_vector(prefix + "attn_v.bias", kv_width, -0.5F);
    }
    if (o.architecture == "qwen3" || o.architecture == "gemma3") {
      make.add_vector(prefix + "attn_q_norm.weight", o.head_size, 0.5F);
      make.add_vector(prefix + "attn_k_norm.weight", o.head_size, 0.5F);
    }
    if (o.architecture == "gemma3") {
      make.add_norm(prefix + "post_attention_norm.weight");
      make.add_norm(prefix + "post_ffw_norm.weight");
    }
  }
  make.add_norm("output_norm.weight");
  if (!o.tied) make.add_matrix("output.weight", o.embeddings, o.width, vocab, 0.5F);
  if (!o.rope_factors.empty()) {
    std::string data;
    for (const float factor : o.rope_factors) data += bytes_of(factor);
    writer.add_tensor("rope_freqs.weight", static_cast<uint32_t>(WeightType::kF32),
                      {o.rope_factors.size()}, data);
  }
}

// Where a block's half-precision numbers stand and how big they are for weights of about +-1.
struct BlockScales {
  uint32_t scale_at = 0;
  float scale = 0.0F;
  bool has_minimum = false;  // two bytes after the scale
  float minimum = 0.0F;
};

BlockScales block_scales(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
      return {0, 1.0F / 8};
    case WeightType::kQ4_1:
      return {0, 2.0F / 15, true, -1.0F};
    case WeightType::kQ5_0:
      return {0, 1.0F / 16};
    case WeightType::kQ5_1:
      return {0, 2.0F / 31, true, -1.0F};
    case WeightType::kQ8_0:
      return {0, 1.0F / 127};
    case WeightType::kQ4_K:
      return {0, 2.0F / (15 * 32), true, 1.0F / 32};
    case WeightType::kQ5_K:
      return {0, 2.0F / (31 * 32), true, 1.0F / 32};
    case WeightType::kQ6_K:
      return {208, 1.0F / (32 * 64)};
    default:
      break;
  }
  TROUPE_ASSERT(false, traits_of(type).name);
  return {};
}

void put_f16(std::string& block, uint32_t at, float value) {
  block.replace(at, 2, bytes_of(f32_to_f16(value)));
}

}  // namespace

std::string string_bytes(std::string_view text) {
  return bytes_of(uint64_t{text.size()}) + std::string(text);
}

void GgufWriter::add_raw(std::string_view key, uint32_t type, std::string_view payload) {
  keys_.push_back({std::string(key), type, std::string(payload)});
}

void GgufWriter::add_u32(std::string_view key, uint32_t value) {
  add_raw(key, number_of(GgufType::kUint32), bytes_of(value));
}

void GgufWriter::add_u64(std::string_view key, uint64_t value) {
  add_raw(key, number_of(GgufType::kUint64), bytes_of(value));
}

void GgufWriter::add_i32(std::string_view key, int32_t value) {
  add_raw(key, number_of(GgufType::kInt32), bytes_of(value));
}

void GgufWriter::add_f32(std::string_view key, float value) {
  add_raw(key, number_of(GgufType::kFloat32), bytes_of(value));
}

void GgufWriter::add_bool(std::string_view key, bool value) {
  add_raw(key, number_of(GgufType::kBool), bytes_of(static_cast<uint8_t>(value ? 1 : 0)));
}

void GgufWriter::add_string(std::string_view key, std::string_view value) {
  add_raw(key, number_of(GgufType::kString), string_bytes(value));
}

void GgufWriter::add_strings(std::string_view key, const std::vector<std::string>& values) {
  std::string elements;
  for (const std::string& value : values) elements += string_bytes(value);
  add_raw(key, number_of(GgufType::kArray),
          array_bytes(GgufType::kString, values.size(), elements));
}

void GgufWriter::add_i32s(std::string_view key, const std::vector<int32_t>& values) {
  std::string elements;
  for (const int32_t value : values) elements += bytes_of(value);
  add_raw(key, number_of(GgufType::kArray), array_bytes(GgufType::kInt32, values.size(), elements));
}

void GgufWriter::add_f32s(std::string_view key, const std::vector<float>& values) {
  std::string elements;
  for (const float value : values) elements += bytes_of(value);
  add_raw(key, number_of(GgufType::kArray),
          array_bytes(GgufType::kFloat32, values.size(), elements));
}

void GgufWriter::remove(std::string_view key) {
  std::erase_if(keys_, [&](const Key& entry) { return entry.name == key; });
}

bool GgufWriter::has(std::string_view key) const {
  return std::any_of(keys_.begin(), keys_.end(),
                     [&](const Key& entry) { return entry.name == key; });
}

void GgufWriter::add_tensor(std::string_view name, uint32_t type, std::vector<uint64_t> dims,
                            std::string data, std::optional<uint64_t> offset) {
  tensors_.push_back({std::string(name), type, std::move(dims), std::move(data), offset});
}

void GgufWriter::remove_tensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
}

void GgufWriter::override_counts(std::optional<uint64_t> tensors, std::optional<uint64_t> keys) {
  tensor_count_ = tensors;
  key_count_ = keys;
}

std::string GgufWriter::finish(uint64_t* tensor_info_offset, uint64_t* data_offset) const {
  const auto align = [&](uint64_t at) { return (at + alignment_ - 1) / alignment_ * alignment_; };
  std::string out = "GGUF" + bytes_of(version_) +
                    bytes_of(tensor_count_.value_or(tensors_.size())) +
                    bytes_of(key_count_.value_or(keys_.size()));
  for (const Key& key : keys_) out += string_bytes(key.name) + bytes_of(key.type) + key.payload;
  if (tensor_info_offset != nullptr) *tensor_info_offset = out.size();
  uint64_t next = 0;
  for (const Tensor& tensor : tensors_) {
    out += string_bytes(tensor.name) + bytes_of(static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) out += bytes_of(dim);
    out += bytes_of(tensor.type) + bytes_of(tensor.offset.value_or(next));
    next = align(next + tensor.data.size());
  }
  const uint64_t start = align(out.size());
  if (data_offset != nullptr) *data_offset = start;
  for (const Tensor& tensor : tensors_) {
    out.resize(start + align(out.size() - std::min<uint64_t>(out.size(), start)));
    out += tensor.data;
  }
  return out;
}

std::vector<std::string> tiny_merges() {
  // Ġ is how byte-level BPE spells a space, Ċ a line feed.
  return {"Ġ t",  "h e",  "i n",   "Ġ a", "Ġt he",  "e r",   "o n", "r e",    "Ġ s",
          "a t",  "e n",  "o r",   "n d", "Ġa nd",  "i s",   "Ġ w", "o u",    "l l",
          "in g", "Ġ h",  "i t",   "e s", "Ġ o",    "Ġo n",  "Ġ Ġ", "ĠĠ Ġ",   "Ċ Ċ",
          "Ã ©",  "Ġh e", "he ll", "l o", "hell o", "Ġw or", "l d", "Ġwor ld"};
}

std::vector<std::string> tiny_vocabulary(uint32_t vocab) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  TROUPE_ASSERT(tokens.size() == kTinySpecialTokens);
  for (uint32_t byte = 0; byte < 256; ++byte) tokens.push_back(byte_token(byte));
  for (std::string merge : tiny_merges()) {
    merge.erase(merge.find(' '), 1);
    tokens.push_back(std::move(merge));
  }
  TROUPE_ASSERT(vocab == 0 || vocab >= tokens.size(), vocab, tokens.size());
  while (tokens.size() < vocab)
    tokens.push_back("<|unused_" + std::to_string(tokens.size()) + "|>");
  return tokens;
}

GgufWriter tiny_model_writer(const TinyModelOptions& options) {
  GgufWriter writer;
  const bool as_given = !options.tokenizer && options.vocab != 0;
  const auto vocab =
      as_given ? options.vocab : static_cast<uint32_t>(tiny_vocabulary(options.vocab).size());
  add_numbers(writer, options, vocab);
  if (options.tokenizer) add_tokenizer(writer, options);
  add_tensors(writer, options, vocab);
  return writer;
}

std::string make_tiny_model(const TinyModelOptions& options) {
  return tiny_model_writer(options).finish();
}

std::string random_weights(WeightType type, uint64_t count, float magnitude, uint64_t seed) {
  const WeightTypeTraits& traits = traits_of(type);
  TROUPE_ASSERT(count % traits.block_weights == 0, traits.name, count);
  std::string out;
  out.reserve(count / traits.block_weights * traits.block_bytes);
  if (traits.block_weights == 1) {
    for (uint64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>((2.0 * philox_uniform(seed, i, 0) - 1.0) * magnitude);
      if (type == WeightType::kF32) out += bytes_of(value);
      if (type == WeightType::kF16) out += bytes_of(f32_to_f16(value));
      if (type == WeightType::kBF16) out += bytes_of(f32_to_bf16(value));
    }
    return out;
  }
  const BlockScales scales = block_scales(type);
  uint64_t draw = 0;
  for (uint64_t i = 0; i < count / traits.block_weights; ++i) {
    std::string block;
    while (block.size() < traits.block_bytes) block += bytes_of(philox_u64(seed, draw++, 0));
    block.resize(traits.block_bytes);
    const auto spread = static_cast<float>(0.75 + 0.5 * philox_uniform(seed, i, 1)) * magnitude;
    put_f16(block, scales.scale_at, scales.scale * spread);
    if (scales.has_minimum) put_f16(block, scales.scale_at + 2, scales.minimum * spread);
    out += block;
  }
  return out;
}

TemporaryFile::TemporaryFile(std::string_view content) {
  path_ = (std::filesystem::temp_directory_path() / "troupe_test_XXXXXX").string();
  const int descriptor = ::mkstemp(path_.data());
  TROUPE_ASSERT(descriptor >= 0, path_);
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    TROUPE_ASSERT(written > 0, path_);
    content.remove_prefix(static_cast<size_t>(written));
  }
  ::close(descriptor);
}

TemporaryFile::~TemporaryFile() {
  ::unlink(path_.c_str());
}

}  // namespace troupe::test
