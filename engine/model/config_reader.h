#pragma once
// Reads the numbers of one architecture from a file's metadata and keeps the first thing that went
// wrong, so that the caller reads straight on and looks once. Part of read_model().

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/model/gguf_file.h"
#include "troupe/status.h"

namespace troupe {

// The fix for a file that contradicts itself.
inline constexpr char kConvertAgain[] = "Convert the model again, or get another file.";

// A suffix is a key without the architecture's name before it: "block_count". After the first error
// numbers are made up (1, or the fallback), so that nothing divides by zero before status() is
// looked at.
class ConfigReader final {
 public:
  ConfigReader(const GgufFile& file, std::string architecture)
      : file_(file), architecture_(std::move(architecture)) {}

  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const GgufFile& file() const { return file_; }
  [[nodiscard]] const std::string& architecture() const { return architecture_; }
  [[nodiscard]] std::string key(std::string_view suffix) const {
    return architecture_ + "." + std::string(suffix);
  }
  [[nodiscard]] bool has(std::string_view suffix) const { return file_.has(key(suffix)); }

  // From 1 to `maximum`.
  uint32_t number(std::string_view suffix, uint32_t maximum);
  uint32_t number_or(std::string_view suffix, uint32_t fallback, uint32_t maximum);
  // From 0 to `maximum`.
  uint32_t number_or_zero(std::string_view suffix, uint32_t maximum);
  float in_range_or(std::string_view suffix, float fallback, float minimum, float maximum);
  // Of a rotary scaling.
  float factor_or(std::string_view suffix, float fallback);
  // Positive and finite.
  float positive_or(std::string_view suffix, float fallback);

  // Says that a key's value is `what`: kDataLoss, and kUnsupported.
  void corrupt(std::string_view suffix, const std::string& what);
  void unsupported(std::string_view suffix, const std::string& what);
  void fail(Status status);

 private:
  // Some architectures give a number per layer; here such numbers are alike in all layers.
  void refuse_per_layer(std::string_view suffix);
  uint32_t in_range(std::string_view suffix, const Result<uint32_t>& value, uint32_t minimum,
                    uint32_t maximum);

  const GgufFile& file_;
  const std::string architecture_;
  Status status_;
};

}  // namespace troupe
