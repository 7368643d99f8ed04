#pragma once
// The contract between the scheduler, which plans a step, and the device, which executes it.
// A step is one forward pass over one batch: each slice is a run of consecutive tokens of one
// sequence, be it a chunk of a prompt or the one token that a decoding sequence feeds back.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/grammar/grammar_matcher.h"
#include "engine/sample/sampling_params.h"
#include "troupe/status.h"
#include "troupe/transport.h"

namespace troupe {

// Rows of a slice that belong to its prompt's vector: those of tokens[first] and after it. They are
// added, in this order and in double precision, to the sums over the rows before them, so that the
// chunks do not show in the result.
struct SlicePooling {
  uint32_t first = 0;
  std::vector<double> sums;  // [width], or empty: no rows come before
};

struct StepSlice {
  SequenceId sequence;
  std::vector<TokenId> tokens;  // to compute now; never empty
  // How many of them, at the end, are guesses at what will be sampled. A token is sampled after the
  // last one before them, and after each guess as long as the guesses turn out right.
  uint32_t guesses = 0;   // below tokens.size(); 0 unless `sample`
  uint32_t position = 0;  // of tokens[0] in the sequence; KV of [0, position) is in `blocks`
  std::vector<BlockIndex> blocks;  // block i holds positions [16 i, 16 i + 16); covers all tokens
  // Where windowed layers have blocks of their own: those of the sequence's blocks number
  // window_first, …, up to the last of `blocks`. No row sees anything before them.
  uint32_t window_first = 0;
  std::vector<BlockIndex> window_blocks;
  // True for the slice that ends the known tokens: a next token is sampled from the logits of the
  // last one.
  bool sample = false;
  // Tokens so far (prompt + output) and how many of them are prompt; set only when the sampler
  // needs them (penalties). The first sampled token stands at index position + tokens.size() −
  // guesses.
  std::vector<TokenId> history;
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;  // sampled so far, for min_tokens
  // Log-probabilities of prompt tokens: score tokens[i + 1] (and `next_token` after the last one,
  // when ≥ 0), i ≥ score_first, from the logits of tokens[i]. Asked for when
  // params->prompt_logprobs ≥ 0.
  bool score_prompt = false;
  uint32_t score_first = 0;  // the first i of these
  TokenId next_token = -1;
  std::optional<SlicePooling> pooling;
  std::shared_ptr<const SamplingParams> params;  // never null when sample or score_prompt
  // Where the sequence's output stands in its grammar, when a token is sampled and it has one. The
  // device moves it on by the token that it samples, and nobody else touches it meanwhile.
  std::shared_ptr<GrammarMatcher> grammar;
};

// Where KV that a step completes goes: a landing of another node, laid out `[layer][block]` with
// `blocks` blocks of `block_bytes` each. Behind it, in the same way, stand the windowed layers that
// have blocks of their own, of which only blocks from window_first on are wanted: later rows see no
// others.
struct KvDestination {
  std::string node;
  BulkTicket ticket;
  uint32_t layers = 0;
  uint32_t blocks = 0;
  uint64_t block_bytes = 0;  // of one layer
  uint32_t window_layers = 0;
  uint32_t window_first = 0;  // ≤ blocks

  [[nodiscard]] uint64_t offset(uint32_t layer, uint32_t block) const {
    return (uint64_t{layer} * blocks + block) * block_bytes;
  }
  [[nodiscard]] uint64_t window_offset(uint32_t layer, uint32_t block) const {
    const uint64_t before = uint64_t{layer} * (blocks - window_first) + (block - window_first);
    return offset(layers, 0) + before * block_bytes;
  }
};

// Blocks that a step completes (or that stood before it), to be sent while it runs: those of a
// layer as soon as the pass has stored that layer.
struct KvExport {
  std::shared_ptr<const KvDestination> to;  // never null
  uint32_t first = 0;                       // place of blocks[0] among the destination's blocks
  std::vector<BlockIndex> blocks;  // never empty; nobody writes them until they have arrived
  // The same of the windowed layers: those among them that are wanted.
  uint32_t window_first = 0;
  std::vector<BlockIndex> window_blocks;
};

struct StepPlan {
  uint64_t number = 0;
  // Whole-block copies to make before the pass: a partially filled cached block reused by copy.
  struct BlockCopy {
    BlockIndex from, to;
    // The same of the windowed layers, where these have blocks of their own.
    BlockIndex window_from = kNoBlock, window_to = kNoBlock;
  };
  std::vector<BlockCopy> copies;
  std::vector<StepSlice> slices;
  std::vector<KvExport> exports;
};

[[nodiscard]] inline uint32_t tokens_of(const StepPlan& plan) {
  size_t tokens = 0;
  for (const StepSlice& slice : plan.slices) tokens += slice.tokens.size();
  return static_cast<uint32_t>(tokens);
}

struct SliceResult {
  SequenceId sequence;
  Status status;  // not ok: no token could be chosen (the logits hold NaN); end the sequence
  // When asked to sample: one token, and one more for each guess that is right, with those before
  // it. The last one may be a right guess or what was sampled instead of a wrong one.
  std::vector<SampledToken> sampled;
  bool grammar_ended = false;  // the last of them ends the answer, whatever the parameters say
  std::vector<SampledToken> prompt_scores;  // one per scored prompt token, in order
  std::vector<double> pooled;               // with pooling: [width], the sums up to the slice's end
};

// Whether, after `sampled`, a token is to be sampled from the logits of slice.tokens[index]: it is
// the last known one, or a guess that has turned out right. Ask in the order of the tokens.
[[nodiscard]] inline bool samples_after(const StepSlice& slice, size_t index,
                                        const std::vector<SampledToken>& sampled) {
  const size_t first = slice.tokens.size() - 1 - slice.guesses;
  if (!slice.sample || index < first || sampled.size() != index - first) return false;
  return index == first || sampled.back().token == slice.tokens[index];
}

struct StepResult {
  uint64_t number = 0;
  std::vector<SliceResult> slices;  // same order as the plan's
  TimePoint started{}, finished{};  // at the device
};

}  // namespace troupe
