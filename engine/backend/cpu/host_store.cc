#include "engine/backend/cpu/host_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "kernels/ops/ops.h"
#include "kernels/reference/dequantize.h"

namespace troupe {

std::string describe(const TensorSource& source) {
  return std::string(source.name) + " (" + std::string(traits_of(source.type).name) + ", [" +
         std::to_string(source.inputs) + ", " + std::to_string(source.outputs) + "])";
}

Status check_source(const TensorSource& source) {
  const WeightTypeTraits& traits = traits_of(source.type);
  if (source.inputs == 0 || source.outputs == 0 || source.inputs % traits.block_weights != 0)
    return {StatusCode::kUnsupported, "tensor " + describe(source) +
                                          ": a row must be a whole number of blocks of " +
                                          std::to_string(traits.block_weights) + " weights"};
  const uint64_t bytes = uint64_t{row_bytes_of(source)} * source.outputs;
  if (source.bytes.size() < bytes)
    return {StatusCode::kDataLoss, "tensor " + describe(source) + " needs " +
                                       std::to_string(bytes) + " bytes and has " +
                                       std::to_string(source.bytes.size()) + ": get the file anew"};
  return ok_status();
}

size_t row_bytes_of(const TensorSource& source) {
  const WeightTypeTraits& traits = traits_of(source.type);
  return size_t{source.inputs} / traits.block_weights * traits.block_bytes;
}

Result<std::vector<float>> dequantized(const TensorSource& source) {
  TROUPE_RETURN_IF_ERROR(check_source(source));
  std::vector<float> values(size_t{source.inputs} * source.outputs);
  dequantize(source.type, source.bytes.data(), source.outputs, source.inputs, values.data());
  return values;
}

Result<BufferHandle> HostBuffers::allocate(uint64_t bytes, MemoryKind kind) {
  TROUPE_ASSERT(bytes > 0, bytes);
  AlignedBuffer memory(bytes);
  if (memory.empty())
    return Status(StatusCode::kResourceExhausted,
                  "no memory for a buffer of " + std::to_string(bytes) +
                      " bytes: lower the number of KV blocks or of tokens per step");
  auto slot = std::find_if(entries_.begin(), entries_.end(),
                           [](const Entry& entry) { return entry.memory.empty(); });
  if (slot == entries_.end()) slot = entries_.insert(slot, Entry{});
  *slot = Entry{std::move(memory), kind};
  return BufferHandle(static_cast<uint32_t>(slot - entries_.begin()) + 1);
}

const HostBuffers::Entry& HostBuffers::entry(BufferHandle handle) const {
  TROUPE_ASSERT(handle.value >= 1 && handle.value <= entries_.size(), handle, entries_.size());
  const Entry& found = entries_[handle.value - 1];
  TROUPE_ASSERT(!found.memory.empty(), handle);
  return found;
}

void HostBuffers::release(BufferHandle handle) {
  static_cast<void>(entry(handle));
  entries_[handle.value - 1].memory = AlignedBuffer();
}

std::span<std::byte> HostBuffers::pinned(BufferHandle handle) const {
  const Entry& found = entry(handle);
  TROUPE_ASSERT(found.kind == MemoryKind::kHostPinned, handle);
  return {found.memory.as<std::byte>(), found.memory.bytes()};
}

std::byte* HostBuffers::at(BufferHandle handle, uint64_t offset, uint64_t bytes) const {
  const Entry& found = entry(handle);
  TROUPE_ASSERT(offset <= found.memory.bytes() && bytes <= found.memory.bytes() - offset, handle,
                offset, bytes, found.memory.bytes());
  return found.memory.as<std::byte>() + offset;
}

float* HostBuffers::floats(const Rows& rows) const {
  const uint64_t row_bytes = uint64_t{rows.width} * sizeof(float);
  return reinterpret_cast<float*>(
      at(rows.buffer, rows.first_row * row_bytes, rows.rows * row_bytes));
}

Result<VectorHandle> HostTensors::add_vector(const TensorSource& source) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<float> values, dequantized(source));
  bytes_ += values.size() * sizeof(float);
  vectors_.push_back(std::move(values));
  return VectorHandle(static_cast<uint32_t>(vectors_.size()));
}

Result<EmbeddingHandle> HostTensors::add_embedding(const TensorSource& source) {
  TROUPE_RETURN_IF_ERROR(check_source(source));
  embeddings_.push_back({.table = source});
  embeddings_.back().table.name = "";  // the view belongs to the caller
  return EmbeddingHandle(static_cast<uint32_t>(embeddings_.size()));
}

std::span<const float> HostTensors::vector(VectorHandle handle) const {
  TROUPE_ASSERT(handle.value >= 1 && handle.value <= vectors_.size(), handle);
  return vectors_[handle.value - 1];
}

void HostTensors::embed(EmbeddingHandle handle, TokenId token, std::span<float> out) const {
  TROUPE_ASSERT(handle.value >= 1 && handle.value <= embeddings_.size(), handle);
  const TensorSource& table = embeddings_[handle.value - 1].table;
  TROUPE_ASSERT(token >= 0 && static_cast<uint32_t>(token) < table.outputs, token, table.outputs);
  TROUPE_ASSERT(out.size() == table.inputs, out.size(), table.inputs);
  dequantize(table.type, table.bytes.data() + static_cast<size_t>(token) * row_bytes_of(table), 1,
             table.inputs, out.data());
}

void HostTensors::looked_up(EmbeddingHandle handle, uint32_t rows) {
  TROUPE_ASSERT(handle.value >= 1 && handle.value <= embeddings_.size(), handle);
  Embedding& embedding = embeddings_[handle.value - 1];
  embedding.lookups += rows;
  if (embedding.lookups < kLookupsKept || !embedding.table.release) return;
  embedding.table.release(embedding.table.bytes);
  embedding.lookups = 0;
}

Result<RopeHandle> HostRopes::add(const RopeParameters& parameters) {
  TROUPE_ASSERT(parameters.rotated_dim % 2 == 0, parameters.rotated_dim);
  TROUPE_ASSERT(parameters.rotated_dim <= parameters.head_dim, parameters.rotated_dim);
  TROUPE_ASSERT(parameters.base > 0.0 && parameters.linear_scale > 0.0, parameters.base,
                parameters.linear_scale);
  const size_t pairs = parameters.rotated_dim / 2;
  const std::span<const float> factors = parameters.frequency_factors;
  TROUPE_ASSERT(factors.empty() || factors.size() == pairs, factors.size(), pairs);
  RopeTable table{parameters.head_dim, parameters.rotated_dim, parameters.pairs,
                  std::vector<double>(pairs)};
  rope_frequencies(parameters.base, parameters.linear_scale,
                   factors.empty() ? nullptr : factors.data(), parameters.rotated_dim,
                   table.frequencies.data());
  ropes_.push_back(std::move(table));
  return RopeHandle(static_cast<uint32_t>(ropes_.size()));
}

const RopeTable& HostRopes::get(RopeHandle handle) const {
  TROUPE_ASSERT(handle.value >= 1 && handle.value <= ropes_.size(), handle);
  return ropes_[handle.value - 1];
}

Result<KvHandle> HostKvPools::add(const KvShape& shape, HostBuffers& buffers) {
  TROUPE_ASSERT(shape.layers > 0 && shape.kv_heads > 0 && shape.head_dim > 0 && shape.blocks > 0,
                shape.layers, shape.kv_heads, shape.head_dim, shape.blocks);
  KvPool pool{.shape = shape, .layout = {}, .base = nullptr};
  pool.layout.type = shape.type;
  pool.layout.key_bytes = kv_key_bytes(shape.type, shape.head_dim);
  pool.layout.value_bytes = kv_value_bytes(shape.type, shape.head_dim);
  pool.layout.block_bytes = kv_block_bytes(shape.type, shape.kv_heads, shape.head_dim);
  // A block with all its layers: what is in use touches few pages, however many layers there are.
  pool.layout.layer_stride = pool.layout.block_bytes;
  pool.layout.block_stride = pool.layout.layer_stride * shape.layers;
  const uint64_t bytes = pool.layout.block_stride * shape.blocks;
  TROUPE_ASSIGN_OR_RETURN(pool.layout.buffer, buffers.allocate(bytes, MemoryKind::kDevice));
  pool.base = buffers.at(pool.layout.buffer, 0, bytes);
  pools_.push_back(pool);
  return KvHandle(static_cast<uint32_t>(pools_.size()));
}

const KvPool& HostKvPools::get(KvHandle handle) const {
  TROUPE_ASSERT(handle.value >= 1 && handle.value <= pools_.size(), handle);
  return pools_[handle.value - 1];
}

void HostKvPools::copy_block(KvHandle handle, BlockIndex from, BlockIndex to) const {
  const KvPool& pool = get(handle);
  TROUPE_ASSERT(from.value < pool.shape.blocks && to.value < pool.shape.blocks && from != to, from,
                to, pool.shape.blocks);
  const uint64_t stride = pool.layout.block_stride;
  std::memcpy(pool.base + to.value * stride, pool.base + from.value * stride, stride);
}

void HostRotations::set(RopeHandle handle, const RopeTable& rope,
                        std::span<const uint32_t> positions) {
  handle_ = handle;
  rope_ = &rope;
  angles_.resize(size_t{2} * positions.size() * rope.rotated_dim);
  for (size_t row = 0; row < positions.size(); ++row) {
    float* angles = &angles_[size_t{2} * row * rope.rotated_dim];
    rope_angles(positions[row], rope.frequencies.data(), rope.rotated_dim, rope.pairs, angles,
                angles + rope.rotated_dim);
  }
}

void HostBatch::set(const Batch& batch, std::span<const RopeHandle> ropes,
                    const HostRopes& tables) {
  tokens_.assign(batch.tokens.begin(), batch.tokens.end());
  slices_.clear();
  block_table_.clear();
  positions_.resize(tokens_.size());
  row_blocks_.resize(tokens_.size());
  row_window_blocks_.clear();
  uint32_t row = 0;
  for (const BatchSlice& slice : batch.slices) {
    TROUPE_ASSERT(slice.first_row == row && slice.rows > 0, slice.first_row, row, slice.rows);
    TROUPE_ASSERT(size_t{slice.position} + slice.rows <= slice.blocks.size() * kBlockTokens,
                  slice.position, slice.rows, slice.blocks.size());
    const auto table = static_cast<uint32_t>(block_table_.size());
    const auto blocks = static_cast<uint32_t>(slice.blocks.size());
    slices_.push_back({row, slice.rows, slice.position, table, blocks, table + blocks});
    for (BlockIndex block : slice.blocks) block_table_.push_back(block.value);
    add_window_blocks(slice);
    for (uint32_t r = 0; r < slice.rows; ++r, ++row) {
      TROUPE_ASSERT(row < tokens_.size(), row, tokens_.size());
      positions_[row] = slice.position + r;
      row_blocks_[row] = slice.blocks[positions_[row] / kBlockTokens].value;
    }
  }
  TROUPE_ASSERT(row == tokens_.size(), row, tokens_.size());
  rotations_.resize(ropes.size());
  for (size_t i = 0; i < ropes.size(); ++i)
    rotations_[i].set(ropes[i], tables.get(ropes[i]), positions_);
}

void HostBatch::add_window_blocks(const BatchSlice& slice) {
  if (slice.window_blocks.empty()) return;
  TROUPE_ASSERT(slice.window_first + slice.window_blocks.size() == slice.blocks.size() &&
                    slice.window_first <= slice.position / kBlockTokens,
                slice.position, slice.window_first, slice.window_blocks.size());
  const size_t table = block_table_.size();
  block_table_.resize(table + slice.window_first);
  for (BlockIndex block : slice.window_blocks) block_table_.push_back(block.value);
  for (uint32_t r = 0; r < slice.rows; ++r)
    row_window_blocks_.push_back(block_table_[table + (slice.position + r) / kBlockTokens]);
}

const HostRotations& HostBatch::rotations(RopeHandle rope) const {
  const auto found =
      std::find_if(rotations_.begin(), rotations_.end(),
                   [&](const HostRotations& rotations) { return rotations.handle() == rope; });
  TROUPE_ASSERT(found != rotations_.end(), rope, rotations_.size());
  return *found;
}

}  // namespace troupe
