#include "loadgen/prompts.h"

#include "base/assert.h"
#include "base/philox.h"

namespace troupe::loadgen {
namespace {

// The numbers of one thing of many: a seed of its own.
Random random_of(uint64_t seed, uint64_t index, uint32_t stream) {
  return {philox_u64(seed, index, stream), stream};
}

class RandomPrompts final : public PromptSource {
 public:
  RandomPrompts(const RandomPromptOptions& options, std::vector<std::string> words)
      : options_(options), words_(std::move(words)) {
    TROUPE_ASSERT(options.turns > 0 && options.prefix_groups > 0);
    for (uint32_t group = 0; options.prefix_tokens > 0 && group < options.prefix_groups; ++group) {
      Random random = random_of(options.seed, group, streams::kPrefixes);
      prefixes_.push_back(random_words(words_, options.prefix_tokens, random));
    }
  }

  Conversation make(uint64_t index) const override {
    Random random = random_of(options_.seed, index, streams::kPrompts);
    Conversation out;
    for (uint32_t i = 0; i < options_.turns; ++i) {
      const uint32_t length = options_.prompt_tokens.draw(random);
      Turn& turn = out.turns.emplace_back();
      turn.output_tokens = options_.output_tokens.draw(random);
      turn.prompt_tokens_aimed = length;
      turn.message = {"user", random_words(words_, length, random)};
    }
    if (!prefixes_.empty()) {
      Turn& first = out.turns.front();
      first.message.content = prefixes_[index % prefixes_.size()] + ' ' + first.message.content;
      first.prompt_tokens_aimed += options_.prefix_tokens;
    }
    return out;
  }

  uint64_t size() const override { return 0; }

 private:
  const RandomPromptOptions options_;
  const std::vector<std::string> words_;
  std::vector<std::string> prefixes_;
};

class TracePrompts final : public PromptSource {
 public:
  TracePrompts(const Trace& trace, uint64_t seed, std::vector<std::string> words)
      : trace_(trace), seed_(seed), words_(std::move(words)) {}

  Conversation make(uint64_t index) const override {
    const TraceRequest& from = trace_.requests[index % trace_.requests.size()];
    std::string text;
    for (uint32_t done = 0; done < from.input_tokens; done += trace_.hash_tokens) {
      const size_t block = done / trace_.hash_tokens;
      // What is not named is of this request alone.
      Random random = block < from.hashes.size()
                          ? random_of(seed_, from.hashes[block], streams::kTraceBlocks)
                          : random_of(seed_, index << 20 | block, streams::kTraceTails);
      if (done > 0) text += ' ';
      text += random_words(words_, std::min(trace_.hash_tokens, from.input_tokens - done), random);
    }
    return {{}, {{{"user", std::move(text)}, from.output_tokens, from.input_tokens}}};
  }

  uint64_t size() const override { return trace_.requests.size(); }

 private:
  const Trace& trace_;
  const uint64_t seed_;
  const std::vector<std::string> words_;
};

class GivenPrompts final : public PromptSource {
 public:
  explicit GivenPrompts(std::vector<Conversation> conversations)
      : conversations_(std::move(conversations)) {
    TROUPE_ASSERT(!conversations_.empty());
  }
  Conversation make(uint64_t index) const override {
    return conversations_[index % conversations_.size()];
  }
  uint64_t size() const override { return conversations_.size(); }

 private:
  const std::vector<Conversation> conversations_;
};

}  // namespace

std::unique_ptr<PromptSource> random_prompts(const RandomPromptOptions& options,
                                             std::vector<std::string> words) {
  return std::make_unique<RandomPrompts>(options, std::move(words));
}

std::unique_ptr<PromptSource> trace_prompts(const Trace& trace, uint64_t seed,
                                            std::vector<std::string> words) {
  TROUPE_ASSERT(!trace.requests.empty());
  return std::make_unique<TracePrompts>(trace, seed, std::move(words));
}

std::unique_ptr<PromptSource> given_prompts(std::vector<Conversation> conversations) {
  return std::make_unique<GivenPrompts>(std::move(conversations));
}

}  // namespace troupe::loadgen
