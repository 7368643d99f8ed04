#include "tests/property/kv/serving_world.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "engine/kv/window.h"

namespace troupe {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15U + b;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Three values for everything: nearly all lookups meet a foreign content of the same identity.
class CollidingHasher final : public BlockHasher {
 public:
  BlockIdentity root(std::string_view salt) const override { return {.low = salt.size()}; }
  BlockIdentity next(const BlockIdentity& parent, std::span<const TokenId> tokens) const override {
    return {.low = (parent.low + static_cast<uint64_t>(tokens[0])) % 3, .high = 7};
  }
};

std::unique_ptr<BlockHasher> make_hasher(bool colliding) {
  if (colliding) return std::make_unique<CollidingHasher>();
  return std::make_unique<Xxh3BlockHasher>(42);
}

SchedulerOptions filled(const WorldOptions& options) {
  SchedulerOptions scheduler = options.scheduler;
  scheduler.blocks_total = options.blocks;
  scheduler.window = options.window;
  scheduler.window_blocks_total = options.window_blocks;
  scheduler.context_tokens = options.context_tokens;
  scheduler.end_tokens = {fake_model::kEnd};
  return scheduler;
}

}  // namespace

uint64_t TestRng::next() {
  state_ += 0x9e3779b97f4a7c15U;
  return mix(state_, 1);
}

namespace fake_model {

uint64_t kv(uint64_t sum_before, TokenId token, uint32_t position) {
  return mix(mix(sum_before, static_cast<uint64_t>(token)), position);
}

uint64_t weigh(uint64_t kv, uint32_t position) {
  return mix(kv, position + 1);
}

uint64_t windowed(uint64_t kv) {
  return mix(kv, 3);
}

TokenId next_token(uint64_t kv, const SamplingParams& params, uint32_t outputs) {
  const uint64_t value = mix(kv, params.seed);
  // Some sequences repeat themselves, until they are surprised: their guesses are mostly right.
  if (params.seed == kRepetitiveSeed && value % 8 != 0) {
    return static_cast<TokenId>(2 + (outputs + params.max_tokens) % 3);
  }
  const auto token = static_cast<TokenId>(value % kVocabulary);
  // The sampler never proposes the end before min_tokens.
  if (token == kEnd && outputs < params.min_tokens) return 1;
  return token;
}

SampledToken score(uint64_t kv, TokenId token) {
  return {.token = token, .logprob = -static_cast<float>(kv % 4096), .top = {}};
}

double row(uint64_t kv) {
  return 1.0 / (1.0 + static_cast<double>(kv % 99991));
}

Generation reference(const std::vector<TokenId>& prompt, const SamplingParams& params,
                     uint32_t context, uint32_t window) {
  Generation result;
  std::vector<TokenId> tokens = prompt;
  std::vector<uint64_t> values;
  uint64_t sum = 0;
  double rows = 0.0;
  for (uint32_t i = 0;; ++i) {
    const uint64_t value = kv(sum, tokens[i], i);
    rows += row(value);
    sum += weigh(value, i);
    if (window > 0) {
      values.push_back(value);
      sum += weigh(windowed(value), i);
      if (i + 1 >= window) sum -= weigh(windowed(values[i + 1 - window]), i + 1 - window);
    }
    if (params.prompt_logprobs >= 0 && i + 1 < prompt.size() && i + 1 >= params.score_from)
      result.prompt_scores.push_back(score(value, tokens[i + 1]));
    if (i + 1 < tokens.size()) continue;
    if (params.pooling == Pooling::kLast) result.embedding = {static_cast<float>(row(value))};
    if (params.pooling == Pooling::kMean)
      result.embedding = {static_cast<float>(rows / static_cast<double>(prompt.size()))};
    if (params.max_tokens == 0) {
      result.reason = FinishReason::kLength;
      return result;
    }
    const auto outputs = static_cast<uint32_t>(result.tokens.size());
    const TokenId token = next_token(value, params, outputs);
    tokens.push_back(token);
    result.tokens.push_back(token);
    const bool is_named =
        std::count(params.stop_token_ids.begin(), params.stop_token_ids.end(), token) > 0;
    if (outputs + 1 > params.min_tokens && ((token == kEnd && !params.ignore_eos) || is_named)) {
      result.stop_token = token;
      return result;
    }
    if (result.tokens.size() == params.max_tokens || tokens.size() == context) {
      result.reason = FinishReason::kLength;
      return result;
    }
  }
}

}  // namespace fake_model

StepResult FakeDevice::execute(const StepPlan& plan) {
  for (const StepPlan::BlockCopy& each : plan.copies) copy(each);
  StepResult result{.number = plan.number, .slices = {}, .started = {}, .finished = {}};
  BOOST_TEST_REQUIRE(!plan.slices.empty());
  size_t tokens = 0;
  for (const StepSlice& slice : plan.slices) {
    check_access(slice);
    tokens += slice.tokens.size();
    result.slices.push_back(execute(slice));
  }
  BOOST_TEST_REQUIRE(tokens <= step_tokens_max_);
  tokens_computed_ += tokens;
  return result;
}

void FakeDevice::copy(const StepPlan::BlockCopy& copy) {
  const auto copy_one = [](const BlockPool& pool, Memory& memory, BlockIndex from, BlockIndex to) {
    BOOST_TEST_REQUIRE(to_string(pool.state(from)) == "held");
    BOOST_TEST_REQUIRE(to_string(pool.state(to)) == "computing");
    memory[to.value] = memory[from.value];
  };
  copy_one(pool_, memory_, copy.from, copy.to);
  if (window_pool_ != nullptr)
    copy_one(*window_pool_, window_memory_, copy.window_from, copy.window_to);
  ++copies_;
}

void FakeDevice::check_block(const BlockPool& pool, BlockIndex block, const StepSlice& slice,
                             bool is_written) {
  const BlockState state = pool.state(block);
  if (state == BlockState::kComputing) {
    BOOST_TEST_REQUIRE(pool.owner(block).value == slice.sequence.value);
  } else {
    BOOST_TEST_REQUIRE(to_string(state) == "held");
    BOOST_TEST_REQUIRE(!is_written);
  }
}

void FakeDevice::check_access(const StepSlice& slice) const {
  const size_t end = slice.position + slice.tokens.size();
  BOOST_TEST_REQUIRE(!slice.tokens.empty());
  BOOST_TEST_REQUIRE(slice.blocks.size() == (end + kBlockTokens - 1) / kBlockTokens);
  for (size_t i = 0; i < slice.blocks.size(); ++i) {
    const bool is_written = (i + 1) * kBlockTokens > slice.position;
    check_block(pool_, slice.blocks[i], slice, is_written);
    if (window_pool_ == nullptr || i < slice.window_first) continue;
    BOOST_TEST_REQUIRE(i - slice.window_first < slice.window_blocks.size());
    check_block(*window_pool_, slice.window_blocks[i - slice.window_first], slice, is_written);
  }
  BOOST_TEST_REQUIRE(slice.window_blocks.empty() == (window_pool_ == nullptr));
  if (window_pool_ != nullptr)
    BOOST_TEST_REQUIRE(slice.window_first <= first_seen_block(slice.position, window_));
}

SliceResult FakeDevice::execute(const StepSlice& slice) {
  const auto place = [this, &slice](uint32_t position) -> uint64_t& {
    return memory_[slice.blocks[position / kBlockTokens].value][position % kBlockTokens];
  };
  const auto window_place = [this, &slice](uint32_t position) -> uint64_t& {
    const BlockIndex block = slice.window_blocks[position / kBlockTokens - slice.window_first];
    return window_memory_[block.value][position % kBlockTokens];
  };
  const auto weigh_window = [&](uint32_t position) {
    return fake_model::weigh(window_place(position), position);
  };
  SliceResult result{.sequence = slice.sequence, .sampled = {}, .prompt_scores = {}, .pooled = {}};
  if (slice.pooling) result.pooled = slice.pooling->sums;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < slice.position; ++i) sum += fake_model::weigh(place(i), i);
  if (window_ > 0) {
    const uint32_t first = slice.position >= window_ ? slice.position - window_ + 1 : 0;
    for (uint32_t i = first; i < slice.position; ++i) sum += weigh_window(i);
    if (slice.window_first > 0) ++passed_windows_;
  }
  uint64_t value = 0;
  for (uint32_t k = 0; k < slice.tokens.size(); ++k) {
    const uint32_t position = slice.position + k;
    value = fake_model::kv(sum, slice.tokens[k], position);
    place(position) = value;
    sum += fake_model::weigh(value, position);
    if (window_ > 0) {
      window_place(position) = fake_model::windowed(value);
      sum += weigh_window(position);
      if (position + 1 >= window_) sum -= weigh_window(position + 1 - window_);
    }
    if (slice.pooling && k >= slice.pooling->first) {
      result.pooled.resize(1);
      result.pooled[0] += fake_model::row(value);
    }
    if (samples_after(slice, k, result.sampled)) {
      const auto right = static_cast<uint32_t>(result.sampled.size());
      result.sampled.push_back(
          {.token = fake_model::next_token(value, *slice.params, slice.output_tokens + right)});
    }
    if (!slice.score_prompt || k < slice.score_first) continue;
    const TokenId next = k + 1 < slice.tokens.size() ? slice.tokens[k + 1] : slice.next_token;
    if (next >= 0) result.prompt_scores.push_back(fake_model::score(value, next));
  }
  if (slice.sample) {
    const size_t end = slice.position + slice.tokens.size() - slice.guesses;
    BOOST_TEST_REQUIRE(end == slice.prompt_tokens + slice.output_tokens);
    if (!slice.history.empty()) BOOST_TEST_REQUIRE(slice.history.size() == end);
  }
  return result;
}

ServingWorld::ServingWorld(WorldOptions options, uint64_t seed)
    : options_(std::move(options)),
      rng_(seed),
      hasher_(make_hasher(options_.colliding_hashes)),
      manager_({.blocks = options_.blocks,
                .copy_tokens_min = options_.copy_tokens_min,
                .window = options_.window,
                .window_blocks = options_.window_blocks},
               *hasher_),
      scheduler_(filled(options_)),
      device_(manager_.pool(), manager_.window_pool(), options_.window,
              options_.scheduler.step_tokens_max) {}

Status ServingWorld::add(std::vector<TokenId> prompt, SamplingParams params, std::string salt,
                         std::optional<TimePoint> deadline) {
  SequenceSpec spec;
  spec.id = SequenceId{next_id_++};
  spec.request = RequestId{spec.id.value * 10};
  spec.prompt = std::make_shared<const std::vector<TokenId>>(std::move(prompt));
  spec.params = std::make_shared<const SamplingParams>(std::move(params));
  spec.cache_salt = std::move(salt);
  spec.arrival = now_;
  spec.deadline = deadline;
  Status status = scheduler_.add(spec);
  if (status.ok()) {
    Client client;
    client.spec = std::move(spec);
    clients_.emplace(client.spec.id, std::move(client));
  }
  act();
  return status;
}

void ServingWorld::cancel(SequenceId id) {
  scheduler_.cancel(id);
  const auto found = clients_.find(id);
  if (found != clients_.end() && !found->second.over()) found->second.cancelled = true;
  act();
}

void ServingWorld::act() {
  Actions actions = scheduler_.take_actions();
  if (!actions.kv.empty()) to_manager_.push_back(std::move(actions.kv));
  if (actions.step) {
    uint32_t tokens = 0;
    for (const StepSlice& slice : actions.step->slices)
      tokens += static_cast<uint32_t>(slice.tokens.size());
    step_sizes_.push_back(tokens);
    to_device_.push_back(std::move(*actions.step));
    BOOST_TEST_REQUIRE(to_device_.size() + from_device_.size() == 1U);
  }
  for (Emission& emission : actions.emissions) {
    Client& client = clients_.at(emission.sequence);
    BOOST_TEST_REQUIRE(!client.over());
    BOOST_TEST_REQUIRE(emission.request.value == client.spec.request.value);
    if (!emission.prompt_scores.empty()) BOOST_TEST_REQUIRE(client.tokens.empty());
    for (SampledToken& score : emission.prompt_scores)
      client.prompt_scores.push_back(std::move(score));
    for (const SampledToken& token : emission.tokens) client.tokens.push_back(token.token);
    if (!emission.embedding.empty()) client.embedding = emission.embedding;
    client.end = emission.end;
    client.failed = emission.failed;
    BOOST_TEST_REQUIRE(!(client.end && !client.failed.ok()));
  }
  check_invariants();
}

void ServingWorld::check_invariants() const {
  scheduler_.check_invariants();
  manager_.check_invariants();
}

bool ServingWorld::deliver_one() {
  const bool ready[] = {!to_manager_.empty(), !from_manager_.empty(), !to_device_.empty(),
                        !from_device_.empty()};
  const auto count = static_cast<uint32_t>(std::count(ready, ready + 4, true));
  if (count == 0) return false;
  uint32_t pick = rng_.below(count);
  int mailbox = 0;
  while (!ready[mailbox] || pick-- > 0) ++mailbox;
  if (mailbox == 0) {
    std::vector<KvReply> replies;
    manager_.on_requests(to_manager_.front(), replies);
    to_manager_.pop_front();
    if (!replies.empty()) from_manager_.push_back(std::move(replies));
    check_invariants();
  } else if (mailbox == 1) {
    for (const KvReply& reply : from_manager_.front()) scheduler_.on_kv_reply(reply);
    from_manager_.pop_front();
    act();
  } else if (mailbox == 2) {
    from_device_.push_back(device_.execute(to_device_.front()));
    to_device_.pop_front();
  } else {
    scheduler_.on_step_result(std::move(from_device_.front()));
    from_device_.pop_front();
    act();
  }
  return true;
}

void ServingWorld::run() {
  // Far above what any of the tests needs: whoever gets there preempts in a circle.
  constexpr uint64_t kDeliveriesMax = 1'000'000;
  uint64_t deliveries = 0;
  while (deliver_one()) BOOST_TEST_REQUIRE(++deliveries < kDeliveriesMax);
  check_end();
}

void ServingWorld::check_end() {
  BOOST_TEST_REQUIRE(scheduler_.idle());
  const KvStats stats = manager_.stats();
  BOOST_TEST_REQUIRE(stats.sequences == 0U);
  BOOST_TEST_REQUIRE(stats.reserves_deferred == 0U);
  BOOST_TEST_REQUIRE(stats.blocks_computing + stats.blocks_held == 0U);
  BOOST_TEST_REQUIRE(stats.blocks_free + stats.blocks_cached == stats.blocks_total);
  BOOST_TEST_REQUIRE(stats.window_promised == 0U);
  BOOST_TEST_REQUIRE(stats.window.free + stats.window.cached == stats.window.total);
  BOOST_TEST_REQUIRE(stats.prefix_hit_tokens <= stats.prefix_query_tokens);
  for (const auto& [id, client] : clients_) {
    BOOST_TEST_REQUIRE(client.over());
    if (!client.failed.ok()) continue;
    const auto expected = fake_model::reference(*client.spec.prompt, *client.spec.params,
                                                options_.context_tokens, options_.window);
    if (client.cancelled) {
      BOOST_TEST_REQUIRE(client.tokens.size() <= expected.tokens.size());
      BOOST_TEST_REQUIRE(
          std::equal(client.tokens.begin(), client.tokens.end(), expected.tokens.begin()));
      continue;
    }
    BOOST_TEST_REQUIRE(client.tokens == expected.tokens, boost::test_tools::per_element());
    BOOST_TEST_REQUIRE((client.prompt_scores == expected.prompt_scores));
    BOOST_TEST_REQUIRE((client.embedding == expected.embedding));
    BOOST_TEST_REQUIRE((client.end->reason == expected.reason));
    BOOST_TEST_REQUIRE(client.end->stop_token == expected.stop_token);
    BOOST_TEST_REQUIRE(client.end->prompt_tokens == client.spec.prompt->size());
    BOOST_TEST_REQUIRE(client.end->cached_tokens < client.spec.prompt->size());
  }
}

}  // namespace troupe
