#pragma once
// Finds the tensors of a model in its file by name and checks their shapes; part of read_model().

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/gguf_file.h"
#include "troupe/status.h"

namespace troupe {

[[nodiscard]] Status missing_tensor(const GgufFile& file, std::string_view name);

// Hands out the tensors by name, keeps the first error, and knows which tensors nobody asked for.
class TensorBinder final {
 public:
  TensorBinder(const GgufFile& file, std::string_view architecture)
      : file_(file), architecture_(architecture), used_(file.tensors().size(), false) {}

  // Null, and an error kept, for a tensor that is missing (kDataLoss) or of another shape.
  const GgufTensor* vector(const std::string& name, uint32_t size) { return bind(name, {size}); }
  const GgufTensor* matrix(const std::string& name, uint32_t inputs, uint32_t outputs) {
    return bind(name, {inputs, outputs});
  }
  // Values that other parts read, or that nobody needs.
  void ignore(std::string_view name);

  [[nodiscard]] const Status& status() const { return status_; }
  // kUnsupported for a tensor that was not asked for: leaving it out would change the arithmetic
  // silently.
  [[nodiscard]] Status check_all_used() const;

 private:
  void use(const GgufTensor* tensor) {
    used_[static_cast<size_t>(tensor - file_.tensors().data())] = true;
  }
  const GgufTensor* bind(const std::string& name, const std::vector<uint64_t>& dims);

  const GgufFile& file_;
  const std::string architecture_;
  std::vector<bool> used_;
  Status status_;
};

}  // namespace troupe
