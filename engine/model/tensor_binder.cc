#include "engine/model/tensor_binder.h"

#include <algorithm>

#include "engine/model/config_reader.h"
#include "engine/model/printable.h"

namespace troupe {

Status missing_tensor(const GgufFile& file, std::string_view name) {
  return {StatusCode::kDataLoss,
          file.name() + ": tensor " + quoted(name) + " is missing from the file's " +
              std::to_string(file.tensors().size()) + " tensors. " + kConvertAgain};
}

void TensorBinder::ignore(std::string_view name) {
  if (const GgufTensor* tensor = file_.find_tensor(name); tensor != nullptr) use(tensor);
}

Status TensorBinder::check_all_used() const {
  for (size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]) continue;
    return {StatusCode::kUnsupported,
            file_.name() + ": tensor " + quoted(file_.tensors()[i].name) + " is no part of the " +
                architecture_ + " architecture that this build serves, and leaving it " +
                "out would change the result. Use a plain " + architecture_ + " model."};
  }
  return {};
}

const GgufTensor* TensorBinder::bind(const std::string& name, const std::vector<uint64_t>& dims) {
  const GgufTensor* tensor = file_.find_tensor(name);
  if (tensor == nullptr) {
    if (status_.ok()) status_ = missing_tensor(file_, name);
    return nullptr;
  }
  use(tensor);
  if (tensor->rank == dims.size() && std::equal(dims.begin(), dims.end(), tensor->dims.begin()))
    return tensor;
  std::string wanted;
  for (const uint64_t dim : dims) wanted += (wanted.empty() ? "" : ", ") + std::to_string(dim);
  if (status_.ok()) {
    status_ = {StatusCode::kDataLoss,
               file_.name() + ": tensor " + quoted(name) + " has the shape " + shape_text(*tensor) +
                   "; the metadata asks for [" + wanted + "]. " + kConvertAgain};
  }
  return nullptr;
}

}  // namespace troupe
