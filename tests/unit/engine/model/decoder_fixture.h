#pragma once
// A model loaded into a backend, and a small driver that generates with it in chunks and batches of
// any size: a scheduler without policy, for tests.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/reference/reference_backend.h"
#include "engine/kv/window.h"
#include "engine/model/decoder_model.h"
#include "engine/model/executor.h"
#include "engine/model/gguf_file.h"
#include "engine/model/model_config.h"

namespace troupe::test {

// The models that ./test fetches.
inline constexpr char kSmolLm2[] = TROUPE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr char kGemma3[] = TROUPE_SOURCE_DIR "/models/gemma-3-270m-Q4_K_M.gguf";

template <class T>
T must(Result<T> result) {
  BOOST_REQUIRE_MESSAGE(result.ok(), result.status().message());
  return std::move(result).value();
}

class LoadedModel {
 public:
  LoadedModel(const GgufFile& file, std::unique_ptr<Backend> backend_in,
              const ExecutorLimits& limits)
      : backend(std::move(backend_in)),
        description(must(read_model(file))),
        model(must(DecoderModel::load(file, description, *backend))),
        executor(must(Executor::make(*backend, *model, {}, clock, limits))) {}

  std::unique_ptr<Backend> backend;
  ModelDescription description;
  std::unique_ptr<DecoderModel> model;
  ManualClock clock;
  std::unique_ptr<Executor> executor;
};

inline std::unique_ptr<Backend> cpu_backend(uint32_t threads, CpuIsa isa) {
  return std::make_unique<CpuBackend>(CpuBackendOptions{.threads = threads, .isa = isa});
}

using Tokens = std::vector<TokenId>;
using Generated = std::vector<std::vector<SampledToken>>;  // per prompt

struct GenerateOptions {
  uint32_t output_tokens = 8;
  uint32_t chunk = 1024;     // tokens of a prompt per step, at most
  uint32_t together = 64;    // sequences per step, at most
  uint32_t blocks_each = 8;  // of KV per sequence
  float temperature = 0.0F;
  bool score_prompt = false;
  int32_t prompt_alternatives = 2;
};

// Gives each of `count` sequences an equal share of the windowed blocks, of which each serves again
// and again, as soon as nobody sees what it held.
inline void name_window_blocks(const Executor& executor, uint32_t sequence, uint32_t count,
                               StepSlice& slice) {
  const uint32_t share = executor.limits().kv_window_blocks / count;
  slice.window_first = first_seen_block(slice.position, executor.config().window);
  BOOST_TEST_REQUIRE(slice.position + slice.tokens.size() <=
                     size_t{slice.window_first + share} * kBlockTokens);
  for (size_t b = slice.window_first; b < slice.blocks.size(); ++b)
    slice.window_blocks.emplace_back(b % share * count + sequence);
}

// Generates for all prompts. Sequences take part in turn, `together` at a time, so prompts' chunks
// and single tokens of others share steps. Scores of the prompt, if any, precede the output.
inline Generated generate(Executor& executor, const std::vector<Tokens>& prompts,
                          const GenerateOptions& options) {
  struct Sequence {
    Tokens tokens;
    uint32_t done = 0;
    std::vector<BlockIndex> blocks;
    std::shared_ptr<SamplingParams> params;
  };
  const auto count = static_cast<uint32_t>(prompts.size());
  std::vector<Sequence> sequences(count);
  for (uint32_t i = 0; i < count; ++i) {
    sequences[i].tokens = prompts[i];
    for (uint32_t b = 0; b < options.blocks_each; ++b)  // interleaved: no sequence is contiguous
      sequences[i].blocks.emplace_back(b * count + (i + b) % count);
    sequences[i].params = std::make_shared<SamplingParams>();
    sequences[i].params->temperature = options.temperature;
    sequences[i].params->logprobs = 3;
    sequences[i].params->seed = 17 + i;
    if (options.score_prompt) sequences[i].params->prompt_logprobs = options.prompt_alternatives;
  }
  Generated generated(count);
  const auto finished = [&](uint32_t i) {
    return sequences[i].tokens.size() >= prompts[i].size() + options.output_tokens;
  };
  uint32_t next = 0;
  for (uint64_t step = 0;; ++step) {
    StepPlan plan;
    plan.number = step;
    std::vector<uint32_t> owners;
    uint32_t room = executor.limits().step_tokens_max;
    for (uint32_t k = 0; k < count && owners.size() < options.together && room > 0; ++k) {
      const uint32_t i = (next + k) % count;
      if (finished(i)) continue;
      Sequence& sequence = sequences[i];
      const auto left = static_cast<uint32_t>(sequence.tokens.size()) - sequence.done;
      const uint32_t take = std::min({left, options.chunk, room});
      StepSlice slice;
      slice.sequence = SequenceId(i);
      slice.tokens.assign(sequence.tokens.begin() + sequence.done,
                          sequence.tokens.begin() + sequence.done + take);
      slice.position = sequence.done;
      slice.blocks = sequence.blocks;
      if (executor.limits().kv_window_blocks > 0) name_window_blocks(executor, i, count, slice);
      slice.sample = take == left;
      slice.params = sequence.params;
      slice.prompt_tokens = static_cast<uint32_t>(prompts[i].size());
      slice.score_prompt = options.score_prompt && sequence.done < prompts[i].size();
      if (slice.score_prompt && take < left)
        slice.next_token = sequence.tokens[sequence.done + take];
      plan.slices.push_back(std::move(slice));
      owners.push_back(i);
      room -= take;
    }
    if (owners.empty()) return generated;
    next = (next + 1) % count;
    const StepResult result = must(executor.execute(plan));
    for (size_t s = 0; s < owners.size(); ++s) {
      Sequence& sequence = sequences[owners[s]];
      BOOST_REQUIRE_MESSAGE(result.slices[s].status.ok(), result.slices[s].status.message());
      sequence.done += static_cast<uint32_t>(plan.slices[s].tokens.size());
      for (const SampledToken& score : result.slices[s].prompt_scores)
        generated[owners[s]].push_back(score);
      for (const SampledToken& sampled : result.slices[s].sampled) {
        sequence.tokens.push_back(sampled.token);
        generated[owners[s]].push_back(sampled);
      }
    }
  }
}

// Equal token ids, log-probabilities and alternatives, to the bit.
inline void check_same(const Generated& a, const Generated& b, const std::string& what) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    BOOST_CHECK_MESSAGE(a[i] == b[i], what << ": sequence " << i << " differs");
}

}  // namespace troupe::test
