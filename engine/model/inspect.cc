#include "engine/model/inspect.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/model/model_config.h"
#include "engine/model/printable.h"
#include "kernels/weight_type.h"

namespace troupe {
namespace {

constexpr size_t kNameBytesMax = 64;
constexpr size_t kStringBytesMax = 160;
constexpr size_t kElementBytesMax = 24;
constexpr uint64_t kElementsShown = 8;

// Rows of cells, aligned to the left with two spaces between; the last column is not padded.
class Table final {
 public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  void append_to(std::string& out) const {
    std::vector<size_t> widths;
    for (const auto& row : rows_) {
      if (row.size() > widths.size()) widths.resize(row.size(), 0);
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows_) {
      out += "  ";
      for (size_t i = 0; i < row.size(); ++i) {
        out += row[i];
        if (i + 1 < row.size()) out.append(widths[i] - row[i].size() + 2, ' ');
      }
      out += '\n';
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

// 98362432 -> "98,362,432"
std::string grouped(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// In the unit that leaves one to four digits before the point: "93.8 MiB".
std::string bytes_text(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string float_text(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

template <class T>
T load(const char* bytes) {
  T value{};
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// A value of fixed size.
std::string scalar_text(GgufType type, const char* bytes) {
  if (type == GgufType::kBool) return *bytes != 0 ? "true" : "false";
  if (type == GgufType::kFloat32) return float_text(double{load<float>(bytes)});
  if (type == GgufType::kFloat64) return float_text(load<double>(bytes));
  if (const auto number = integer_at(type, bytes)) return std::to_string(*number);
  return std::to_string(load<uint64_t>(bytes));  // above the int64 range
}

std::string array_text(const GgufValue& value) {
  const uint32_t stride = fixed_bytes(value.element_type);
  if (value.element_type == GgufType::kArray) return "(nested)";
  std::string text = "[";
  const char* at = value.payload.data();
  for (uint64_t i = 0; i < std::min(value.count, kElementsShown); ++i) {
    if (i > 0) text += ", ";
    if (stride != 0) {
      text += scalar_text(value.element_type, at);
      at += stride;
      continue;
    }
    const auto length = load<uint64_t>(at);
    text += '"' + printable({at + sizeof length, length}, kElementBytesMax) + '"';
    at += sizeof length + length;
  }
  if (value.count > kElementsShown) text += ", ...";
  return text + "]";
}

std::string type_text(const GgufValue& value) {
  if (value.type != GgufType::kArray) return std::string(to_string(value.type));
  return std::string(to_string(value.element_type)) + "[" + std::to_string(value.count) + "]";
}

std::string value_text(const GgufValue& value) {
  if (value.type == GgufType::kArray) return array_text(value);
  if (value.type == GgufType::kString) return printable(value.payload, kStringBytesMax);
  return scalar_text(value.type, value.payload.data());
}

void append_metadata(const GgufFile& file, std::string& out) {
  out += "\nMetadata (" + grouped(file.values().size()) + " keys)\n";
  Table table;
  for (const GgufValue& value : file.values())
    table.add({printable(value.key, kNameBytesMax), type_text(value), value_text(value)});
  table.append_to(out);
}

void append_tensors(const GgufFile& file, std::string& out) {
  out += "\nTensors (" + grouped(file.tensors().size()) + ")\n";
  Table table;
  table.add({"name", "type", "shape", "bytes"});
  for (const GgufTensor& tensor : file.tensors()) {
    table.add({printable(tensor.name, kNameBytesMax), std::string(traits_of(tensor.type).name),
               shape_text(tensor), grouped(tensor.bytes)});
  }
  table.append_to(out);
}

void append_totals(const GgufFile& file, std::string& out) {
  out += "\nTotals per type\n";
  Table table;
  table.add({"type", "tensors", "weights", "bytes"});
  uint64_t weights_all = 0;
  uint64_t bytes_all = 0;
  for (const WeightTypeTraits& traits : kWeightTypes) {
    uint64_t tensors = 0;
    uint64_t weights = 0;
    uint64_t bytes = 0;
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.type != traits.type) continue;
      ++tensors;
      weights += tensor.row_weights() * tensor.rows();
      bytes += tensor.bytes;
    }
    if (tensors == 0) continue;
    table.add({std::string(traits.name), grouped(tensors), grouped(weights), grouped(bytes)});
    weights_all += weights;
    bytes_all += bytes;
  }
  table.add({"all", grouped(file.tensors().size()), grouped(weights_all), grouped(bytes_all)});
  table.append_to(out);
}

std::string rope_text(const ModelConfig& config) {
  std::string text = std::to_string(config.rope_dims) + " dimensions, base " +
                     float_text(double{config.rope_freq_base});
  if (config.rope_linear_scale != 1.0F)
    text += ", positions scaled by " + float_text(double{config.rope_linear_scale});
  if (!config.rope_factors.empty()) text += ", Llama 3 frequency factors";
  return text;
}

std::string window_text(const ModelConfig& config) {
  uint32_t windowed = 0;
  for (uint32_t layer = 0; layer < config.layers; ++layer) windowed += config.windowed(layer);
  return grouped(config.window) + " tokens in " + std::to_string(windowed) + " of " +
         std::to_string(config.layers) + " layers, rotary base " +
         float_text(double{config.window_rope_freq_base});
}

void append_model(const ModelConfig& config, std::string& out) {
  out += "\nModel\n";
  Table table;
  table.add({"architecture", config.architecture});
  table.add({"layers", grouped(config.layers)});
  table.add({"context", grouped(config.context_length) + " tokens"});
  table.add({"vocabulary", grouped(config.vocab) + " tokens"});
  table.add({"width", grouped(config.width)});
  table.add({"feed-forward width", grouped(config.ffn_width)});
  table.add({"heads", std::to_string(config.heads) + " (" + std::to_string(config.kv_heads) +
                          " for keys and values) of " + std::to_string(config.head_size)});
  table.add({"rotary embedding", rope_text(config)});
  if (config.window != 0) table.add({"sliding window", window_text(config)});
  table.add({"RMS epsilon", float_text(double{config.rms_epsilon})});
  table.add({"output layer", config.tied_output ? "the embedding table" : "a tensor of its own"});
  table.append_to(out);
}

void append_memory(const GgufFile& file, const ModelConfig& config, std::string& out) {
  const MemoryEstimate memory = estimate_memory(file, config, KvType::kF16);
  const MemoryEstimate small = estimate_memory(file, config, KvType::kInt8);
  const auto context = [&](const MemoryEstimate& of) {
    return of.kv_bytes_per_token * config.context_length;
  };
  out += "\nMemory\n";
  Table table;
  table.add({"weights, as stored", bytes_text(memory.weight_bytes)});
  table.add({"KV cache per token", bytes_text(memory.kv_bytes_per_token) + " (f16)",
             bytes_text(small.kv_bytes_per_token) + " (int8)"});
  table.add({"KV cache per block of " + std::to_string(kBlockTokens) + " tokens",
             bytes_text(memory.kv_bytes_per_block), bytes_text(small.kv_bytes_per_block)});
  table.add(
      {"KV cache of one full context", bytes_text(context(memory)), bytes_text(context(small))});
  table.add({"weights and one full context", bytes_text(memory.weight_bytes + context(memory)),
             bytes_text(memory.weight_bytes + context(small))});
  table.append_to(out);
}

}  // namespace

std::string inspect_text(const GgufFile& file) {
  std::string out = "File " + printable(file.name(), 4096) + "\n  GGUF version " +
                    std::to_string(file.version()) + ", " + grouped(file.size()) +
                    " bytes, tensor data from byte " + grouped(file.data_offset()) +
                    ", aligned to " + std::to_string(file.alignment()) + "\n";
  append_metadata(file, out);
  append_tensors(file, out);
  append_totals(file, out);
  const Result<ModelDescription> model = read_model(file);
  if (!model.ok()) {
    out += "\nThis model cannot be served: " + printable(model.status().message(), 4096) + "\n";
    return out;
  }
  append_model(model->config, out);
  append_memory(file, model->config, out);
  return out;
}

}  // namespace troupe
