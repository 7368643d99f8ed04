#pragma once
// What the actor shells of prefill and decode workers have in common.

#include <glog/logging.h>
#include <caf/behavior.hpp>
#include <caf/message_handler.hpp>
#include <caf/stateful_actor.hpp>

#include <utility>

#include "actors/device/device_actor.h"
#include "actors/kv_cache_manager/kv_cache_manager_actor.h"
#include "actors/wire/codec.h"
#include "actors/wire/inbox_actor.h"
#include "actors/worker/export_actor.h"
#include "actors/worker/mail_actor.h"
#include "actors/worker/refusal_log.h"
#include "base/limits.h"

namespace troupe {

// Links the worker's actors and begins to tick. `State` has a `core` and `refusals`;
// `dispatch(core, message)` gives the core a message from the transport, or returns false where it
// is not for such a worker; `own` are the handlers that only this worker has.
template <class State, class Dispatch>
caf::behavior worker_shell(caf::stateful_actor<State>* self, const char* name, Dispatch dispatch,
                           const caf::actor& device, const caf::actor& manager,
                           const caf::message_handler& own = {}) {
  self->link_to(device);
  self->link_to(manager);
  self->send(self, TickAtom::value);
  const caf::message_handler shared{
      [self, name, dispatch](const wire::Frame& frame) {
        auto message = wire::decode(*frame.words);
        if (!message.ok()) {
          LOG(WARNING) << name << ": " << message.status().message();
        } else if (auto* refused = std::get_if<wire::Refused>(&message.value())) {
          self->state.refusals.on_refused(*refused);
        } else if (!dispatch(*self->state.core, std::move(message).value())) {
          LOG(WARNING) << name << ": dropped a message that is not for such a worker";
        }
      },
      [self](const KvReplyBatch& batch) {
        self->state.core->on_kv_replies(*batch.replies, batch.stats);
      },
      [self](const DeviceStepDone& done) { self->state.core->on_step_done(*done.result); },
      [self](const ExportDone& done) { self->state.core->on_exported(done.landing, done.status); },
      [self](const wire::PeerLost& lost) { self->state.core->on_peer_lost(lost.node); },
      [self](TickAtom) {
        self->delayed_send(self, limits::kHeartbeatInterval, TickAtom::value);
        self->state.core->on_tick();
      },
      [self](DrainAtom) { self->state.core->drain(); },
      [self](IdleAtom) { return self->state.core->idle(); },
      [self](LeaveAtom) {
        self->state.core->leave();
        return true;
      },
  };
  return own.or_else(shared);
}

}  // namespace troupe
