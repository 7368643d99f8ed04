#include "sim/sim_front.h"

#include <utility>

#include "base/limits.h"

namespace troupe::sim {
namespace {

RouterOptions router_options(const Process& process, const SimFrontOptions& options) {
  RouterOptions router;
  router.requests_in_flight_max = options.requests_in_flight_max;
  if (process.environment().saboteur.plants(Plant::kOverLimit)) {
    router.requests_in_flight_max += 1;
  }
  router.endpoint = process.transport().address_of("router");
  router.gateways = {process.transport().address_of("gateway")};
  return router;
}

GatewayOptions gateway_options(const Process& process, const SimFrontOptions& options) {
  return {process.transport().address_of("gateway"), process.transport().address_of("router"),
          options.first_id};
}

uint64_t count_of(const prometheus::Histogram& histogram) {
  return histogram.Collect().histogram.sample_count;
}

}  // namespace

SimFront::SimFront(const Environment& environment, const Process::Options& process,
                   const RoutingPolicy& policy, const SimFrontOptions& options)
    : options_(options),
      process_(environment, process),
      outbox_(process_),
      router_(process_.clock(), outbox_, policy, router_options(process_, options)),
      gateway_(process_.clock(), outbox_, metrics_, gateway_options(process_, options)),
      router_inbox_(process_, "router", Channel::kTransportToCore,
                    [this](wire::Message message) { take_at_router(std::move(message)); }),
      gateway_inbox_(process_, "gateway", Channel::kTransportToGateway,
                     [this](const wire::Message& message) { take_at_gateway(message); }) {
  process_.watch_peers([this](std::string node, std::string why) {
    process_.mail(Channel::kTransportToCore, [this, node = std::move(node), why = std::move(why)] {
      router_.on_peer_lost(node, why);
    });
  });
  process_.every(limits::kHeartbeatInterval, [this] { router_.on_tick(); });
  process_.every(limits::kHeartbeatInterval, [this] { gateway_.on_tick(); });
}

SimFront::~SimFront() {
  router_inbox_.unbind();
  gateway_inbox_.unbind();
  process_.end();
}

void SimFront::take_at_router(wire::Message message) {
  if (auto* accepted = std::get_if<wire::Accepted>(&message)) {
    router_.on_accepted(std::move(*accepted));
    return check_limit();
  }
  if (auto* cancelled = std::get_if<wire::Cancelled>(&message))
    return router_.on_cancelled(*cancelled);
  if (auto* finished = std::get_if<wire::Finished>(&message)) return router_.on_finished(*finished);
  if (auto* beat = std::get_if<wire::Heartbeat>(&message)) return router_.on_heartbeat(*beat);
  process_.environment().log.violate(
      "message", "a router got a message of kind " + std::to_string(message.index()));
}

void SimFront::take_at_gateway(const wire::Message& message) {
  if (const auto* emitted = std::get_if<wire::Emitted>(&message)) {
    if (process_.environment().saboteur.strikes(Plant::kMiscount)) {
      metrics_.generation_tokens.Increment();
    }
    return gateway_.on_emitted(*emitted);
  }
  if (const auto* rejected = std::get_if<wire::Rejected>(&message))
    return gateway_.on_rejected(*rejected);
  if (const auto* health = std::get_if<wire::Health>(&message)) return gateway_.on_health(*health);
  process_.environment().log.violate(
      "message", "a gateway got a message of kind " + std::to_string(message.index()));
}

void SimFront::check_limit() {
  if (router_.requests_in_flight() <= options_.requests_in_flight_max) return;
  process_.environment().log.violate("queue", process_.node() + " has " +
                                                  std::to_string(router_.requests_in_flight()) +
                                                  " requests in flight, over its limit of " +
                                                  std::to_string(options_.requests_in_flight_max));
}

std::string SimFront::unrest() const {
  std::string why;
  if (router_.requests_in_flight() > 0)
    why += " its router has " + std::to_string(router_.requests_in_flight()) + " requests;";
  if (gateway_.requests_in_flight() > 0)
    why += " its gateway has " + std::to_string(gateway_.requests_in_flight()) + " requests;";
  return why.empty() ? why : process_.node() + ":" + why;
}

void SimFront::check_invariants() const {
  router_.check_invariants();
  gateway_.check_invariants();
}

void SimFront::check_metrics() {
  const auto check = [this](const char* what, double counted, uint64_t seen) {
    if (counted == static_cast<double>(seen)) return;
    process_.environment().log.violate("metrics", process_.node() + " counts " +
                                                      std::to_string(counted) + " " + what +
                                                      ", its clients saw " + std::to_string(seen));
  };
  check("stops", metrics_.finished_stop.Value(), tally_.stop);
  check("ends at the length", metrics_.finished_length.Value(), tally_.length);
  check("aborts", metrics_.finished_abort.Value(), tally_.abort);
  check("errors", metrics_.finished_error.Value(), tally_.error);
  check("tokens", metrics_.generation_tokens.Value(), tally_.tokens);
  check("prompt tokens", metrics_.prompt_tokens.Value(), tally_.prompt_tokens);
  check("first tokens", static_cast<double>(count_of(metrics_.time_to_first_token)),
        tally_.first_tokens);
}

}  // namespace troupe::sim
