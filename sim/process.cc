#include "sim/process.h"

#include <algorithm>
#include <utility>

#include "actors/wire/codec.h"
#include "base/assert.h"

namespace troupe::sim {
namespace {

// For the log: the kind of a message, and whom it concerns.
struct Describe {
  std::string_view kind;
  uint64_t about = 0;
};

struct Describer {
  Describe operator()(const wire::Accepted& m) const { return {"accepted", m.request.id.value}; }
  Describe operator()(const wire::Routed& m) const { return {"routed", m.request.id.value}; }
  Describe operator()(const wire::Rejected& m) const { return {"rejected", m.request.value}; }
  Describe operator()(const wire::Cancelled& m) const { return {"cancelled", m.request.value}; }
  Describe operator()(const wire::Emitted& m) const {
    return {"emitted", m.emissions.empty() ? 0 : m.emissions[0].request.value};
  }
  Describe operator()(const wire::Finished& m) const { return {"finished", m.request.value}; }
  Describe operator()(const wire::Heartbeat& m) const { return {"heartbeat", m.worker.value}; }
  Describe operator()(const wire::Health& m) const { return {"health", m.requests}; }
  Describe operator()(const wire::Reserved& m) const { return {"reserved", m.request.value}; }
  Describe operator()(const wire::Prefilled& m) const { return {"prefilled", m.landing}; }
  Describe operator()(const wire::Released& m) const { return {"released", m.landing}; }
  template <class Other>
  Describe operator()(const Other& /*message*/) const {
    return {"another message", 0};
  }
};

}  // namespace

Process::Process(const Environment& environment, const Options& options)
    : environment_(environment),
      options_(options),
      clock_(environment.events, options.clock_offset),
      transport_(
          std::make_unique<SimTransport>(environment.network, options.node, options.incarnation)) {}

void Process::end() {
  life_->ended = true;
  if (!transport_) return;
  transport_->set_peer_observer(nullptr);
  transport_.reset();
}

void Process::at(TimePoint time, EventQueue::Action action) {
  environment_.events.at(time, [life = life_, action = std::move(action)]() mutable {
    if (life->ended) return;
    if (life->frozen) {
      life->deferred.push_back(std::move(action));
    } else {
      action();
    }
  });
}

void Process::after(Duration delay, EventQueue::Action action) {
  if (life_->ended) return;
  at(environment_.events.now() + delay, std::move(action));
}

void Process::mail(Channel channel, EventQueue::Action action) {
  if (life_->ended) return;
  const auto index = static_cast<size_t>(channel);
  TimePoint time = environment_.events.now();
  if (environment_.mail_delay_max > Duration{0}) {
    const auto most = static_cast<uint64_t>(environment_.mail_delay_max.count());
    uint64_t delay = environment_.rng.below(most + 1);
    if (environment_.saboteur.strikes(Plant::kUnseeded)) {
      delay = Saboteur::unseeded() % (most + 1);
    }
    time += Duration(delay);
  }
  last_mail_[index] = std::max(last_mail_[index], time);
  if (++mail_waiting_[index] > kChannelMailMax) {
    environment_.log.violate("queue",
                             node() + " has too much mail in channel " + std::to_string(index));
  }
  at(last_mail_[index], [this, index, action = std::move(action)] {
    --mail_waiting_[index];
    action();
  });
}

void Process::every(Duration interval, EventQueue::Action action) {
  struct Timer {
    Process& process;
    const Duration interval;
    const EventQueue::Action action;
    void arm(Duration delay, const std::shared_ptr<Timer>& self) {
      process.after(delay, [self] {
        self->arm(self->interval, self);
        self->action();
      });
    }
  };
  const auto timer = std::make_shared<Timer>(Timer{*this, interval, std::move(action)});
  timer->arm(Duration(environment_.rng.below(static_cast<uint64_t>(interval.count()))), timer);
}

void Process::watch_peers(std::function<void(std::string node, std::string why)> lost) {
  lost_ = std::move(lost);
  transport_->set_peer_observer(this);
}

void Process::freeze() {
  TROUPE_ASSERT(!life_->frozen, node());
  environment_.log.note("is frozen", node());
  life_->frozen = true;
  ++freezes_;
  environment_.network.freeze(node());
}

void Process::thaw() {
  TROUPE_ASSERT(life_->frozen, node());
  environment_.log.note("goes on", node());
  life_->frozen = false;
  for (EventQueue::Action& action : std::exchange(life_->deferred, {})) {
    at(environment_.events.now(), std::move(action));
  }
  environment_.network.thaw(node());
}

void Process::on_peer_joined(std::string_view peer, uint64_t incarnation) {
  environment_.log.note("joins", node() + " with " + std::string(peer), incarnation);
}

void Process::on_peer_lost(std::string_view peer, const Status& why) {
  environment_.log.note("loses", node() + " with " + std::string(peer));
  lost_(std::string(peer), why.message());
}

bool SimOutbox::is_lost(const wire::Message& message) {
  Saboteur& saboteur = process_.environment().saboteur;
  if (std::holds_alternative<wire::Emitted>(message)) return saboteur.strikes(Plant::kLoseEmission);
  if (std::holds_alternative<wire::Finished>(message))
    return saboteur.strikes(Plant::kLoseFinished);
  return false;
}

Status SimOutbox::send(std::string_view endpoint, const wire::Message& message) {
  const Describe what = std::visit(Describer{}, message);
  if (what.kind != "heartbeat" && what.kind != "health") {
    process_.environment().log.note(what.kind, process_.node(), what.about, endpoint.size());
  }
  if (watch_) watch_(message);
  if (is_lost(message)) return ok_status();
  if (std::holds_alternative<wire::Finished>(message) &&
      process_.environment().saboteur.strikes(Plant::kStrayMessage)) {
    return outbox_.send("worker", message);
  }
  return outbox_.send(endpoint, message);
}

SimInbox::SimInbox(Process& process, std::string endpoint, Channel channel, Take take)
    : process_(process), endpoint_(std::move(endpoint)), channel_(channel), take_(std::move(take)) {
  const Status bound = process_.transport().bind(endpoint_, *this);
  TROUPE_ASSERT(bound.ok(), bound.message());
}

SimInbox::~SimInbox() {
  unbind();
}

void SimInbox::unbind() {
  if (std::exchange(bound_, false)) process_.transport().unbind(endpoint_);
}

void SimInbox::on_message(MessageWords words) {
  if (process_.environment().saboteur.strikes(Plant::kTornMessage)) words.pop_back();
  process_.mail(channel_, [this, words = std::move(words)] {
    auto message = wire::decode(words);
    if (!message.ok()) {
      process_.environment().log.violate(
          "codec", process_.node() + " got what it cannot read: " + message.status().message());
      return;
    }
    take_(std::move(message).value());
  });
}

}  // namespace troupe::sim
