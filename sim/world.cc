#include "sim/world.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace troupe::sim {
namespace {

constexpr uint64_t kSweepEvents = 64;  // between two looks for clients that are through
constexpr Duration kRestCheck = std::chrono::milliseconds(50);
constexpr Duration kRetryDelay = std::chrono::milliseconds(300);

SimNetworkOptions network_options(const WorldOptions& options) {
  SimNetworkOptions network = options.network;
  network.ignores_fences = options.plant == Plant::kIgnoreFences;
  return network;
}

}  // namespace

World::World(const WorldOptions& options, const RoutingPolicy& policy, const Workload& workload,
             EventLog::Print print)
    : options_(options),
      workload_(workload),
      model_(options.worker.model),
      rng_(options.seed),
      log_(events_, std::move(print)),
      saboteur_(options.plant, options.seed),
      network_(events_, rng_, network_options(options)),
      policy_(policy),
      fronts_(options.fronts),
      workers_(size_t{options.prefill} + options.decode + options.mixed) {
  TROUPE_ASSERT(!fronts_.empty() && !workers_.empty());
  for (size_t i = 0; i < fronts_.size(); ++i) start_front(i);
  for (size_t i = 0; i < workers_.size(); ++i) start_worker(i);
}

World::~World() = default;

Environment World::environment() {
  return {events_, rng_, network_, log_, saboteur_, options_.mail_delay_max};
}

std::string World::front_node(size_t index) const {
  return "front-" + std::to_string(index) + ":1";
}

std::string World::worker_node(size_t index) const {
  return "worker-" + std::to_string(index) + ":1";
}

std::string World::any_node() {
  const uint64_t index = rng_.below(fronts_.size() + workers_.size());
  return index < fronts_.size() ? front_node(index) : worker_node(index - fronts_.size());
}

Process::Options World::next_life(const std::string& node, uint64_t& incarnation) {
  const auto most = static_cast<uint64_t>(options_.clock_offset_max.count());
  return {node, ++incarnation, Duration(most > 0 ? rng_.below(most) : 0)};
}

void World::start_front(size_t index) {
  Place<SimFront>& place = fronts_[index];
  SimFrontOptions options;
  options.requests_in_flight_max = options_.requests_in_flight_max;
  // No two lives of any gateway name their requests alike.
  options.first_id = (uint64_t{index} << 48) + (place.incarnation << 32) + 1;
  place.frozen = false;
  place.now = std::make_unique<SimFront>(
      environment(), next_life(front_node(index), place.incarnation), policy_, options);
  log_.note("starts", front_node(index), place.incarnation);
}

void World::start_worker(size_t index) {
  Place<SimWorker>& place = workers_[index];
  SimWorkerOptions options = options_.worker;
  options.role = index < options_.prefill                     ? wire::Role::kPrefill
                 : index < options_.prefill + options_.decode ? wire::Role::kDecode
                                                              : wire::Role::kMixed;
  for (size_t i = 0; i < fronts_.size(); ++i) options.routers.push_back(front_node(i) + "/router");
  place.frozen = place.device_failed = false;
  place.now =
      std::make_unique<SimWorker>(environment(), next_life(worker_node(index), place.incarnation),
                                  WorkerId(static_cast<uint32_t>(index + 1)), options);
  log_.note("starts", worker_node(index), place.incarnation);
}

void World::stop_front(size_t index) {
  log_.note("ends", front_node(index));
  for (const uint64_t number : open_clients_) {
    clients_[number]->on_front_lost(*fronts_[index].now);
  }
  fronts_[index].now.reset();
}

void World::stop_worker(size_t index) {
  log_.note("ends", worker_node(index));
  Place<SimWorker>& place = workers_[index];
  imports_whole_ += place.now->metrics().kv_imports_whole.Value();
  imports_cut_ += place.now->metrics().kv_imports_cut.Value();
  place.now.reset();
}

// Arrivals come one after the other, so that a long trace does not fill the queue.
void World::schedule_next_arrival() {
  if (next_arrival_ == workload_.size()) return;
  const size_t index = next_arrival_++;
  events_.at(start_ + workload_.arrival(index), [this, index] {
    schedule_next_arrival();
    arrive(index);
  });
}

void World::arrive(size_t index) {
  const SimClient::Environment environment{events_,
                                           log_,
                                           saboteur_,
                                           model_,
                                           options_.worker.context_tokens,
                                           options_.faults.lose(),
                                           options_.checks_tokens,
                                           options_.slo,
                                           measured_};
  clients_[index] = std::make_unique<SimClient>(environment, index, workload_.make(index));
  open_clients_.insert(index);
  SimClient& client = *clients_[index];
  if (client.request().leaves_after) {
    events_.after(*client.request().leaves_after, [this, index] { leave(index); });
  }
  submit(client);
}

void World::leave(size_t index) {
  SimClient* client = clients_[index].get();
  if (client == nullptr || client->over() || client->front() == nullptr) return;
  if (!client->front()->process().frozen()) return client->leave();
  events_.after(kRetryDelay, [this, index] { leave(index); });
}

void World::submit(SimClient& client) {
  Place<SimFront>& place = fronts_[client.request().front % fronts_.size()];
  // Whoever talks to a frozen process waits for it.
  const bool waits = place.now && place.now->process().frozen();
  if (!waits && client.submit(place.now.get())) return;
  events_.after(kRetryDelay, [this, number = client.number()] { submit(*clients_[number]); });
}

Outcome World::run() {
  // The first heartbeats come before the first request.
  start_ = events_.now() + std::chrono::milliseconds(500);
  clients_.resize(workload_.size());
  last_arrival_ =
      start_ + (workload_.size() > 0 ? workload_.arrival(workload_.size() - 1) : Duration{0});
  schedule_next_arrival();
  schedule_faults();
  TimePoint next_check = last_arrival_;
  const TimePoint deadline = last_arrival_ + options_.patience;
  while (!log_.violated() && events_.run_one()) {
    if (options_.check_every_events > 0 && events_.events_run() % options_.check_every_events == 0)
      check_invariants();
    if (events_.events_run() % kSweepEvents != 0 && events_.now() < next_check) continue;
    std::erase_if(open_clients_, [this](uint64_t number) {
      if (!clients_[number]->over()) return false;
      clients_[number].reset();
      return true;
    });
    if (events_.now() < next_check) continue;
    next_check = events_.now() + kRestCheck;
    const bool all_asked = next_arrival_ == workload_.size() && healed_;
    if (!all_asked) continue;
    const std::string why = unrest();
    if (why.empty()) {
      check_end();
      break;
    }
    if (events_.now() > deadline) log_.violate("liveness", "not at rest in time: " + why);
  }
  Outcome outcome;
  fill(outcome);
  return outcome;
}

std::string World::unrest() const {
  if (!open_clients_.empty()) {
    return std::to_string(open_clients_.size()) + " clients wait, first " +
           clients_[*open_clients_.begin()]->describe();
  }
  for (const Place<SimFront>& place : fronts_) {
    if (std::string why = place.now->unrest(); !why.empty()) return why;
  }
  for (const Place<SimWorker>& place : workers_) {
    if (std::string why = place.now->unrest(); !why.empty()) return why;
  }
  if (network_.moves_under_way() > 0)
    return std::to_string(network_.moves_under_way()) + " parts are under way";
  return "";
}

void World::check_invariants() const {
  for (const Place<SimFront>& place : fronts_) {
    if (place.now) place.now->check_invariants();
  }
  for (const Place<SimWorker>& place : workers_) {
    if (place.now) place.now->check_invariants();
  }
}

void World::check_end() {
  check_invariants();
  for (const Place<SimFront>& place : fronts_) place.now->check_metrics();
  if (network_.queue_bytes_most() > limits::kSendQueueBytesMax)
    log_.violate("queue", "a node had too many bytes of messages on their way to another");
  if (network_.stats().parts_unstable > 0) {
    log_.violate("owner", std::to_string(network_.stats().parts_unstable) +
                              " parts changed between their move and their arrival");
  }
}

void World::fill(Outcome& outcome) {
  outcome.violated_oracle = log_.violated_oracle();
  outcome.violation = log_.violation();
  outcome.latest_events = log_.latest();
  outcome.digest = log_.digest();
  outcome.rng_state = rng_.state();
  outcome.events = events_.events_run();
  outcome.virtual_time = events_.now() - start_;
  outcome.measured = std::move(measured_);
  outcome.network = network_.stats();
  const double seconds = std::chrono::duration<double>(outcome.virtual_time).count();
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].now) continue;
    SimWorker& worker = *workers_[i].now;
    Outcome::WorkerUse& use = outcome.workers.emplace_back();
    use.node = worker_node(i);
    use.role = worker.role();
    use.busy = std::chrono::duration<double>(worker.device().busy()).count() / seconds;
    use.steps = worker.device().steps();
    use.tokens = worker.device().tokens();
    use.evictions = worker.kv_stats().evictions;
    use.prefix_query_tokens = worker.kv_stats().prefix_query_tokens;
    use.prefix_hit_tokens = worker.kv_stats().prefix_hit_tokens;
    outcome.moved_exposed_seconds += std::chrono::duration<double>(worker.exposed()).count();
    imports_whole_ += worker.metrics().kv_imports_whole.Value();
    imports_cut_ += worker.metrics().kv_imports_cut.Value();
  }
  outcome.imports_whole = imports_whole_;
  outcome.imports_cut = imports_cut_;
}

}  // namespace troupe::sim
