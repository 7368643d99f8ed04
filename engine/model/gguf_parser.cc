#include "engine/model/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.h"
#include "engine/model/printable.h"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are read as they lie in the file");

constexpr uint64_t kKeyBytesMin = 8 + 1 + 4 + 1;  // length, one character, type, value
constexpr uint64_t kTensorBytesMin =
    8 + 1 + 4 + 8 + 4 + 8;  // ... rank, one dimension, type, offset
constexpr uint64_t kAlignmentMin = 8;

struct Signature {
  std::string_view start;
  std::string_view what;
};

// What people hand over in place of a GGUF file.
constexpr Signature kSignatures[] = {
    {"version https://git-lfs", "a Git LFS pointer, not the file itself"},
    {"<!DOCTYPE", "a web page"},
    {"<html", "a web page"},
    {"PK\x03\x04", "a zip archive or PyTorch checkpoint"},
    {"\x1f\x8b", "a gzip archive"},
    {"lmgg", "a GGML file from before GGUF"},
    {"fmgg", "a GGMF file from before GGUF"},
    {"tjgg", "a GGJT file from before GGUF"},
    {"FUGG", "a big-endian GGUF file"},
};

std::string foreign_kind(std::string_view bytes) {
  for (const Signature& signature : kSignatures)
    if (bytes.starts_with(signature.start)) return "; it looks like " + std::string(signature.what);
  if (bytes.size() > 9 && bytes.substr(8, 2) == "{\"") return "; it looks like a safetensors file";
  return {};
}

// Names of ggml's other tensor types, so that an error can say what the file holds.
std::string ggml_type_name(uint32_t number) {
  struct Entry {
    uint32_t number;
    std::string_view name;
  };
  constexpr Entry kOthers[] = {
      {10, "Q2_K"},    {11, "Q3_K"},  {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"},
      {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},   {22, "IQ2_S"},
      {23, "IQ4_XS"},  {24, "I8"},    {25, "I16"},    {26, "I32"},     {27, "I64"},
      {28, "F64"},     {29, "IQ1_M"}, {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},
  };
  for (const Entry& entry : kOthers)
    if (entry.number == number)
      return std::string(entry.name) + " (" + std::to_string(number) + ")";
  return std::to_string(number);
}

std::string supported_types() {
  std::string text;
  for (const WeightTypeTraits& traits : kWeightTypes)
    text += (text.empty() ? "" : ", ") + std::string(traits.name);
  return text;
}

}  // namespace

Status GgufParser::damaged(const std::string& what, uint64_t offset) const {
  return {StatusCode::kDataLoss,
          file_.name_ + ": " + what + " (at byte " + std::to_string(offset) +
              "). The file is truncated or damaged: download it again and compare its SHA-256."};
}

Status GgufParser::malformed(const std::string& what, uint64_t offset) const {
  return {StatusCode::kDataLoss,
          file_.name_ + ": " + what + " (at byte " + std::to_string(offset) +
              "). The file breaks the GGUF format: convert the model again, or get another file."};
}

Status GgufParser::unsupported(const std::string& what, uint64_t offset,
                               const std::string& fix) const {
  return {StatusCode::kUnsupported,
          file_.name_ + ": " + what + " (at byte " + std::to_string(offset) + "). " + fix};
}

Status GgufParser::take_u32(uint32_t& out, const std::string& what) {
  if (left() < sizeof out) return damaged("the file ends before " + what, at_);
  std::memcpy(&out, here(), sizeof out);
  at_ += sizeof out;
  return {};
}

Status GgufParser::take_u64(uint64_t& out, const std::string& what) {
  if (left() < sizeof out) return damaged("the file ends before " + what, at_);
  std::memcpy(&out, here(), sizeof out);
  at_ += sizeof out;
  return {};
}

Status GgufParser::take_string(std::string_view& out, uint64_t bytes_max, const std::string& what) {
  uint64_t length = 0;
  const uint64_t start = at_;
  TROUPE_RETURN_IF_ERROR(take_u64(length, "the length of " + what));
  if (length > bytes_max) {
    return damaged("the length of " + what + " is " + std::to_string(length) +
                       ", above the limit of " + std::to_string(bytes_max) + " bytes",
                   start);
  }
  if (length > left()) {
    return damaged("the length of " + what + " is " + std::to_string(length) + " but only " +
                       std::to_string(left()) + " bytes are left",
                   start);
  }
  out = {here(), length};
  at_ += length;
  return {};
}

Status GgufParser::take_type(GgufType& out, const std::string& what) {
  uint32_t number = 0;
  const uint64_t start = at_;
  TROUPE_RETURN_IF_ERROR(take_u32(number, what));
  if (number > static_cast<uint32_t>(GgufType::kFloat64)) {
    return malformed(
        what + " is " + std::to_string(number) + ", which is none of the types 0 to 12", start);
  }
  out = static_cast<GgufType>(number);
  return {};
}

Status GgufParser::parse() {
  TROUPE_RETURN_IF_ERROR(parse_header());
  TROUPE_RETURN_IF_ERROR(parse_values());
  TROUPE_RETURN_IF_ERROR(check_values());
  TROUPE_RETURN_IF_ERROR(parse_tensors());
  TROUPE_RETURN_IF_ERROR(place_tensors());
  return check_overlaps();
}

Status GgufParser::parse_header() {
  const std::string_view start(here(), std::min<uint64_t>(left(), 64));
  if (start.empty()) return damaged("the file is empty", 0);
  if (!start.starts_with("GGUF")) {
    return {StatusCode::kDataLoss,
            file_.name_ + ": not a GGUF file: it starts with " + quoted(start.substr(0, 4)) +
                " instead of 'GGUF'" + foreign_kind(start) +
                ". Give the path of a GGUF model (version 2 or 3, little-endian)."};
  }
  at_ = 4;
  uint32_t version = 0;
  TROUPE_RETURN_IF_ERROR(take_u32(version, "the format version"));
  if ((version & 0xFFFFU) == 0 && version != 0) {
    return unsupported("this is a big-endian GGUF file; only little-endian ones are read", 4,
                       "Get the little-endian file, or convert this one with gguf-convert-endian.");
  }
  if (version != 2 && version != 3) {
    return unsupported("the GGUF version is " + std::to_string(version) + "; 2 and 3 are supported",
                       4, "Convert the model again with a current converter.");
  }
  file_.version_ = version;
  TROUPE_RETURN_IF_ERROR(take_u64(tensor_count_, "the tensor count"));
  TROUPE_RETURN_IF_ERROR(take_u64(key_count_, "the metadata key count"));
  const auto check = [&](const char* what, uint64_t count, uint64_t limit, uint64_t bytes_min,
                         uint64_t offset) -> Status {
    if (count <= limit && count <= left() / bytes_min) return {};
    return damaged("the " + std::string(what) + " is " + std::to_string(count) + ", above " +
                       (count > limit ? "the limit of " + std::to_string(limit)
                                      : "what fits into the " + std::to_string(left()) +
                                            " bytes that are left"),
                   offset);
  };
  TROUPE_RETURN_IF_ERROR(
      check("tensor count", tensor_count_, GgufLimits::kTensorsMax, kTensorBytesMin, 8));
  return check("metadata key count", key_count_, GgufLimits::kKeysMax, kKeyBytesMin, 16);
}

Status GgufParser::parse_values() {
  file_.values_.reserve(key_count_);
  for (uint64_t i = 0; i < key_count_; ++i) TROUPE_RETURN_IF_ERROR(parse_value(i));
  auto& order = file_.values_by_key_;
  order.resize(key_count_);
  for (uint32_t i = 0; i < key_count_; ++i) order[i] = i;
  const auto& values = file_.values_;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return values[a].key < values[b].key; });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufValue& value = values[order[i]];
    if (values[order[i - 1]].key == value.key)
      return malformed("metadata key " + quoted(value.key) + " occurs twice", value.offset);
  }
  return {};
}

Status GgufParser::parse_value(uint64_t index) {
  GgufValue value;
  const uint64_t start = at_;
  const std::string what =
      "metadata key number " + std::to_string(index + 1) + " of " + std::to_string(key_count_);
  TROUPE_RETURN_IF_ERROR(take_string(value.key, GgufLimits::kNameBytesMax, what));
  if (value.key.empty()) return malformed(what + " has an empty name", start);
  TROUPE_RETURN_IF_ERROR(take_type(value.type, "the type of metadata key " + quoted(value.key)));
  value.offset = at_;
  if (value.type == GgufType::kArray) {
    TROUPE_RETURN_IF_ERROR(skip_array(value.key, &value, 1));
  } else if (value.type == GgufType::kString) {
    TROUPE_RETURN_IF_ERROR(take_string(value.payload, GgufLimits::kStringBytesMax,
                                       "the value of metadata key " + quoted(value.key)));
    value.offset = at_ - value.payload.size();
  } else {
    TROUPE_RETURN_IF_ERROR(skip_elements(value.key, value.type, 1, 0));
    value.payload = {here() - (at_ - value.offset), at_ - value.offset};
  }
  file_.values_.push_back(value);
  return {};
}

Status GgufParser::skip_array(std::string_view key, GgufValue* value, uint32_t depth) {
  const uint64_t start = at_;
  if (depth > GgufLimits::kArrayDepthMax) {
    return malformed("metadata key " + quoted(key) + " nests arrays deeper than " +
                         std::to_string(GgufLimits::kArrayDepthMax) + " levels",
                     start);
  }
  GgufType type{};
  uint64_t count = 0;
  TROUPE_RETURN_IF_ERROR(take_type(type, "the element type of metadata key " + quoted(key)));
  TROUPE_RETURN_IF_ERROR(take_u64(count, "the array length of metadata key " + quoted(key)));
  const uint64_t elements = at_;
  if (count > GgufLimits::kArrayElementsMax) {
    return damaged("the array length of metadata key " + quoted(key) + " is " +
                       std::to_string(count) + ", above the limit of " +
                       std::to_string(GgufLimits::kArrayElementsMax) + " elements",
                   start + 4);
  }
  TROUPE_RETURN_IF_ERROR(skip_elements(key, type, count, depth));
  if (value != nullptr) {
    value->element_type = type;
    value->count = count;
    value->offset = elements;
    value->payload = {here() - (at_ - elements), at_ - elements};
  }
  return {};
}

Status GgufParser::skip_elements(std::string_view key, GgufType type, uint64_t count,
                                 uint32_t depth) {
  // A string takes at least its length, an array its type and length.
  const uint64_t fixed = fixed_bytes(type);
  const uint64_t bytes_min = fixed != 0 ? fixed : (type == GgufType::kString ? 8 : 12);
  if (count > left() / bytes_min) {
    return damaged("metadata key " + quoted(key) + " claims " + std::to_string(count) +
                       (count == 1 ? " element" : " elements") + " of type " +
                       std::string(to_string(type)) + " but only " + std::to_string(left()) +
                       " bytes are left",
                   at_);
  }
  if (type == GgufType::kArray) {
    for (uint64_t i = 0; i < count; ++i)
      TROUPE_RETURN_IF_ERROR(skip_array(key, nullptr, depth + 1));
    return {};
  }
  if (type == GgufType::kString) {
    // A vocabulary has many strings: the text for an error is made only when there is one.
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t length = 0;
      if (left() >= sizeof length) std::memcpy(&length, here(), sizeof length);
      if (left() < sizeof length || length > left() - sizeof length ||
          length > GgufLimits::kStringBytesMax) {
        std::string_view unused;
        return take_string(unused, GgufLimits::kStringBytesMax,
                           "element " + std::to_string(i) + " of metadata key " + quoted(key));
      }
      at_ += sizeof length + length;
    }
    return {};
  }
  if (type == GgufType::kBool) {
    for (uint64_t i = 0; i < count; ++i) {
      const auto byte = static_cast<uint8_t>(here()[i]);
      if (byte > 1) {
        return malformed("metadata key " + quoted(key) + " holds the bool " + std::to_string(byte) +
                             "; a bool is 0 or 1",
                         at_ + i);
      }
    }
  }
  at_ += count * fixed;  // cannot overflow: count <= left() / fixed
  return {};
}

Status GgufParser::check_values() {
  if (const GgufValue* split = file_.find_value("split.count"); split != nullptr) {
    const Result<uint32_t> parts = file_.get_u32("split.count");
    TROUPE_RETURN_IF_ERROR(parts.status());
    if (parts.value() > 1) {
      return unsupported(
          "this is one of " + std::to_string(parts.value()) + " parts of a split model",
          split->offset, "Merge the parts first: gguf-split --merge FIRST OUTPUT.");
    }
  }
  const GgufValue* alignment = file_.find_value("general.alignment");
  if (alignment == nullptr) return {};
  const Result<uint32_t> bytes = file_.get_u32("general.alignment");
  TROUPE_RETURN_IF_ERROR(bytes.status());
  file_.alignment_ = bytes.value();
  if (!std::has_single_bit(file_.alignment_) || file_.alignment_ < kAlignmentMin ||
      file_.alignment_ > GgufLimits::kAlignmentMax) {
    return malformed("general.alignment is " + std::to_string(file_.alignment_) +
                         "; it must be a power of two from " + std::to_string(kAlignmentMin) +
                         " to " + std::to_string(GgufLimits::kAlignmentMax),
                     alignment->offset);
  }
  return {};
}

Status GgufParser::parse_tensors() {
  file_.tensors_.reserve(std::min(tensor_count_, left() / kTensorBytesMin));
  for (uint64_t i = 0; i < tensor_count_; ++i) TROUPE_RETURN_IF_ERROR(parse_tensor(i));
  auto& order = file_.tensors_by_name_;
  order.resize(tensor_count_);
  for (uint32_t i = 0; i < tensor_count_; ++i) order[i] = i;
  const auto& tensors = file_.tensors_;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  for (size_t i = 1; i < order.size(); ++i) {
    const std::string_view name = tensors[order[i]].name;
    if (tensors[order[i - 1]].name == name) {
      const char* base = reinterpret_cast<const char*>(file_.bytes_.data());
      return malformed("tensor " + quoted(name) + " occurs twice",
                       static_cast<uint64_t>(name.data() - base));
    }
  }
  return {};
}

Status GgufParser::parse_tensor(uint64_t index) {
  GgufTensor tensor;
  const uint64_t start = at_;
  const std::string what = "the name of tensor number " + std::to_string(index + 1) + " of " +
                           std::to_string(tensor_count_);
  TROUPE_RETURN_IF_ERROR(take_string(tensor.name, GgufLimits::kNameBytesMax, what));
  if (tensor.name.empty()) return malformed(what + " is empty", start);
  TROUPE_RETURN_IF_ERROR(parse_dimensions(tensor));
  TROUPE_RETURN_IF_ERROR(parse_weight_type(tensor));
  // Relative to the data for now; place_tensors() makes it absolute once the data's start is known.
  TROUPE_RETURN_IF_ERROR(take_u64(tensor.offset, "the offset of tensor " + quoted(tensor.name)));
  file_.tensors_.push_back(tensor);
  return {};
}

Status GgufParser::parse_dimensions(GgufTensor& tensor) {
  const uint64_t start = at_;
  const std::string name = quoted(tensor.name);
  TROUPE_RETURN_IF_ERROR(take_u32(tensor.rank, "the number of dimensions of tensor " + name));
  if (tensor.rank < 1 || tensor.rank > GgufLimits::kDimensionsMax) {
    return malformed("tensor " + name + " has " + std::to_string(tensor.rank) +
                         " dimensions; 1 to 4 are allowed",
                     start);
  }
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    uint64_t& size = tensor.dims[i];
    TROUPE_RETURN_IF_ERROR(take_u64(size, "dimension " + std::to_string(i) + " of tensor " + name));
    if (size == 0) {
      return malformed("dimension " + std::to_string(i) + " of tensor " + name +
                           " is 0; every dimension is at least 1",
                       at_ - 8);
    }
    if (__builtin_mul_overflow(count, size, &count) || count > uint64_t{INT64_MAX}) {
      return damaged("the dimensions of tensor " + name + " overflow: their product is above 2^63",
                     start);
    }
  }
  return {};
}

Status GgufParser::parse_weight_type(GgufTensor& tensor) {
  const uint64_t start = at_;
  uint32_t number = 0;
  TROUPE_RETURN_IF_ERROR(take_u32(number, "the type of tensor " + quoted(tensor.name)));
  const WeightTypeTraits* traits = find_weight_type(number);
  if (traits == nullptr) {
    return unsupported("tensor " + quoted(tensor.name) + " has the type " + ggml_type_name(number) +
                           ", which this build cannot read",
                       start, "Use a file whose tensors are of " + supported_types() + ".");
  }
  tensor.type = traits->type;
  if (tensor.dims[0] % traits->block_weights != 0) {
    return malformed("the rows of tensor " + quoted(tensor.name) + " have " +
                         std::to_string(tensor.dims[0]) + " weights; " + std::string(traits->name) +
                         " needs a multiple of " + std::to_string(traits->block_weights),
                     start);
  }
  // The product of the dimensions is below 2^63, and a block of one weight has at most 4 bytes.
  const uint64_t blocks = tensor.dims[0] / traits->block_weights * tensor.rows();
  if (__builtin_mul_overflow(blocks, uint64_t{traits->block_bytes}, &tensor.bytes)) {
    return damaged("the size of tensor " + quoted(tensor.name) + " overflows 64 bits", start);
  }
  return {};
}

Status GgufParser::place_tensors() {
  const uint64_t alignment = file_.alignment_;
  const uint64_t size = extent_ == Extent::kFile ? file_.bytes_.size() : uint64_t{INT64_MAX};
  file_.header_bytes_ = at_;
  file_.data_offset_ = (at_ + alignment - 1) / alignment * alignment;
  for (GgufTensor& tensor : file_.tensors_) {
    const std::string_view name = tensor.name;
    if (tensor.offset % alignment != 0) {
      return malformed("the offset " + std::to_string(tensor.offset) + " of tensor " +
                           quoted(name) + " is not a multiple of the alignment " +
                           std::to_string(alignment),
                       file_.data_offset_);
    }
    uint64_t begin = 0;
    uint64_t end = 0;
    const bool overflow = __builtin_add_overflow(file_.data_offset_, tensor.offset, &begin) ||
                          __builtin_add_overflow(begin, tensor.bytes, &end);
    if (overflow || end > size) {
      return damaged("tensor " + quoted(name) + " needs " + std::to_string(tensor.bytes) +
                         " bytes at offset " + std::to_string(tensor.offset) +
                         " of the data, but the file has only " + std::to_string(size) + " bytes",
                     file_.data_offset_);
    }
    tensor.offset = begin;
    if (extent_ == Extent::kFile) tensor.data = file_.bytes_.data() + begin;
  }
  return {};
}

Status GgufParser::check_overlaps() {
  std::vector<const GgufTensor*> order;
  order.reserve(file_.tensors_.size());
  for (const GgufTensor& tensor : file_.tensors_) order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = *order[i - 1];
    TROUPE_ASSERT(before.bytes > 0, before.name);
    if (before.offset + before.bytes > order[i]->offset) {
      return malformed(
          "tensors " + quoted(before.name) + " and " + quoted(order[i]->name) + " overlap",
          order[i]->offset);
    }
  }
  return {};
}

}  // namespace troupe
