#include "engine/model/gguf_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

#include "base/assert.h"
#include "engine/model/gguf_parser.h"
#include "engine/model/printable.h"

namespace troupe {
namespace {

template <class T>
T load(const char* bytes) {
  T value{};
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::optional<float> float_at(GgufType type, const char* bytes) {
  if (type == GgufType::kFloat32) return load<float>(bytes);
  if (type == GgufType::kFloat64) return static_cast<float>(load<double>(bytes));
  return std::nullopt;
}

template <class Item>
const Item* find_by_name(const std::vector<Item>& items, const std::vector<uint32_t>& order,
                         std::string_view name, std::string_view Item::*member) {
  const auto at = std::lower_bound(
      order.begin(), order.end(), name,
      [&](uint32_t index, std::string_view wanted) { return items[index].*member < wanted; });
  if (at == order.end() || items[*at].*member != name) return nullptr;
  return &items[*at];
}

Status open_error(const std::string& path, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  return {absent ? StatusCode::kNotFound : StatusCode::kInvalidArgument,
          path + ": the model file cannot be opened: " + std::generic_category().message(error) +
              (absent ? ". Check the path." : ". Check the file and its permissions.")};
}

}  // namespace

std::string_view to_string(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
      return "uint8";
    case GgufType::kInt8:
      return "int8";
    case GgufType::kUint16:
      return "uint16";
    case GgufType::kInt16:
      return "int16";
    case GgufType::kUint32:
      return "uint32";
    case GgufType::kInt32:
      return "int32";
    case GgufType::kFloat32:
      return "float32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kUint64:
      return "uint64";
    case GgufType::kInt64:
      return "int64";
    case GgufType::kFloat64:
      return "float64";
  }
  return "unknown";
}

uint32_t fixed_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

std::optional<int64_t> integer_at(GgufType type, const char* bytes) {
  switch (type) {
    case GgufType::kUint8:
      return load<uint8_t>(bytes);
    case GgufType::kInt8:
      return load<int8_t>(bytes);
    case GgufType::kUint16:
      return load<uint16_t>(bytes);
    case GgufType::kInt16:
      return load<int16_t>(bytes);
    case GgufType::kUint32:
      return load<uint32_t>(bytes);
    case GgufType::kInt32:
      return load<int32_t>(bytes);
    case GgufType::kInt64:
      return load<int64_t>(bytes);
    case GgufType::kUint64: {
      const auto value = load<uint64_t>(bytes);
      if (value > uint64_t{INT64_MAX}) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    case GgufType::kFloat32:
    case GgufType::kFloat64:
    case GgufType::kBool:
    case GgufType::kString:
    case GgufType::kArray:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string shape_text(const GgufTensor& tensor) {
  std::string text = "[";
  for (uint32_t i = 0; i < tensor.rank; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.dims[i]);
  return text + "]";
}

// Owns the descriptor and the mapping of a whole file.
class GgufFile::Mapping final {
 public:
  explicit Mapping(int descriptor) : descriptor_(descriptor) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (address_ != nullptr) ::munmap(address_, size_);
    ::close(descriptor_);
  }

  Status map(const std::string& path) {
    if (::fstat(descriptor_, &opened_) != 0) return open_error(path, errno);
    if (S_ISDIR(opened_.st_mode)) {
      return {StatusCode::kInvalidArgument,
              path + ": this is a directory; give the path of a GGUF file"};
    }
    if (!S_ISREG(opened_.st_mode)) {
      return {StatusCode::kInvalidArgument,
              path + ": this is not a regular file; give the path of a GGUF file"};
    }
    size_ = static_cast<size_t>(opened_.st_size);
    if (size_ == 0) {
      return {StatusCode::kDataLoss, path + ": the file is empty; download it again"};
    }
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (address == MAP_FAILED) {
      return {StatusCode::kResourceExhausted,
              path + ": mapping " + std::to_string(size_) +
                  " bytes failed: " + std::generic_category().message(errno) +
                  "; raise the address-space limit (ulimit -v)"};
    }
    address_ = address;
    return {};
  }

  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(address_), size_};
  }

  [[nodiscard]] bool unchanged() const {
    struct stat now {};
    return ::fstat(descriptor_, &now) == 0 && now.st_size == opened_.st_size &&
           now.st_mtim.tv_sec == opened_.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec;
  }

 private:
  int descriptor_;
  void* address_ = nullptr;
  size_t size_ = 0;
  struct stat opened_ {};
};

GgufFile::GgufFile(std::string name, std::unique_ptr<Mapping> mapping,
                   std::span<const std::byte> bytes)
    : name_(std::move(name)), mapping_(std::move(mapping)), bytes_(bytes) {}

GgufFile::~GgufFile() = default;

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::string& path) {
  // O_NONBLOCK: a pipe in the file's place must not make the open wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return open_error(printable(path, 4096), errno);
  auto mapping = std::make_unique<Mapping>(descriptor);
  TROUPE_RETURN_IF_ERROR(mapping->map(printable(path, 4096)));
  const std::span<const std::byte> bytes = mapping->bytes();
  std::unique_ptr<GgufFile> file(
      new GgufFile(printable(path, 4096), std::move(mapping), bytes));  // private constructor
  TROUPE_RETURN_IF_ERROR(GgufParser(*file).parse());
  return file;
}

Result<std::unique_ptr<GgufFile>> GgufFile::from_bytes(std::span<const std::byte> bytes,
                                                       std::string name) {
  std::unique_ptr<GgufFile> file(new GgufFile(std::move(name), nullptr, bytes));
  TROUPE_RETURN_IF_ERROR(GgufParser(*file).parse());
  return file;
}

Result<std::unique_ptr<GgufFile>> GgufFile::from_header(std::vector<std::byte> header,
                                                        std::string name) {
  std::unique_ptr<GgufFile> file(new GgufFile(std::move(name), nullptr, {}));
  file->owned_header_ = std::move(header);
  file->bytes_ = file->owned_header_;
  TROUPE_RETURN_IF_ERROR(GgufParser(*file, GgufParser::Extent::kHeader).parse());
  return file;
}

const GgufValue* GgufFile::find_value(std::string_view key) const {
  return find_by_name(values_, values_by_key_, key, &GgufValue::key);
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  return find_by_name(tensors_, tensors_by_name_, name, &GgufTensor::name);
}

Status GgufFile::missing(std::string_view key) const {
  return {StatusCode::kDataLoss, name_ + ": metadata key " + quoted(key) +
                                     " is missing. Convert the model again with a current "
                                     "converter, or get another file."};
}

Status GgufFile::mismatch(const GgufValue& value, std::string_view wanted) const {
  std::string type(to_string(value.type));
  if (value.type == GgufType::kArray) type += " of " + std::string(to_string(value.element_type));
  const std::optional<int64_t> number =
      value.payload.empty() ? std::nullopt : integer_at(value.type, value.payload.data());
  if (number) type += " " + std::to_string(*number);
  return {StatusCode::kDataLoss, name_ + ": metadata key " + quoted(value.key) + " (at byte " +
                                     std::to_string(value.offset) + ") holds " + type +
                                     "; it must be " + std::string(wanted) +
                                     ". Convert the model again, or get another file."};
}

Result<const GgufValue*> GgufFile::require(std::string_view key) const {
  const GgufValue* value = find_value(key);
  if (value == nullptr) return missing(key);
  return value;
}

Result<uint32_t> GgufFile::get_u32(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  const std::optional<int64_t> number = integer_at(value->type, value->payload.data());
  if (!number || *number < 0 || *number > int64_t{UINT32_MAX})
    return mismatch(*value, "an integer from 0 to 2^32 - 1");
  return static_cast<uint32_t>(*number);
}

Result<uint64_t> GgufFile::get_u64(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  const std::optional<int64_t> number = integer_at(value->type, value->payload.data());
  if (!number || *number < 0) return mismatch(*value, "an integer from 0 to 2^63 - 1");
  return static_cast<uint64_t>(*number);
}

Result<float> GgufFile::get_f32(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  const std::optional<float> number = float_at(value->type, value->payload.data());
  if (!number) return mismatch(*value, "a float");
  return *number;
}

Result<bool> GgufFile::get_bool(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (value->type != GgufType::kBool) return mismatch(*value, "a bool");
  return value->payload[0] != 0;
}

Result<std::string_view> GgufFile::get_string(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (value->type != GgufType::kString) return mismatch(*value, "a string");
  return value->payload;
}

Result<uint32_t> GgufFile::get_u32_or(std::string_view key, uint32_t fallback) const {
  return has(key) ? get_u32(key) : Result<uint32_t>(fallback);
}

Result<float> GgufFile::get_f32_or(std::string_view key, float fallback) const {
  return has(key) ? get_f32(key) : Result<float>(fallback);
}

Result<bool> GgufFile::get_bool_or(std::string_view key, bool fallback) const {
  return has(key) ? get_bool(key) : Result<bool>(fallback);
}

Result<std::string_view> GgufFile::get_string_or(std::string_view key,
                                                 std::string_view fallback) const {
  return has(key) ? get_string(key) : Result<std::string_view>(fallback);
}

Result<std::vector<std::string_view>> GgufFile::get_strings(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (value->type != GgufType::kArray || value->element_type != GgufType::kString)
    return mismatch(*value, "an array of strings");
  std::vector<std::string_view> strings;
  strings.reserve(value->count);
  const char* at = value->payload.data();
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto length = load<uint64_t>(at);
    strings.emplace_back(at + sizeof length, length);
    at += sizeof length + length;
  }
  TROUPE_ASSERT(at == value->payload.data() + value->payload.size(), key);
  return strings;
}

Result<std::vector<int32_t>> GgufFile::get_i32s(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (value->type != GgufType::kArray) return mismatch(*value, "an array of integers");
  const uint32_t stride = fixed_bytes(value->element_type);
  std::vector<int32_t> numbers;
  numbers.reserve(stride == 0 ? 0 : value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::optional<int64_t> number =
        integer_at(value->element_type, value->payload.data() + i * stride);
    if (!number || *number < INT32_MIN || *number > INT32_MAX)
      return mismatch(*value, "an array of integers of 32 bits");
    numbers.push_back(static_cast<int32_t>(*number));
  }
  return numbers;
}

Result<std::vector<float>> GgufFile::get_f32s(std::string_view key) const {
  TROUPE_ASSIGN_OR_RETURN(const GgufValue* value, require(key));
  if (value->type != GgufType::kArray) return mismatch(*value, "an array of floats");
  const uint32_t stride = fixed_bytes(value->element_type);
  std::vector<float> numbers;
  numbers.reserve(stride == 0 ? 0 : value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::optional<float> number =
        float_at(value->element_type, value->payload.data() + i * stride);
    if (!number) return mismatch(*value, "an array of floats");
    numbers.push_back(*number);
  }
  return numbers;
}

void GgufFile::release_pages(std::span<const std::byte> part) const {
  TROUPE_ASSERT(part.data() >= bytes_.data(), name_);
  TROUPE_ASSERT(part.data() + part.size() <= bytes_.data() + bytes_.size(), name_, part.size());
  if (mapping_ == nullptr) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(part.data()) + part.size()) / page * page;
  if (begin >= end) return;
  // Advice: a failure costs memory, not correctness.
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Status GgufFile::check_unchanged() const {
  if (mapping_ == nullptr || mapping_->unchanged()) return {};
  return {StatusCode::kDataLoss,
          name_ +
              ": the file changed on disk while it was read; load it again when the writer is "
              "done (replace a model by renaming the new file over it)"};
}

}  // namespace troupe
