// A decode and a prefill worker with their real KV-cache managers, exchanging KV over the loopback
// transport. Devices are pretended, but store KV that depends on the whole prefix in memory of
// their own, and the tokens they choose depend on all KV that they read: KV that is lost, stale or
// misplaced changes the output.

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <deque>
#include <variant>

#include "actors/decode/decode_core.h"
#include "actors/decode/kv_landings.h"
#include "actors/kv_cache_manager/kv_cache_manager_core.h"
#include "actors/prefill/prefill_core.h"
#include "actors/worker/kv_exporter.h"
#include "base/limits.h"
#include "base/philox.h"
#include "engine/kv/block_hash.h"
#include "tests/unit/actors/fake_outbox.h"
#include "transport/loopback/loopback_transport.h"

namespace troupe {
namespace {

constexpr uint32_t kLayers = 3;
constexpr uint64_t kBlockBytes = kBlockTokens * sizeof(uint64_t);

uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
  return philox_u64(a, b, static_cast<uint32_t>(c));
}

// With a window the first two layers have one, and blocks of their own.
constexpr uint32_t kWindowBlocks = 24;

bool is_windowed(uint32_t layer, uint32_t window) {
  return window > 0 && layer < 2;
}

// Memory and what a step does with it.
class PretendedDevice {
 public:
  PretendedDevice(uint32_t blocks, uint32_t window) : window_(window) {
    kv.all = make(bytes_, window > 0 ? 1 : kLayers, blocks);
    if (window == 0) return;
    kv.windowed = make(window_bytes_, 2, kWindowBlocks);
    kv.window = window;
    for (uint32_t l = 0; l < kLayers; ++l) kv.is_windowed.push_back(is_windowed(l, window));
  }

  StepResult execute(const StepPlan& plan, LayerListener* listener, TimePoint now) {
    StepResult result{plan.number, {}, now, now + std::chrono::milliseconds(5)};
    for (const auto& copy : plan.copies) {
      for (uint32_t l = 0; l < kLayers; ++l)
        std::memcpy(at(l, copy.to, copy.window_to), at(l, copy.from, copy.window_from),
                    kBlockBytes);
    }
    for (const StepSlice& slice : plan.slices) {
      result.slices.emplace_back().sequence = slice.sequence;
      tokens_computed += slice.tokens.size();
    }
    for (uint32_t l = 0; l < kLayers; ++l) {
      for (const StepSlice& slice : plan.slices) store(slice, l);
      if (!plan.exports.empty()) listener->on_layer_stored(plan, l);
    }
    for (size_t i = 0; i < plan.slices.size(); ++i) {
      const StepSlice& slice = plan.slices[i];
      if (!slice.sample) continue;
      uint64_t all = 0;
      for (uint32_t l = 0; l < kLayers; ++l)
        all = mix(all, sum(slice, l, slice.position + slice.tokens.size()), l);
      result.slices[i].sampled = {{.token = static_cast<TokenId>(100 + all % 1000)}};
    }
    return result;
  }

  WorkerKv kv;
  size_t tokens_computed = 0;

 private:
  static KvMemory make(std::vector<std::byte>& bytes, uint32_t layers, uint32_t blocks) {
    bytes.resize(size_t{layers} * blocks * kBlockBytes);
    return {.memory = bytes,
            .layers = layers,
            .blocks = blocks,
            .block_stride = kBlockBytes,
            .layer_stride = blocks * kBlockBytes,
            .block_bytes = kBlockBytes};
  }
  std::byte* at(uint32_t layer, BlockIndex block, BlockIndex window_block) {
    return kv.in_windowed(layer) ? kv.windowed.at(kv.place(layer), window_block).data()
                                 : kv.all.at(kv.place(layer), block).data();
  }
  uint64_t& value(const StepSlice& slice, uint32_t layer, size_t position) {
    const size_t index = position / kBlockTokens;
    BlockIndex window_block;
    if (kv.in_windowed(layer)) window_block = slice.window_blocks.at(index - slice.window_first);
    auto* values = reinterpret_cast<uint64_t*>(at(layer, slice.blocks[index], window_block));
    return values[position % kBlockTokens];
  }
  // Over what the row behind these positions sees.
  uint64_t sum(const StepSlice& slice, uint32_t layer, size_t positions) {
    const bool hides = is_windowed(layer, window_) && positions >= window_;
    uint64_t sum = 0;
    for (size_t p = hides ? positions - window_ + 1 : 0; p < positions; ++p)
      sum = mix(sum, value(slice, layer, p), p);
    return sum;
  }
  void store(const StepSlice& slice, uint32_t layer) {
    for (size_t i = 0; i < slice.tokens.size(); ++i) {
      const size_t position = slice.position + i;
      value(slice, layer, position) =
          mix(sum(slice, layer, position), static_cast<uint64_t>(slice.tokens[i]), layer);
    }
  }

  const uint32_t window_;
  std::vector<std::byte> bytes_, window_bytes_;
};

// One worker's manager and device, with its mailboxes: nothing happens until they are emptied.
struct Half final : WorkerPorts {
  Half(uint32_t blocks, uint32_t window)
      : manager(
            {.blocks = blocks, .window = window, .window_blocks = window > 0 ? kWindowBlocks : 0},
            hasher),
        device(blocks, window) {}
  void ask_kv(std::vector<KvRequest> requests) override { kv.push_back(std::move(requests)); }
  void submit(StepPlan plan) override { plans.push_back(std::move(plan)); }

  template <class Core>
  bool pump(Core& core, LayerListener* listener, TimePoint now) {
    bool did = false;
    for (; !kv.empty(); did = true) {
      const auto requests = std::move(kv.front());
      kv.pop_front();
      std::vector<KvReply> replies;
      manager.on_requests(requests, replies);
      core.on_kv_replies(replies, manager.stats());
    }
    if (!plans.empty() && !paused) {
      const StepPlan plan = std::move(plans.front());
      plans.pop_front();
      core.on_step_done(device.execute(plan, listener, now));
      did = true;
    }
    core.check_invariants();
    manager.check_invariants();
    return did;
  }

  Xxh3BlockHasher hasher{1};
  KvCacheManagerCore manager;
  PretendedDevice device;
  std::deque<std::vector<KvRequest>> kv;
  std::deque<StepPlan> plans;
  bool paused = false;  // the device takes its time
};

struct Fixture {
  explicit Fixture(uint32_t step_tokens_max = 32, uint32_t window = 0)
      : window(window), decode_half(64, window), prefill_half(64, window), donor_half(64, window) {
    for (const Half* half : {&donor_half, &decode_half, &prefill_half}) {
      for (const KvMemory& pool : {half->device.kv.all, half->device.kv.windowed})
        if (pool.layers > 0) BOOST_REQUIRE(transport.register_memory(pool.memory).ok());
    }
    DecodeOptions options;
    options.identity.endpoint = "decode";
    options.scheduler = scheduler(step_tokens_max);
    options.import_tokens_min = 20;
    options.kv = extent();
    decode = std::make_unique<DecodeCore>(clock, outbox, decode_half, &landings, metrics, options);
    PrefillOptions prefill_options;
    prefill_options.identity.endpoint = "prefill";
    prefill_options.scheduler = scheduler(step_tokens_max);
    prefill_options.kv = extent();
    prefill = std::make_unique<PrefillCore>(clock, outbox, prefill_half, metrics, prefill_options);
  }
  // Another decode worker, of which the first one may take what it has computed.
  void add_donor() {
    DecodeOptions options;
    options.identity.endpoint = "donor";
    options.scheduler = scheduler(32);
    options.kv = extent();
    donor =
        std::make_unique<DecodeCore>(clock, outbox, donor_half, &donor_landings, metrics, options);
  }
  ~Fixture() {
    for (const Half* half : {&donor_half, &decode_half, &prefill_half}) {
      for (const KvMemory& pool : {half->device.kv.all, half->device.kv.windowed})
        if (pool.layers > 0) transport.unregister_memory(pool.memory);
    }
  }
  // What a decode worker with the same model and KV orders.
  wire::Reserved order_that_fits() const {
    wire::Reserved order;
    order.reply_to = "decode";
    order.ticket.landing = 7;
    order.tokens = prompt(40);
    order.layers = kLayers;
    order.block_bytes = kBlockBytes;
    order.kv_type = extent().type;
    order.model = extent().model;
    order.deadline = std::chrono::milliseconds(1000);
    return order;
  }
  KvExtent extent() const {
    const WorkerKv& kv = decode_half.device.kv;
    return {.layers = kv.all.layers,
            .block_bytes = kBlockBytes,
            .model = {},
            .window_layers = kv.windowed.layers,
            .window = window,
            .type = KvType::kF16};
  }
  SchedulerOptions scheduler(uint32_t step_tokens_max) const {
    SchedulerOptions options;
    options.blocks_total = 64;
    options.window = window;
    options.window_blocks_total = window > 0 ? kWindowBlocks : 0;
    options.context_tokens = 1024;
    options.step_tokens_max = step_tokens_max;
    return options;
  }
  static std::vector<TokenId> prompt(uint32_t tokens, uint32_t seed = 1) {
    std::vector<TokenId> prompt;
    for (uint32_t i = 0; i < tokens; ++i)
      prompt.push_back(static_cast<TokenId>(philox_u64(seed, i, 0) % 1000));
    return prompt;
  }
  void route(uint64_t id, std::vector<TokenId> prompt,
             const std::string& prefill_worker = "prefill", uint32_t choices = 1,
             DecodeCore* to = nullptr) {
    wire::Routed routed;
    routed.attempt = 1;
    routed.router = "router";
    routed.prefill = prefill_worker;
    routed.request.id = RequestId(id);
    routed.request.gateway = "g";
    routed.request.prompt = std::move(prompt);
    for (uint32_t i = 0; i < choices; ++i) {
      SamplingParams params;
      params.max_tokens = 5;
      params.ignore_eos = true;
      routed.request.sequences.push_back({SequenceId(id * 100 + i), params});
    }
    (to != nullptr ? to : decode.get())->on_routed(routed);
  }
  // Hands on what the two workers sent each other since; true when there was something.
  bool deliver() {
    bool did = false;
    for (; delivered < outbox.sent.size(); ++delivered) {
      const auto [to, message] = outbox.sent[delivered];
      if (to == "donor") {
        if (const auto* m = std::get_if<wire::Reserved>(&message)) donor->on_reserved(*m);
        if (const auto* m = std::get_if<wire::Released>(&message)) donor->on_released(*m);
        continue;
      }
      if (const auto* m = std::get_if<wire::Reserved>(&message)) prefill->on_reserved(*m);
      if (const auto* m = std::get_if<wire::Released>(&message)) prefill->on_released(*m);
      if (const auto* m = std::get_if<wire::Prefilled>(&message)) decode->on_prefilled(*m);
      did = true;
    }
    for (; !exported.empty(); did = true) {
      const auto [landing, status] = exported.front();
      exported.pop_front();
      prefill->on_exported(landing, status);
      if (donor) donor->on_exported(landing, status);
    }
    for (; !closed.empty(); did = true) {
      const auto [landing, blocks] = closed.front();
      closed.pop_front();
      decode->on_landing_closed(landing, blocks);
    }
    return did;
  }
  bool turn() {
    bool did = deliver();
    did = decode_half.pump(*decode, nullptr, clock.now()) || did;
    did = prefill_half.pump(*prefill, &exporter, clock.now()) || did;
    if (donor) did = donor_half.pump(*donor, &donor_exporter, clock.now()) || did;
    return did;
  }
  void run() {
    while (turn()) {
    }
  }
  // What each choice of a request said, by its sequence.
  std::vector<TokenId> tokens(uint64_t sequence) const {
    std::vector<TokenId> out;
    for (const auto& message : outbox.take<wire::Emitted>("g")) {
      for (const wire::Emission& emission : message.emissions) {
        if (emission.sequence.value != sequence) continue;
        for (const SampledToken& token : emission.tokens) out.push_back(token.token);
      }
    }
    return out;
  }
  std::vector<TokenId> alone(std::vector<TokenId> prompt) const {
    Fixture other(32, window);
    other.route(1, std::move(prompt), "");
    other.run();
    return other.tokens(100);
  }
  uint32_t busy_blocks(const Half& half) const {
    const KvStats stats = half.manager.stats();
    return stats.blocks_total - stats.blocks_free - stats.blocks_cached;
  }
  void check_quiet() {
    BOOST_TEST(decode->idle());
    BOOST_TEST(prefill->idle());
    BOOST_TEST(busy_blocks(decode_half) == 0U);
    BOOST_TEST(busy_blocks(prefill_half) == 0U);
    BOOST_TEST(decode_half.manager.stats().window_promised == 0U);
    BOOST_TEST(prefill_half.manager.stats().window_promised == 0U);
  }

  const uint32_t window;
  ManualClock clock;
  LoopbackTransport transport;
  FakeOutbox outbox;
  size_t delivered = 0;
  ServingMetrics metrics{"m"};
  Half decode_half, prefill_half, donor_half;
  std::deque<std::pair<uint64_t, uint32_t>> closed;
  std::deque<std::pair<uint64_t, Status>> exported;
  KvLandings landings{transport, decode_half.device.kv, [this](uint64_t landing, uint32_t blocks) {
                        closed.emplace_back(landing, blocks);
                      }};
  KvExporter exporter{transport, prefill_half.device.kv, [this](uint64_t landing, Status status) {
                        exported.emplace_back(landing, std::move(status));
                      }};
  KvLandings donor_landings{transport, donor_half.device.kv, [](uint64_t, uint32_t) {}};
  KvExporter donor_exporter{transport, donor_half.device.kv,
                            [this](uint64_t landing, Status status) {
                              exported.emplace_back(landing, std::move(status));
                            }};
  std::unique_ptr<DecodeCore> decode, donor;
  std::unique_ptr<PrefillCore> prefill;
};

BOOST_AUTO_TEST_SUITE(prefill_exchange)

BOOST_AUTO_TEST_CASE(a_moved_prompt_gives_the_same_tokens_and_is_not_computed_twice) {
  for (const uint32_t length : {22U, 32U, 33U, 100U, 161U}) {
    Fixture f;
    const auto prompt = Fixture::prompt(length);
    f.route(1, prompt);
    f.run();
    BOOST_TEST(f.tokens(100) == f.alone(prompt), boost::test_tools::per_element());
    BOOST_TEST(f.prefill_half.device.tokens_computed == length - 1);
    BOOST_TEST(f.decode_half.device.tokens_computed == 5U);  // the last of the prompt, and four
    BOOST_TEST(f.metrics.kv_imports_whole.Value() == 1.0);
    BOOST_TEST(f.metrics.kv_exports_whole.Value() == 1.0);
    f.check_quiet();
  }
}

BOOST_AUTO_TEST_CASE(of_layers_with_a_window_only_what_is_still_seen_moves) {
  for (const uint32_t window : {20U, 48U, 100U}) {
    for (const uint32_t length : {22U, 33U, 100U, 161U, 300U}) {
      Fixture f(32, window);
      const auto prompt = Fixture::prompt(length);
      f.route(1, prompt);
      f.run();
      BOOST_TEST(f.tokens(100) == f.alone(prompt), boost::test_tools::per_element());
      BOOST_TEST(f.prefill_half.device.tokens_computed == length - 1);
      BOOST_TEST(f.decode_half.device.tokens_computed == 5U);
      BOOST_TEST(f.metrics.kv_imports_whole.Value() == 1.0);
      f.check_quiet();
      // What came is found again, as if it had been computed here.
      f.route(2, prompt, "");
      f.run();
      BOOST_TEST(f.tokens(200) == f.tokens(100), boost::test_tools::per_element());
      BOOST_TEST(f.decode_half.device.tokens_computed < 10U + kBlockTokens);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_import_that_is_cut_within_its_window_is_computed_here) {
  for (const uint32_t window : {20U, 48U, 400U}) {
    for (int turns = 1; turns < 10; ++turns) {
      Fixture f(32, window);
      const auto prompt = Fixture::prompt(160);
      f.route(1, prompt);
      for (int i = 0; i < turns; ++i) f.turn();
      f.prefill_half.paused = true;
      f.run();
      const bool is_cut = f.tokens(100).empty();
      f.clock.advance(limits::kImportDeadlineUnknown + limits::kHeartbeatInterval);
      f.decode->on_tick();
      f.run();
      BOOST_TEST(f.tokens(100) == f.alone(prompt), boost::test_tools::per_element());
      if (is_cut) BOOST_TEST(f.metrics.kv_imports_cut.Value() == 1.0);
      // What has arrived serves only where all of the window has, as in a short prompt.
      if (is_cut)
        BOOST_TEST((f.decode_half.device.tokens_computed < 159U) == (window == 400U && turns > 1),
                   window << " " << turns);
      f.prefill_half.paused = false;
      f.prefill->on_tick();
      f.run();
      f.check_quiet();
    }
  }
}

BOOST_AUTO_TEST_CASE(a_short_prompt_is_computed_where_it_is_decoded) {
  Fixture f;
  f.route(1, Fixture::prompt(20));
  f.run();
  BOOST_TEST(f.prefill_half.device.tokens_computed == 0U);
  BOOST_TEST(f.tokens(100) == f.alone(Fixture::prompt(20)), boost::test_tools::per_element());
  f.check_quiet();
}

BOOST_AUTO_TEST_CASE(what_the_decode_worker_holds_already_is_not_moved) {
  Fixture f;
  auto prompt = Fixture::prompt(100);
  f.route(1, prompt);
  f.run();
  const double moved = f.metrics.kv_blocks_imported.Value();
  prompt.resize(64);
  const auto more = Fixture::prompt(60, 2);
  prompt.insert(prompt.end(), more.begin(), more.end());
  f.route(2, prompt);
  f.run();
  // 124 tokens in 8 blocks, of which 4 are cached on both sides.
  BOOST_TEST(f.metrics.kv_blocks_imported.Value() - moved == 4.0);
  BOOST_TEST(f.tokens(200) == f.alone(prompt), boost::test_tools::per_element());
  f.check_quiet();
}

BOOST_AUTO_TEST_CASE(what_the_prefill_worker_holds_is_moved_without_computing_it) {
  Fixture f;
  f.route(1, Fixture::prompt(100));
  f.run();
  const size_t computed = f.prefill_half.device.tokens_computed;
  // Another salt at the decode worker would hide its cache at both; a full pool does so at one.
  for (uint64_t id = 2; id < 12; ++id)
    f.route(id, Fixture::prompt(200, static_cast<uint32_t>(id)), "");
  f.run();
  f.route(20, Fixture::prompt(100));
  f.run();
  BOOST_TEST(f.prefill_half.device.tokens_computed - computed <= 3U);
  BOOST_TEST(f.tokens(2000) == f.tokens(100), boost::test_tools::per_element());
  f.check_quiet();
}

BOOST_AUTO_TEST_CASE(choices_of_one_request_share_one_import) {
  Fixture f;
  f.route(1, Fixture::prompt(100), "prefill", 3);
  f.run();
  BOOST_TEST(f.metrics.kv_imports_whole.Value() == 1.0);
  const auto expected = f.alone(Fixture::prompt(100));
  for (uint64_t choice = 0; choice < 3; ++choice)
    BOOST_TEST(f.tokens(100 + choice) == expected, boost::test_tools::per_element());
  f.check_quiet();
}

BOOST_AUTO_TEST_CASE(a_lost_prefill_worker_costs_what_it_had_not_moved_and_no_token) {
  Fixture f;
  const auto prompt = Fixture::prompt(160);
  f.route(1, prompt);
  for (int turns = 0; turns < 3; ++turns) f.turn();  // some chunks have moved
  f.prefill_half.paused = true;
  f.run();
  BOOST_TEST(f.tokens(100).empty());
  const uint32_t leased = f.decode_half.manager.stats().blocks_leased;
  BOOST_TEST(leased > 0U);
  f.decode->on_peer_lost("");  // the one node of this transport; the gateway's requests go, too
  f.run();
  BOOST_TEST(f.decode->idle());
  BOOST_TEST(f.busy_blocks(f.decode_half) == 0U);
}

BOOST_AUTO_TEST_CASE(at_the_deadline_the_rest_is_computed_where_it_is_decoded) {
  Fixture f;
  const auto prompt = Fixture::prompt(160);
  f.route(1, prompt);
  for (int turns = 0; turns < 3; ++turns) f.turn();
  f.prefill_half.paused = true;
  f.run();
  BOOST_TEST(f.tokens(100).empty());
  f.clock.advance(limits::kImportDeadlineUnknown);
  f.decode->on_tick();
  f.run();
  BOOST_TEST(f.tokens(100).empty());  // exactly the deadline is not over it
  f.clock.advance(limits::kHeartbeatInterval);
  f.decode->on_tick();
  f.run();
  BOOST_TEST(f.tokens(100) == f.alone(prompt), boost::test_tools::per_element());
  BOOST_TEST(f.metrics.kv_imports_cut.Value() == 1.0);
  // It kept what had arrived: some of the 159 tokens were not computed here.
  BOOST_TEST(f.decode_half.device.tokens_computed < 159U);
  BOOST_TEST(f.decode_half.device.tokens_computed > 5U);
  f.prefill_half.paused = false;
  f.run();
  f.check_quiet();
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_ends_the_import_on_both_sides_at_every_moment) {
  for (int moment = 0; moment < 14; ++moment) {
    Fixture f;
    f.route(1, Fixture::prompt(200));
    for (int turns = 0; turns < moment; ++turns) f.turn();
    f.decode->on_cancelled({RequestId(1), {}});
    f.run();
    f.check_quiet();
    BOOST_TEST(f.outbox.take<wire::Finished>("router").size() == 1U);
    BOOST_TEST(f.metrics.kv_blocks_leased.Value() == 0.0);
  }
}

BOOST_AUTO_TEST_CASE(a_prefill_worker_that_cannot_do_it_says_so_and_the_prompt_is_computed_here) {
  Fixture f;
  f.prefill->drain();
  const auto prompt = Fixture::prompt(100);
  f.route(1, prompt);
  f.run();
  BOOST_TEST(f.tokens(100) == f.alone(prompt), boost::test_tools::per_element());
  BOOST_TEST(f.prefill_half.device.tokens_computed == 0U);
  f.check_quiet();
}

BOOST_AUTO_TEST_CASE(an_unreachable_prefill_worker_is_no_reason_to_wait) {
  Fixture f;
  f.outbox.unreachable.insert("prefill");
  const auto prompt = Fixture::prompt(100);
  f.route(1, prompt);
  f.run();
  BOOST_TEST(f.tokens(100) == f.alone(prompt), boost::test_tools::per_element());
  f.check_quiet();
}

BOOST_AUTO_TEST_CASE(an_order_for_kv_of_another_shape_is_refused_with_both) {
  Fixture f;
  wire::Reserved order = f.order_that_fits();
  order.layers = kLayers + 1;
  f.prefill->on_reserved(order);
  const auto ended = f.outbox.take<wire::Prefilled>("decode");
  BOOST_REQUIRE(ended.size() == 1U);
  BOOST_TEST((ended[0].error.code() == StatusCode::kInvalidArgument));
  BOOST_TEST(ended[0].error.message().find("4 layers") != std::string::npos);
  BOOST_TEST(ended[0].error.message().find("has 3") != std::string::npos);
  BOOST_TEST(f.prefill->idle());
}

BOOST_AUTO_TEST_CASE(an_order_for_kv_of_another_model_is_refused_though_its_shape_fits) {
  Fixture f;
  wire::Reserved order = f.order_that_fits();
  order.model = "another";
  f.prefill->on_reserved(order);
  const auto ended = f.outbox.take<wire::Prefilled>("decode");
  BOOST_REQUIRE(ended.size() == 1U);
  BOOST_TEST((ended[0].error.code() == StatusCode::kInvalidArgument));
  BOOST_TEST(ended[0].error.message().find("another") != std::string::npos);
  BOOST_TEST(f.prefill->idle());
}

BOOST_AUTO_TEST_CASE(an_order_for_kv_stored_otherwise_is_refused_though_its_size_fits) {
  Fixture f;
  wire::Reserved order = f.order_that_fits();
  order.kv_type = KvType::kInt8;
  f.prefill->on_reserved(order);
  const auto ended = f.outbox.take<wire::Prefilled>("decode");
  BOOST_REQUIRE(ended.size() == 1U);
  BOOST_TEST((ended[0].error.code() == StatusCode::kInvalidArgument));
  BOOST_TEST(ended[0].error.message() ==
             "the decode worker's KV is in int8, this worker's in f16: start both with the same "
             "--kv-cache-dtype");
  BOOST_TEST(f.prefill->idle());
}

BOOST_AUTO_TEST_CASE(repeated_and_late_messages_are_harmless) {
  Fixture f;
  const auto prompt = Fixture::prompt(100);
  f.route(1, prompt);
  f.turn();
  const auto orders = f.outbox.take<wire::Reserved>("prefill");
  BOOST_REQUIRE(orders.size() == 1U);
  f.prefill->on_reserved(orders[0]);
  f.run();
  const auto ends = f.outbox.take<wire::Prefilled>("decode");
  BOOST_REQUIRE(ends.size() == 1U);
  f.decode->on_prefilled(ends[0]);
  f.prefill->on_released({orders[0].ticket.landing});
  // Computed again for a landing that is gone: every part is refused.
  f.prefill->on_reserved(orders[0]);
  f.run();
  BOOST_TEST(f.outbox.take<wire::Prefilled>("decode").size() == 2U);
  BOOST_TEST(!f.outbox.take<wire::Prefilled>("decode")[1].error.ok());
  BOOST_TEST(f.tokens(100) == f.alone(prompt), boost::test_tools::per_element());
  f.check_quiet();
}

BOOST_AUTO_TEST_CASE(
    a_failed_prefill_device_ends_its_orders_and_the_worker_says_that_it_is_stalled) {
  Fixture f;
  const auto prompt = Fixture::prompt(100);
  f.route(1, prompt);
  f.prefill_half.paused = true;
  f.run();
  BOOST_REQUIRE(!f.prefill_half.plans.empty());
  f.prefill_half.plans.clear();
  f.prefill->on_step_done(Status{StatusCode::kInternal, "broken"});
  f.prefill->on_tick();
  f.run();
  BOOST_TEST(f.outbox.take<wire::Heartbeat>("router").back().stalled);
  BOOST_TEST(f.tokens(100) == f.alone(prompt), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_failed_decode_device_ends_its_requests_and_takes_the_landings_back) {
  Fixture f;
  f.route(1, Fixture::prompt(10), "");
  f.route(2, Fixture::prompt(100));
  f.decode_half.paused = true;
  f.prefill_half.paused = true;
  f.run();
  f.decode_half.plans.clear();
  f.decode->on_step_done(Status{StatusCode::kInternal, "broken"});
  f.prefill_half.paused = false;
  f.run();
  BOOST_TEST(f.decode->idle());
  BOOST_TEST(f.outbox.take<wire::Finished>("router").size() == 2U);
  BOOST_TEST(f.busy_blocks(f.decode_half) == 0U);
  BOOST_TEST(f.busy_blocks(f.prefill_half) == 0U);
}

BOOST_AUTO_TEST_CASE(many_prompts_at_once_through_a_small_pool_lose_nothing) {
  Fixture f(48);
  for (uint64_t id = 1; id <= 12; ++id)
    f.route(id, Fixture::prompt(150 + static_cast<uint32_t>(id) * 9, static_cast<uint32_t>(id)));
  f.run();
  for (uint64_t id = 1; id <= 12; ++id) {
    const auto prompt =
        Fixture::prompt(150 + static_cast<uint32_t>(id) * 9, static_cast<uint32_t>(id));
    BOOST_TEST(f.tokens(id * 100) == f.alone(prompt), boost::test_tools::per_element());
  }
  f.check_quiet();
}

BOOST_AUTO_TEST_CASE(what_another_decode_worker_holds_is_fetched_from_it_while_it_decodes) {
  Fixture f;
  f.add_donor();
  const auto prompt = Fixture::prompt(150);
  f.route(1, prompt, "", 1, f.donor.get());
  f.run();
  const size_t computed = f.donor_half.device.tokens_computed;
  BOOST_TEST(computed == 154U);
  f.route(2, Fixture::prompt(30, 7), "", 1, f.donor.get());  // it has work of its own, too
  f.route(3, prompt, "donor");
  f.run();
  BOOST_TEST(f.tokens(300) == f.tokens(100), boost::test_tools::per_element());
  BOOST_TEST(f.tokens(200) == f.alone(Fixture::prompt(30, 7)), boost::test_tools::per_element());
  // 149 tokens: nine blocks are cached there, and what is not is less than one.
  BOOST_TEST(f.donor_half.device.tokens_computed - computed <= 34U + 5U);
  BOOST_TEST(f.decode_half.device.tokens_computed == 5U);
  BOOST_TEST(f.donor->idle());
  BOOST_TEST(f.busy_blocks(f.donor_half) == 0U);
  f.check_quiet();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
