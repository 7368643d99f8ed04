#pragma once
// What the backends whose device memory is host memory have in common: buffers, vectors, embedding
// tables, KV pools and the copy of the current batch, all by handle. A wrong handle or range is a
// bug and ends the process.

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "kernels/linear/aligned_buffer.h"

namespace troupe {

// "blk.0.attn_q.weight (Q4_1, [576, 576])"
[[nodiscard]] std::string describe(const TensorSource& source);
// kDataLoss or kUnsupported when the bytes are too few for the shape or a row is no whole number of
// blocks.
[[nodiscard]] Status check_source(const TensorSource& source);
// What a row of it takes in the file.
[[nodiscard]] size_t row_bytes_of(const TensorSource& source);
// Checked first; row-major floats.
[[nodiscard]] Result<std::vector<float>> dequantized(const TensorSource& source);

class HostBuffers final {
 public:
  [[nodiscard]] Result<BufferHandle> allocate(uint64_t bytes, MemoryKind kind);
  void release(BufferHandle handle);
  [[nodiscard]] std::span<std::byte> pinned(BufferHandle handle) const;
  [[nodiscard]] std::byte* at(BufferHandle handle, uint64_t offset, uint64_t bytes) const;
  // The first float of `rows`; all of them lie inside the buffer.
  [[nodiscard]] float* floats(const Rows& rows) const;

 private:
  struct Entry {
    AlignedBuffer memory;
    MemoryKind kind = MemoryKind::kDevice;
  };
  [[nodiscard]] const Entry& entry(BufferHandle handle) const;

  std::vector<Entry> entries_;  // handle - 1; empty memory: free
};

// Vectors and embedding tables. Tables are read where they stand.
class HostTensors final {
 public:
  [[nodiscard]] Result<VectorHandle> add_vector(const TensorSource& source);
  [[nodiscard]] Result<EmbeddingHandle> add_embedding(const TensorSource& source);
  [[nodiscard]] std::span<const float> vector(VectorHandle handle) const;
  // Writes the table's row `token`.
  void embed(EmbeddingHandle handle, TokenId token, std::span<float> out) const;
  // To be called after so many of them: gives the table's pages back now and then. The system maps
  // some 16 around each row, which in time would be all.
  void looked_up(EmbeddingHandle handle, uint32_t rows);
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  std::vector<std::vector<float>> vectors_;
  static constexpr uint32_t kLookupsKept = 256;  // 16 MiB, if all are far from one another

  struct Embedding {
    TensorSource table;
    uint32_t lookups = 0;  // since its pages were given back
  };
  std::vector<Embedding> embeddings_;
  uint64_t bytes_ = 0;
};

struct RopeTable {
  uint32_t head_dim = 0;
  uint32_t rotated_dim = 0;
  RopePairs pairs = RopePairs::kAdjacent;
  std::vector<double> frequencies;
};

class HostRopes final {
 public:
  [[nodiscard]] Result<RopeHandle> add(const RopeParameters& parameters);
  [[nodiscard]] const RopeTable& get(RopeHandle handle) const;

 private:
  std::deque<RopeTable> ropes_;  // a batch refers to its tables
};

// One KV pool.
struct KvPool {
  KvShape shape;
  KvLayout layout;
  std::byte* base = nullptr;

  // Where a layer's keys, or values, of a kv head begin in block 0.
  [[nodiscard]] std::byte* keys(uint32_t layer, uint32_t kv_head) const {
    return base + layer * layout.layer_stride + kv_head * layout.key_bytes;
  }
  [[nodiscard]] std::byte* values(uint32_t layer, uint32_t kv_head) const {
    return base + layer * layout.layer_stride + shape.kv_heads * layout.key_bytes +
           kv_head * layout.value_bytes;
  }
};

class HostKvPools final {
 public:
  // Stored as `shape.type`.
  [[nodiscard]] Result<KvHandle> add(const KvShape& shape, HostBuffers& buffers);
  [[nodiscard]] const KvPool& get(KvHandle handle) const;
  void copy_block(KvHandle handle, BlockIndex from, BlockIndex to) const;

 private:
  std::vector<KvPool> pools_;
};

// The rotations of a batch's rows by one table.
class HostRotations final {
 public:
  void set(RopeHandle handle, const RopeTable& rope, std::span<const uint32_t> positions);
  [[nodiscard]] RopeHandle handle() const { return handle_; }
  [[nodiscard]] const RopeTable& rope() const { return *rope_; }
  [[nodiscard]] const float* cosines(uint32_t row) const {
    return &angles_[size_t{2} * row * rope_->rotated_dim];
  }
  [[nodiscard]] const float* sines(uint32_t row) const { return cosines(row) + rope_->rotated_dim; }

 private:
  RopeHandle handle_;
  const RopeTable* rope_ = nullptr;
  std::vector<float> angles_;  // [row][cosine | sine][rotated_dim]
};

// A batch with its spans turned into memory of its own, and the rotations of its rows.
class HostBatch final {
 public:
  struct Slice {
    uint32_t first_row, rows, position;
    uint32_t first_block, blocks;  // into block_table
    uint32_t first_window_block;   // the same for the windowed pools, if there are any
  };

  void set(const Batch& batch, std::span<const RopeHandle> ropes, const HostRopes& tables);
  [[nodiscard]] uint32_t rows() const { return static_cast<uint32_t>(tokens_.size()); }
  [[nodiscard]] TokenId token(uint32_t row) const { return tokens_[row]; }
  [[nodiscard]] std::span<const Slice> slices() const { return slices_; }
  // Of a windowed pool, or of any other. Element i is the block of positions [16 i, 16 i + 16);
  // those before what a windowed layer sees mean nothing.
  [[nodiscard]] const uint32_t* blocks(const Slice& slice, bool windowed) const {
    return block_table_.data() + (windowed ? slice.first_window_block : slice.first_block);
  }
  [[nodiscard]] uint32_t position(uint32_t row) const { return positions_[row]; }
  // The block and the place in it where the row's KV goes.
  [[nodiscard]] uint32_t block(uint32_t row, bool windowed) const {
    return (windowed ? row_window_blocks_ : row_blocks_)[row];
  }
  // One of those that the batch was set with.
  [[nodiscard]] const HostRotations& rotations(RopeHandle rope) const;

 private:
  void add_window_blocks(const BatchSlice& slice);

  std::vector<TokenId> tokens_;
  std::vector<Slice> slices_;
  std::vector<uint32_t> block_table_;
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> row_blocks_;
  std::vector<uint32_t> row_window_blocks_;  // empty where slices name no windowed blocks
  std::vector<HostRotations> rotations_;
};

}  // namespace troupe
