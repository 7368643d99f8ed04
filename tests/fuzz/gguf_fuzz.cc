// Parses, validates and describes any bytes as a GGUF file: whatever comes, it must end in a Status
// or a description, never in a crash, and an error must have a message.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "engine/model/gguf_file.h"
#include "engine/model/inspect.h"
#include "engine/model/model_config.h"

namespace {

// Touches the first and last byte of each tensor: both must be inside the input.
uint32_t touch(const troupe::GgufFile& file) {
  uint32_t sum = 0;
  for (const troupe::GgufTensor& tensor : file.tensors()) {
    sum += static_cast<uint32_t>(tensor.data[0]);
    sum += static_cast<uint32_t>(tensor.data[tensor.bytes - 1]);
  }
  return sum;
}

// The same bytes as what a peer sent of its file: whatever the whole file is, its header says the
// same, and more inputs are headers than files.
void open_as_header(std::span<const std::byte> bytes, const troupe::GgufFile* whole) {
  const auto header = troupe::GgufFile::from_header({bytes.begin(), bytes.end()}, "input");
  if (whole != nullptr) TROUPE_ASSERT(header.ok(), header.status().message());
  if (!header.ok()) {
    TROUPE_ASSERT(!header.status().message().empty(), bytes.size());
    return;
  }
  for (const troupe::GgufTensor& tensor : header.value()->tensors())
    TROUPE_ASSERT(tensor.data == nullptr, tensor.offset);
  for (const troupe::GgufValue& value : header.value()->values())
    static_cast<void>(header.value()->get_strings(value.key).ok());
  static_cast<void>(troupe::read_model(*header.value()).ok());
  if (whole == nullptr) return;
  TROUPE_ASSERT(header.value()->header().size() == whole->header().size(), bytes.size());
  TROUPE_ASSERT(header.value()->tensors().size() == whole->tensors().size(), bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  const auto file = troupe::GgufFile::from_bytes(bytes, "input");
  open_as_header(bytes, file.ok() ? file.value().get() : nullptr);
  if (!file.ok()) {
    TROUPE_ASSERT(!file.status().message().empty(), size);
    return 0;
  }
  [[maybe_unused]] volatile uint32_t sum = touch(*file.value());
  for (const troupe::GgufValue& value : file.value()->values()) {
    TROUPE_ASSERT(file.value()->find_value(value.key) == &value, value.offset);
    static_cast<void>(file.value()->get_strings(value.key).ok());
    static_cast<void>(file.value()->get_i32s(value.key).ok());
    static_cast<void>(file.value()->get_f32s(value.key).ok());
  }
  const auto model = troupe::read_model(*file.value());
  const std::string text = troupe::inspect_text(*file.value());
  const bool refused = text.find("\nThis model cannot be served: ") != std::string::npos;
  TROUPE_ASSERT(refused || model.ok(), model.status().message());
  return 0;
}
