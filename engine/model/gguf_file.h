#pragma once
// Reads the GGUF container (versions 2 and 3, little-endian): metadata and tensor directory of one
// memory-mapped file. What the numbers mean for a model is model_config.h's business.
// Source of the format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
// Every number in the file is a claim: it is checked against the bytes that are left, and against a
// limit below, before anything is allocated or touched. A file that breaks a rule gives a Status
// that names the file, the field, the byte offset, the rule and the fix: kDataLoss for a truncated,
// damaged or foreign file, kUnsupported for a sound one that this build cannot read.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/weight_type.h"
#include "troupe/status.h"

namespace troupe {

// Limits on what a file may claim. All are far above what real models hold.
struct GgufLimits {
  static constexpr uint64_t kKeysMax = 65'536;
  static constexpr uint64_t kTensorsMax = 262'144;
  static constexpr uint64_t kNameBytesMax = 65'535;  // of a key or tensor name; the format's own
  static constexpr uint64_t kStringBytesMax = uint64_t{64} << 20;
  static constexpr uint64_t kArrayElementsMax = uint64_t{64} << 20;
  static constexpr uint32_t kArrayDepthMax = 4;
  static constexpr uint64_t kAlignmentMax = uint64_t{1} << 20;
  static constexpr uint32_t kDimensionsMax = 4;
};

// Types of metadata values; the numbers are those in the file.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

[[nodiscard]] std::string_view to_string(GgufType type);

// One metadata entry, already validated. The views point into the file's bytes.
struct GgufValue {
  std::string_view key;
  GgufType type = GgufType::kUint8;
  GgufType element_type = GgufType::kUint8;  // when type is kArray
  uint64_t count = 0;                        // elements, when type is kArray
  // A scalar's bytes, a string's characters, or an array's encoded elements.
  std::string_view payload;
  uint64_t offset = 0;  // of the payload in the file
};

// One tensor of the file, already validated: its bytes lie inside the file and overlap no other's.
struct GgufTensor {
  std::string_view name;
  WeightType type = WeightType::kF32;
  uint32_t rank = 1;
  // dims[0] is the contiguous one, the inputs of a linear layer; those from `rank` on are 1.
  std::array<uint64_t, 4> dims{1, 1, 1, 1};
  uint64_t offset = 0;  // of the data in the file
  uint64_t bytes = 0;
  // Aligned as general.alignment says, relative to the file's start; null in a header alone.
  const std::byte* data = nullptr;

  [[nodiscard]] uint64_t row_weights() const { return dims[0]; }
  [[nodiscard]] uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
};

// "[576, 49152]"
[[nodiscard]] std::string shape_text(const GgufTensor& tensor);

// Reads an integer of any width, of the type that is stored at `bytes`; nothing for a type that is
// no integer or a value above the int64 range.
[[nodiscard]] std::optional<int64_t> integer_at(GgufType type, const char* bytes);
// Bytes of a value of fixed size; 0 for strings and arrays.
[[nodiscard]] uint32_t fixed_bytes(GgufType type);

// Owns the mapping; every view handed out lives as long as the object. Const methods are
// thread-safe.
//
// The mapping is read-only and private. A file that is *replaced* (renamed over) while open is
// safe; one that is cut short in place makes the kernel send SIGBUS at the first touch of the lost
// part, as with every mapping: check_unchanged() narrows the window and names the cause.
class GgufFile final {
 public:
  // Maps and parses `path`. Besides the format's errors: kNotFound (no such file), kInvalidArgument
  // (a directory or device, no permission; with errno's text).
  static Result<std::unique_ptr<GgufFile>> open(const std::string& path);
  // Parses bytes that the caller keeps alive and unchanged; `name` stands for the path in errors.
  static Result<std::unique_ptr<GgufFile>> from_bytes(std::span<const std::byte> bytes,
                                                      std::string name);
  // Parses what header() of a whole file gave: metadata and tensor list without the tensors' data.
  // Every tensor has its type, shape, place and size, and `data` is null. Bytes behind the header
  // are ignored. The object owns the bytes.
  static Result<std::unique_ptr<GgufFile>> from_header(std::vector<std::byte> header,
                                                       std::string name);

  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }  // path, for messages
  [[nodiscard]] uint32_t version() const { return version_; }
  [[nodiscard]] uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] uint64_t alignment() const { return alignment_; }
  [[nodiscard]] uint64_t data_offset() const { return data_offset_; }  // of the tensor data
  // Everything before the tensors' data: enough for tokenizer and chat template, and small enough
  // to be sent to a process that has no model file.
  [[nodiscard]] std::span<const std::byte> header() const { return bytes_.first(header_bytes_); }
  // False for from_header().
  [[nodiscard]] bool has_data() const { return owned_header_.empty(); }
  // The whole file, as it is mapped; of from_header() the header alone.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  // In the file's order.
  [[nodiscard]] std::span<const GgufValue> values() const { return values_; }
  [[nodiscard]] std::span<const GgufTensor> tensors() const { return tensors_; }
  // Null when there is none of that name.
  [[nodiscard]] const GgufValue* find_value(std::string_view key) const;
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view key) const { return find_value(key) != nullptr; }

  // Typed getters: kDataLoss when the key is missing or its value is of another kind or out of the
  // asked type's range. Integers of every width are accepted, as writers differ; a float may be
  // stored as float64. The `_or` forms return `fallback` when the key is missing, and only then.
  [[nodiscard]] Result<uint32_t> get_u32(std::string_view key) const;
  [[nodiscard]] Result<uint64_t> get_u64(std::string_view key) const;
  [[nodiscard]] Result<float> get_f32(std::string_view key) const;
  [[nodiscard]] Result<bool> get_bool(std::string_view key) const;
  [[nodiscard]] Result<std::string_view> get_string(std::string_view key) const;
  [[nodiscard]] Result<uint32_t> get_u32_or(std::string_view key, uint32_t fallback) const;
  [[nodiscard]] Result<float> get_f32_or(std::string_view key, float fallback) const;
  [[nodiscard]] Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::string_view> get_string_or(std::string_view key,
                                                       std::string_view fallback) const;
  // Arrays; O(elements). The strings are views into the file and may hold any bytes.
  [[nodiscard]] Result<std::vector<std::string_view>> get_strings(std::string_view key) const;
  [[nodiscard]] Result<std::vector<int32_t>> get_i32s(std::string_view key) const;
  [[nodiscard]] Result<std::vector<float>> get_f32s(std::string_view key) const;

  // Tells the kernel that the pages which lie wholly within `part` of bytes() are not needed for
  // now (their weights were packed elsewhere), so that they stop counting as resident. Reading them
  // still works, even meanwhile on another thread: they come from the file again.
  void release_pages(std::span<const std::byte> part) const;

  // kDataLoss when the file on disk no longer has the size or modification time that was mapped.
  // Call it after the weights were read. Always ok for what was not opened by a path.
  [[nodiscard]] Status check_unchanged() const;

 private:
  friend class GgufParser;
  class Mapping;
  GgufFile(std::string name, std::unique_ptr<Mapping> mapping, std::span<const std::byte> bytes);

  [[nodiscard]] Status missing(std::string_view key) const;
  [[nodiscard]] Status mismatch(const GgufValue& value, std::string_view wanted) const;
  [[nodiscard]] Result<const GgufValue*> require(std::string_view key) const;

  std::string name_;
  std::unique_ptr<Mapping> mapping_;     // of open() alone
  std::vector<std::byte> owned_header_;  // of from_header() alone
  std::span<const std::byte> bytes_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  uint64_t header_bytes_ = 0;
  uint64_t data_offset_ = 0;
  std::vector<GgufValue> values_;
  std::vector<GgufTensor> tensors_;
  // Positions in values_ and tensors_, sorted by name: no hash that a crafted file could defeat.
  std::vector<uint32_t> values_by_key_;
  std::vector<uint32_t> tensors_by_name_;
};

}  // namespace troupe
