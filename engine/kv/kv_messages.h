#pragma once
// What the scheduler (decode actor) and the KV-cache manager say to each other. Plain values.
//
// Order: messages of one direction arrive in the order they were sent. A reply may come late (a
// reserve that waits for another sequence's prefix), so replies name their sequence.
// Repeats: a message that comes twice in a row, or names a sequence that the receiver does not know
// (any more), is harmless. Sequence ids are never reused.
// Safety: a block leaves a sequence only by KvTrim, KvRelease or a second KvReserve, and the
// scheduler sends those only while no step in flight touches that sequence. The device executes
// steps in order, so whoever gets the block next writes it after its last reader is done.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "engine/step.h"

namespace troupe {

// For KvReserve::reuse_tokens_max: the whole cached prefix may be reused.
inline constexpr uint32_t kReuseAll = std::numeric_limits<uint32_t>::max();

// --- scheduler -> KV-cache manager ------------------------------------------------------------

// Asks for blocks that hold tokens [0, cover_tokens). The longest cached prefix is reused; a prefix
// that another sequence is computing now is waited for. Answer: one KvReserved or KvRefused.
// For a sequence that still holds blocks (it was trimmed) this replaces what it holds, at once: the
// blocks it shares with the tree stay its own, and the tail that KvTrim gave back is found again as
// far as nobody needed it.
struct KvReserve {
  SequenceId sequence;
  uint32_t attempt =
      1;  // 1, 2, … for each reserve of the sequence; one not above the last is ignored
  std::shared_ptr<const std::vector<TokenId>>
      tokens;                 // all known tokens: prompt (and output so far)
  std::string cache_salt;     // prefixes are shared within one salt only
  uint32_t cover_tokens = 0;  // ≥ 1
  // At most this many cached tokens are reused. 0 turns reuse off (every prompt token is scored).
  uint32_t reuse_tokens_max = kReuseAll;
  // Refuse unless this many blocks stay available (free or evictable) afterwards: room for those
  // who already run, so that admitting one does not mean preempting another.
  uint32_t spare_blocks = 0;

  // Where windowed layers have blocks of their own (else 0): the most of them that the sequence
  // holds at once until its cover_tokens are computed, and afterwards. They are promised: the
  // sequence never has to ask for one, nor is it refused any. A trimmed sequence has none.
  uint32_t window_blocks = 0;
  uint32_t window_blocks_later = 0;
  // When fewer tokens than this are cached, KV of the others, up to `import_tokens`, comes from
  // elsewhere: then the windowed blocks given are those that are still seen behind it.
  uint32_t import_below = 0;
  uint32_t import_tokens = 0;
};

// Each sequence named shall have at least `blocks` blocks in total. Served in the order of the
// list, each one wholly or not at all. Answer: one KvExtended for the whole message.
struct KvExtend {
  struct Item {
    SequenceId sequence;
    uint32_t blocks = 0;
  };
  uint64_t number = 0;  // 1, 2, … for each; the answer carries it
  std::vector<Item> items;
};

// KV of [0, computed) now stands in the sequence's blocks. Blocks that became full enter the radix
// tree and wake those who wait for them. The tree holds each content once, and a block table never
// changes under a running sequence. So when the tree has an equal block already, that one is
// replaced if nobody uses it; if it is in use or being computed, this sequence's block and its
// later ones stay private and go back to the free list at its end. The first commit also ends the
// protection of the block that a KvReserved::copy reads from, so it is sent after the first step of
// such a sequence even if no block became full. Windowed blocks that no row after `computed` sees
// are given up. Answer: none, or KvWindow.
struct KvCommit {
  struct Item {
    SequenceId sequence;
    uint32_t computed = 0;        // tokens in all
    uint32_t first_position = 0;  // of tokens[0]; ≤ what the manager knows so far
    std::vector<TokenId> tokens;  // those the manager has not seen: sampled since the reserve
  };
  std::vector<Item> items;
};

// Preemption: the sequence gives back its tail blocks and keeps the first `keep_blocks`. Full
// computed blocks stay in the tree as cached (first to be evicted: the tail), the others become
// free. The sequence comes back with a KvReserve. No answer.
// All its windowed blocks go, and with them the promise of more.
struct KvTrim {
  SequenceId sequence;
  uint32_t keep_blocks = 0;
};

// The sequence ends: committed blocks stay as cache, the others become free; a reserve that still
// waits is dropped unanswered. No answer.
struct KvRelease {
  SequenceId sequence;
};

// The sequence's blocks from `first_block` on are about to be written by a transfer. Between this
// and KvEndLease nothing else is said of the sequence: it keeps its blocks, and they are neither
// computed nor freed. No answer.
struct KvLease {
  SequenceId sequence;
  uint32_t first_block = 0;
};

// The transfer writes no more. What arrived is reported by a KvCommit that follows. No answer.
struct KvEndLease {
  SequenceId sequence;
};

// One handler turn of the scheduler makes one list; it is processed in order.
using KvRequest =
    std::variant<KvReserve, KvExtend, KvCommit, KvTrim, KvRelease, KvLease, KvEndLease>;

// --- KV-cache manager -> scheduler ------------------------------------------------------------

struct KvReserved {
  SequenceId sequence;
  uint32_t attempt = 1;  // of the KvReserve it answers
  // KV of [0, cached_tokens) need not be computed; always < cover_tokens, so that at least one
  // token is computed and has logits.
  uint32_t cached_tokens = 0;
  std::vector<BlockIndex> blocks;  // all of the sequence's, ⌈cover_tokens / 16⌉
  // To be done before the sequence's first step: the last, partial part of cached_tokens. `from`
  // stays untouched until the first KvCommit (or KvTrim, KvRelease) of this sequence.
  std::optional<StepPlan::BlockCopy> copy;
  // Its windowed blocks: those of blocks number window_first, …
  uint32_t window_first = 0;
  std::vector<BlockIndex> window_blocks;
};

// Not enough blocks now; the sequence holds what it held before. Ask again after giving blocks
// back.
struct KvRefused {
  SequenceId sequence;
  uint32_t attempt = 1;           // of the KvReserve it answers
  uint32_t blocks_needed = 0;     // beyond those reused, spare_blocks included
  uint32_t blocks_available = 0;  // free or evictable
  // Of the windowed ones: to be promised, and not promised yet.
  uint32_t window_needed = 0;
  uint32_t window_available = 0;
};

struct KvExtended {
  struct Grant {
    SequenceId sequence;
    uint32_t first_index = 0;        // blocks[0] is the sequence's block number first_index
    std::vector<BlockIndex> blocks;  // empty: it had enough already
  };
  struct Refusal {
    SequenceId sequence;
    uint32_t blocks_missing = 0;  // ≥ 1
  };
  uint64_t number = 0;  // of the KvExtend it answers
  std::vector<Grant> grants;
  std::vector<Refusal> refusals;
};

// More windowed blocks, in place of those that a KvCommit gave up or for blocks that a KvExtend
// brought. Comes unasked, as soon as there is something to give.
struct KvWindow {
  SequenceId sequence;
  uint32_t first_index = 0;        // blocks[0] is that of the sequence's block number first_index
  std::vector<BlockIndex> blocks;  // never empty
};

using KvReply = std::variant<KvReserved, KvRefused, KvExtended, KvWindow>;

// Blocks of one kind. total = free + computing + leased + held + cached.
struct KvBlockCounts {
  uint32_t total = 0;
  uint32_t free = 0;
  uint32_t computing = 0;
  uint32_t leased = 0;
  uint32_t held = 0;
  uint32_t cached = 0;
  bool operator==(const KvBlockCounts&) const = default;
};

// A snapshot for metrics. total = free + computing + leased + held + cached. The others only grow.
struct KvStats {
  uint32_t blocks_total = 0;
  uint32_t blocks_free = 0;
  uint32_t blocks_computing = 0;     // being filled by one sequence
  uint32_t blocks_leased = 0;        // being filled by a transfer
  uint32_t blocks_held = 0;          // full, used by at least one sequence
  uint32_t blocks_cached = 0;        // full, in the tree, used by nobody: evictable
  uint32_t sequences = 0;            // with blocks or waiting for some
  uint32_t reserves_deferred = 0;    // waiting for another sequence's prefix now
  uint64_t prefix_query_tokens = 0;  // prompt tokens looked up by granted first reserves
  uint64_t prefix_hit_tokens = 0;    // of those, found
  uint64_t evictions = 0;            // blocks
  KvBlockCounts window;              // where windowed layers have blocks of their own
  uint32_t window_promised = 0;      // of these: what sequences hold or may come to hold
  uint64_t window_evictions = 0;
  bool operator==(const KvStats&) const = default;
};

}  // namespace troupe
