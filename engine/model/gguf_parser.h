#pragma once
// Fills a GgufFile from its bytes; an implementation detail of how a GgufFile is opened.

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/model/gguf_file.h"
#include "troupe/status.h"

namespace troupe {

// Reads front to back, once. After a failure the file object must not be used.
class GgufParser final {
 public:
  // What the bytes are: all of a file, or what stands before its tensors' data.
  enum class Extent : uint8_t { kFile, kHeader };

  explicit GgufParser(GgufFile& file, Extent extent = Extent::kFile)
      : file_(file), extent_(extent) {}
  Status parse();

 private:
  Status parse_header();
  Status parse_values();
  Status parse_value(uint64_t index);
  // Checks `count` elements of `type` from here on and moves behind them.
  Status skip_elements(std::string_view key, GgufType type, uint64_t count, uint32_t depth);
  Status skip_array(std::string_view key, GgufValue* value, uint32_t depth);
  Status check_values();
  Status parse_tensors();
  Status parse_tensor(uint64_t index);
  Status parse_dimensions(GgufTensor& tensor);
  Status parse_weight_type(GgufTensor& tensor);
  Status place_tensors();
  Status check_overlaps();

  Status take_u32(uint32_t& out, const std::string& what);
  Status take_u64(uint64_t& out, const std::string& what);
  Status take_string(std::string_view& out, uint64_t bytes_max, const std::string& what);
  Status take_type(GgufType& out, const std::string& what);

  [[nodiscard]] uint64_t left() const { return file_.bytes_.size() - at_; }
  [[nodiscard]] const char* here() const {
    return reinterpret_cast<const char*>(file_.bytes_.data()) + at_;
  }
  // kDataLoss for a claim that the bytes do not keep: "<file>: <what> (at byte N). <fix>".
  [[nodiscard]] Status damaged(const std::string& what, uint64_t offset) const;
  // kDataLoss for a file that a writer made wrong: the fix is another conversion.
  [[nodiscard]] Status malformed(const std::string& what, uint64_t offset) const;
  [[nodiscard]] Status unsupported(const std::string& what, uint64_t offset,
                                   const std::string& fix) const;

  GgufFile& file_;
  const Extent extent_;
  uint64_t at_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
};

}  // namespace troupe
