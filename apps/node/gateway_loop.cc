#include "apps/node/gateway_loop.h"

#include <glog/logging.h>

#include "actors/wire/codec.h"
#include "base/limits.h"

namespace troupe {

GatewayLoop::GatewayLoop(const Clock& clock, wire::Outbox& outbox, ServingMetrics& metrics,
                         GatewayOptions options, kj::UnixEventPort& event_port, kj::Timer& timer)
    : timer_(timer),
      core_(clock, outbox, metrics, std::move(options)),
      inbox_(event_port, [this](const MessageWords& words) { on_message(words); }) {}

void GatewayLoop::set_observers(OnHealth on_health, OnDescribed on_described) {
  on_health_ = std::move(on_health);
  on_described_ = std::move(on_described);
}

void GatewayLoop::start() {
  loop_ = inbox_.run().exclusiveJoin(tick()).eagerlyEvaluate([](kj::Exception&& e) {
    LOG(FATAL) << "the gateway's loop ended: " << e.getDescription().cStr();
  });
}

void GatewayLoop::on_message(const MessageWords& words) {
  auto decoded = wire::decode(words);
  if (!decoded.ok()) {
    LOG(WARNING) << "gateway: " << decoded.status().message();
    return;
  }
  wire::Message& message = decoded.value();
  if (const auto* emitted = std::get_if<wire::Emitted>(&message)) return core_.on_emitted(*emitted);
  if (const auto* rejected = std::get_if<wire::Rejected>(&message)) {
    return core_.on_rejected(*rejected);
  }
  if (const auto* health = std::get_if<wire::Health>(&message)) {
    core_.on_health(*health);
    if (on_health_) on_health_(*health);
    return;
  }
  if (auto* described = std::get_if<wire::Described>(&message); described && on_described_)
    return on_described_(std::move(*described));
  LOG(WARNING) << "gateway: dropped a message that is not for a gateway";
}

kj::Promise<void> GatewayLoop::tick() {
  constexpr kj::Duration kInterval = limits::kHeartbeatInterval.count() * kj::MILLISECONDS;
  return timer_.afterDelay(kInterval).then([this] {
    core_.on_tick();
    return tick();
  });
}

}  // namespace troupe
