#pragma once
// A device as the model sees it: memory, one stream, and the operations of a transformer layer.
//
// The interface is that of a device with a memory and a queue of its own. Every operation, copy and
// event below is *enqueued* on the backend's one stream and executes there in the order of the
// calls; a call may return before its work has run (a CUDA stream) or after (the cpu backend).
// Hence: results are read only from host-visible memory, and only once an event recorded after the
// copy that fills it has been waited for.
//
// Threads: one thread at a time calls a Backend (the device actor's), from construction to
// destruction. Backends start threads of their own where they need them.
//
// Errors: calls that allocate return Result. Enqueueing calls return nothing: a wrong argument
// (shape, handle, range) is a bug and ends the process by TROUPE_ASSERT; a failure of the device is
// sticky, skips all later work, and is reported by query() and wait() from then on.
//
// Numbers: activations are fp32, dense and row-major. Which values are rounded where, and in which
// order sums run, is the backend's one definition (docs/adr/0003 for cpu); its results depend
// on neither threads, batch, chunking nor the instruction set.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"
#include "base/strong.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/kv_storage.h"
#include "kernels/ops/rope_pairs.h"
#include "kernels/weight_type.h"
#include "troupe/status.h"

namespace troupe {

// Opaque names of things that a backend holds. Zero is never a valid one.
using BufferHandle = Strong<struct BufferHandleTag, uint32_t>;
using LinearHandle = Strong<struct LinearHandleTag, uint32_t>;
using EmbeddingHandle = Strong<struct EmbeddingHandleTag, uint32_t>;
using VectorHandle = Strong<struct VectorHandleTag, uint32_t>;
using RopeHandle = Strong<struct RopeHandleTag, uint32_t>;
using KvHandle = Strong<struct KvHandleTag, uint32_t>;
// The n-th recorded event; an event that has happened stays happened.
using EventHandle = Strong<struct EventHandleTag, uint64_t>;

enum class MemoryKind {
  kDevice,      // only operations and copies touch it; host_bytes() refuses it
  kHostPinned,  // host memory that the device copies to and from asynchronously
};

// `rows` x `width` floats of a buffer, dense, starting `first_row` rows into it.
struct Rows {
  BufferHandle buffer;
  uint32_t first_row = 0;
  uint32_t rows = 0;
  uint32_t width = 0;
};

// What linear layers read: rows as they stand or, where `norm` is given, what rms_norm() would make
// of them. The rows themselves stay as they are.
struct LinearInput {
  Rows rows;
  VectorHandle norm;
  float epsilon = 0.0F;

  LinearInput(Rows plain) : rows(plain) {}  // NOLINT(google-explicit-constructor)
  LinearInput(Rows plain, VectorHandle weight, float norm_epsilon)
      : rows(plain), norm(weight), epsilon(norm_epsilon) {}
};

// A tensor as it stands in a model file (mapped memory), described for uploading.
struct TensorSource {
  std::string_view name;  // for error messages
  WeightType type = WeightType::kF32;
  uint32_t inputs = 0;   // weights in a row: GGUF's dimension 0
  uint32_t outputs = 0;  // rows: GGUF's dimension 1 (1 for a vector)
  std::span<const std::byte> bytes;
  // Called, from any thread, with parts of `bytes` that are not read again soon: their pages need
  // not stay in memory. Empty: nobody wants to know. Lives as long as the bytes.
  std::function<void(std::span<const std::byte>)> release;
};

struct RopeParameters {
  uint32_t head_dim = 0;     // floats of one head
  uint32_t rotated_dim = 0;  // the first ones of a head turn in pairs; even, <= head_dim
  RopePairs pairs = RopePairs::kAdjacent;
  double base = 10000.0;
  double linear_scale = 1.0;                 // positions are multiplied by it (1: off)
  std::span<const float> frequency_factors;  // per pair: the frequency is divided by it; or empty
};

struct KvShape {
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t blocks = 0;  // of kBlockTokens tokens each
  // Its layers have a window and blocks of their own: a batch's slices name them apart.
  bool windowed = false;
  KvType type =
      KvType::kF16;  // that is wanted; KvLayout has what a backend with one of its own takes
};

// Where KV lies in its buffer: layer l of block b at b * block_stride + l * layer_stride, one
// contiguous piece of block_bytes: the runs of keys of all kv heads, then those of values, each as
// kernels/ops/kv_storage.h says. Whoever has the piece has all there is to it, scales too.
struct KvLayout {
  BufferHandle buffer;
  KvType type = KvType::kF16;
  uint64_t block_stride = 0;
  uint64_t layer_stride = 0;
  uint64_t block_bytes = 0;  // of one layer
  uint64_t key_bytes = 0;    // of a head's run …
  uint64_t value_bytes = 0;

  // Of one token in one layer, padding and scales included.
  [[nodiscard]] double token_bytes() const {
    return static_cast<double>(block_bytes) / kKvBlockTokens;
  }
};

// How one layer attends.
struct AttentionLayer {
  uint32_t index = 0;   // of the layer in the KV pool
  RopeHandle rope;      // one of those that the batch was set with
  uint32_t window = 0;  // a row sees this many tokens, its own the last; 0: all up to its own
  float scale = 0.0F;   // of the products of queries and keys
};

// A run of consecutive tokens of one sequence, standing in rows [first_row, first_row + rows).
struct BatchSlice {
  uint32_t first_row = 0;
  uint32_t rows = 0;
  uint32_t position = 0;               // of its first row in the sequence
  std::span<const BlockIndex> blocks;  // block i holds positions [16 i, 16 i + 16)
  // For pools with KvShape::windowed: from block number window_first on. No row sees anything
  // before it, as far as the layers of such a pool are concerned.
  uint32_t window_first = 0;
  std::span<const BlockIndex> window_blocks = {};
};

// The rows of one forward pass. Slices tile the rows in order, without gaps.
struct Batch {
  std::span<const TokenId> tokens;  // one per row
  std::span<const BatchSlice> slices;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu avx512-vnni, 2 threads": for logs.
  [[nodiscard]] virtual std::string_view description() const = 0;

  // --- Memory. Zero-filled; aligned to 64 bytes. kResourceExhausted names the bytes asked for.
  [[nodiscard]] virtual Result<BufferHandle> allocate(uint64_t bytes, MemoryKind kind) = 0;
  // After the enqueued work; the handle is dead at once.
  virtual void release(BufferHandle buffer) = 0;
  // The memory of a kHostPinned buffer, valid until release().
  [[nodiscard]] virtual std::span<std::byte> host_bytes(BufferHandle buffer) = 0;
  // Either side may be device or pinned memory; the ranges do not overlap. Pinned memory must not
  // be touched by the caller until an event recorded afterwards has happened.
  virtual void copy(BufferHandle to, uint64_t to_offset, BufferHandle from, uint64_t from_offset,
                    uint64_t bytes) = 0;

  // --- Events: points in the stream.
  [[nodiscard]] virtual EventHandle record_event() = 0;
  // True: everything enqueued before it has run. A failed device: its status.
  [[nodiscard]] virtual Result<bool> query(EventHandle event) = 0;
  // Blocks until the event has happened; kDeadlineExceeded when that takes longer than `patience`
  // (the work goes on), or the status of a failed device.
  [[nodiscard]] virtual Status wait(EventHandle event, Duration patience) = 0;

  // --- Work of the host on results, on threads that would idle meanwhile: calls task(index,
  // worker) once for each index in [0, count) and returns when all calls have returned. Two calls
  // at the same time never have the same worker, which is below host_workers() and `workers_max`;
  // which one takes an index is a race. Not in the stream: the caller has waited for what it reads.
  // Tasks do not throw and call nothing of the backend. By itself: one after the other.
  using HostTask = std::function<void(uint32_t index, uint32_t worker)>;
  [[nodiscard]] virtual uint32_t host_workers() const { return 1; }
  virtual void run_on_host(uint32_t count, uint32_t workers_max, const HostTask& task) {
    static_cast<void>(workers_max);
    for (uint32_t i = 0; i < count; ++i) task(i, 0);
  }

  // --- Weights. They live as long as the backend. `source.bytes` are read during the call, except
  // that an embedding table may be read in place: its bytes must outlive the backend's use.
  // kUnsupported names the tensor, its type and shape; kDataLoss: fewer bytes than the shape needs.
  [[nodiscard]] virtual Result<LinearHandle> upload_linear(const TensorSource& source) = 0;
  [[nodiscard]] virtual Result<EmbeddingHandle> upload_embedding(const TensorSource& source) = 0;
  [[nodiscard]] virtual Result<VectorHandle> upload_vector(const TensorSource& source) = 0;
  [[nodiscard]] virtual Result<RopeHandle> make_rope(const RopeParameters& parameters) = 0;
  // Bytes that weights occupy in the backend's own memory so far.
  [[nodiscard]] virtual uint64_t weight_bytes() const = 0;

  // --- KV storage: pools of blocks, each for all its layers.
  [[nodiscard]] virtual Result<KvHandle> allocate_kv(const KvShape& shape) = 0;
  [[nodiscard]] virtual KvLayout kv_layout(KvHandle kv) const = 0;
  // The pool's memory, for transfers by a transport: an address of the device's, not to be
  // dereferenced by the caller. A transfer may touch blocks that no enqueued work touches.
  [[nodiscard]] virtual std::span<std::byte> kv_memory(KvHandle kv) = 0;
  // Copies all layers of a block.
  virtual void copy_block(KvHandle kv, BlockIndex from, BlockIndex to) = 0;

  // Allocates what operations on up to `rows_max` rows need inside the backend. After the uploads,
  // before the first batch; again with a larger number if need be.
  [[nodiscard]] virtual Status prepare(uint32_t rows_max) = 0;

  // --- Operations. `Rows` named `in` are read, `out` written; they may be the same rows only where
  // said. The batch is the one most recently set.

  // Copies the description of the next pass; the spans are free when the call returns. Computes
  // what only depends on positions (the rotations of each of `ropes`, shared by layers).
  virtual void set_batch(const Batch& batch, std::span<const RopeHandle> ropes) = 0;
  // out[r] = the table's row of the batch's token r.
  virtual void embed(EmbeddingHandle table, Rows out) = 0;
  // out[r] = in[r] / sqrt(mean(in[r]^2) + epsilon) * weight. out may be in.
  virtual void rms_norm(Rows in, VectorHandle weight, float epsilon, Rows out) = 0;
  // out[i][r] = weights[i] * in[r]: several linear layers of one input, so that a backend prepares
  // the input once. No `out` is `in`.
  virtual void linear(std::span<const LinearHandle> weights, const LinearInput& in,
                      std::span<const Rows> out) = 0;
  // x[r] += weights * in[r], of which the product is rounded to fp32 first. x is not `in`.
  virtual void linear_add(LinearHandle weights, const LinearInput& in, Rows x) = 0;
  // out[r] = activation(gate * in[r]) * (up * in[r]), both products rounded to fp32 first; the two
  // layers are of one shape. out is not `in`.
  virtual void gated_linear(LinearHandle gate, LinearHandle up, const LinearInput& in,
                            Activation activation, Rows out) = 0;
  // Turns q in place, turns k, and stores k and v as the batch's tokens of the layer.
  virtual void rope_and_store(Rows q, Rows k, Rows v, KvHandle kv, const AttentionLayer& layer) = 0;
  // out[r] = softmax(scale q[r] K^T) V per head over the positions that the row sees; query heads
  // share kv heads in consecutive groups. Reads what rope_and_store has stored.
  virtual void attention(Rows q, KvHandle kv, const AttentionLayer& layer, Rows out) = 0;
  // x[r] += what rms_norm() would make of y[r]; y is left with unspecified values.
  virtual void add_normed(Rows x, Rows y, VectorHandle weight, float epsilon) = 0;
  // x[r] += vector.
  virtual void add_vector(Rows x, VectorHandle vector) = 0;
  // x[r] *= factor.
  virtual void scale(Rows x, float factor) = 0;
  // out[i] = in[indices[i]]; indices are copied during the call.
  virtual void gather_rows(Rows in, std::span<const uint32_t> indices, Rows out) = 0;
};

}  // namespace troupe
