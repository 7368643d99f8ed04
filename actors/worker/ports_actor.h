#pragma once
// The ports of a worker's core as mail to the worker's other actors.

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <memory>
#include <mutex>
#include <utility>

#include "actors/device/device_actor.h"
#include "actors/kv_cache_manager/kv_cache_manager_actor.h"
#include "actors/worker/worker_ports.h"

namespace troupe {

// Part of its actor's state.
class ActorPorts final : public WorkerPorts {
 public:
  ActorPorts(caf::event_based_actor* self, caf::actor device, caf::actor manager)
      : self_(self), device_(std::move(device)), manager_(std::move(manager)) {}

  void ask_kv(std::vector<KvRequest> requests) override {
    self_->send(manager_, KvRequestBatch{
                              std::make_shared<const std::vector<KvRequest>>(std::move(requests))});
  }
  void submit(StepPlan plan) override {
    self_->send(device_, DeviceStep{std::make_shared<const StepPlan>(std::move(plan))});
  }

 private:
  caf::event_based_actor* self_;
  caf::actor device_, manager_;
};

// Where callbacks of the transport send their mail: an actor that is spawned after them and may end
// before them. Does not keep the actor alive. Thread-safe.
class MailTarget {
 public:
  void set(const caf::actor& actor) {
    const std::lock_guard lock(mutex_);
    address_ = actor.address();
  }
  template <class Mail>
  void send(Mail mail) const {
    caf::actor actor;
    {
      const std::lock_guard lock(mutex_);
      actor = caf::actor_cast<caf::actor>(address_);
    }
    if (actor) caf::anon_send(actor, std::move(mail));
  }

 private:
  mutable std::mutex mutex_;
  caf::actor_addr address_;
};

}  // namespace troupe
