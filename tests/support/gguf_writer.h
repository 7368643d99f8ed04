#pragma once
// Makes GGUF files for tests: any container (also broken ones, see `raw` and `override_*`), and
// small random models of every family with a byte-level BPE vocabulary. Deterministic: same
// options, same bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/gguf_file.h"
#include "kernels/weight_type.h"

namespace troupe::test {

class GgufWriter {
 public:
  explicit GgufWriter(uint32_t version = 3) : version_(version) {}

  void add_u32(std::string_view key, uint32_t value);
  void add_u64(std::string_view key, uint64_t value);
  void add_i32(std::string_view key, int32_t value);
  void add_f32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, const std::vector<std::string>& values);
  void add_i32s(std::string_view key, const std::vector<int32_t>& values);
  void add_f32s(std::string_view key, const std::vector<float>& values);
  // `payload` is written as is after the type number.
  void add_raw(std::string_view key, uint32_t type, std::string_view payload);
  // Removes every entry of that name.
  void remove(std::string_view key);
  [[nodiscard]] bool has(std::string_view key) const;

  // `data` may be of any size; `type` any number; `offset` replaces the computed one.
  void add_tensor(std::string_view name, uint32_t type, std::vector<uint64_t> dims,
                  std::string data, std::optional<uint64_t> offset = {});
  void remove_tensor(std::string_view name);

  // The alignment of the tensor data; general.alignment is written only by add_u32.
  void set_alignment(uint64_t alignment) { alignment_ = alignment; }
  void override_counts(std::optional<uint64_t> tensors, std::optional<uint64_t> keys);

  // The whole file. `tensor_info_offset`, when given, receives where the tensor directory begins,
  // `data_offset` where the data does.
  [[nodiscard]] std::string finish(uint64_t* tensor_info_offset = nullptr,
                                   uint64_t* data_offset = nullptr) const;

 private:
  struct Key {
    std::string name;
    uint32_t type;
    std::string payload;
  };
  struct Tensor {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> dims;
    std::string data;
    std::optional<uint64_t> offset;
  };

  uint32_t version_;
  uint64_t alignment_ = 32;
  std::optional<uint64_t> tensor_count_, key_count_;
  std::vector<Key> keys_;
  std::vector<Tensor> tensors_;
};

// Defaults give a two-layer model of about 90 KB. Types with blocks need width, ffn_width and
// heads * head_size to be multiples of the block (32 or 256); asserted.
struct TinyModelOptions {
  std::string architecture = "llama";
  uint32_t layers = 2;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_size = 8;
  uint32_t width = 32;
  uint32_t ffn_width = 64;
  uint32_t context_length = 256;
  // 0: as many as the tokenizer has; more are padded with unused tokens; fewer only without it.
  uint32_t vocab = 0;
  float rope_freq_base = 10'000.0F;
  float rms_epsilon = 1e-5F;
  WeightType weights = WeightType::kF32;     // of the linear layers
  WeightType embeddings = WeightType::kF32;  // of token_embd (and output when untied)
  bool tied = true;
  bool tokenizer = true;  // write the tokenizer's metadata
  std::string pre_tokenizer = "smollm";
  std::string chat_template;        // empty: ChatML
  std::vector<float> rope_factors;  // not empty: written as rope_freqs.weight
  uint32_t window = 0;              // not 0: attention.sliding_window
  uint32_t global_every = 0;        // not 0: attention.sliding_window_pattern
  uint64_t seed = 1;
};

// Tokens: 0 <|endoftext|>, 1 <|im_start|> (BOS), 2 <|im_end|> (EOS), 3 + b = the byte b, then one
// token per merge of tiny_merges(), then unused ones.
inline constexpr uint32_t kTinySpecialTokens = 3;
[[nodiscard]] std::vector<std::string> tiny_merges();
[[nodiscard]] std::vector<std::string> tiny_vocabulary(uint32_t vocab = 0);

// The writer, to be changed before finish(); and the finished file.
[[nodiscard]] GgufWriter tiny_model_writer(const TinyModelOptions& options);
[[nodiscard]] std::string make_tiny_model(const TinyModelOptions& options);

// Random blocks of the type with plausible scales: weights of about +-`magnitude`.
[[nodiscard]] std::string random_weights(WeightType type, uint64_t count, float magnitude,
                                         uint64_t seed);

// Little-endian bytes of an integer or float, for add_raw.
template <class T>
[[nodiscard]] std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
// A GGUF string: length and characters.
[[nodiscard]] std::string string_bytes(std::string_view text);

// A file of its own in the temporary folder, removed when the object dies.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace troupe::test
