#pragma once
// The workers that a router knows, and what it knows of them. Soft state: a heartbeat makes a
// worker known, silence makes it lost, and one that stays lost is forgotten.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/wire/messages.h"
#include "base/clock.h"
#include "policies/routing/routing_policy.h"
#include "troupe/status.h"

namespace troupe {

struct Worker {
  std::string endpoint;
  std::string model, model_name;  // digest, and for people
  wire::Role role = wire::Role::kMixed;
  KvType kv_type = KvType::kF16;
  uint64_t incarnation = 0;
  TimePoint last_heartbeat{};
  wire::Load load;
  bool stalled = false, draining = false;
  // Why no request may be sent to it; empty while it is alive.
  std::string lost;
  uint32_t requests = 0;       // of this router, in flight
  uint64_t prompt_tokens = 0;  // of these
  uint64_t sent_tokens = 0;    // of prompts, sent there to be computed since its last heartbeat

  [[nodiscard]] bool accepting() const { return lost.empty() && !stalled && !draining; }
};

class WorkerTable {
 public:
  using Workers = std::map<WorkerId, Worker>;

  // What a heartbeat changed.
  struct Change {
    std::string lost;  // why requests sent to it before are lost; empty: they are not
  };

  // kInvalidArgument: the heartbeat does not fit what is known; the message names both values.
  // kResourceExhausted: kWorkersMax are known.
  [[nodiscard]] Result<Change> take(const wire::Heartbeat& heartbeat, TimePoint now);
  [[nodiscard]] Worker* find(WorkerId id);
  [[nodiscard]] const Workers& all() const { return workers_; }

  // Marks the workers of a lost node, or those silent for too long, as lost; returns those that
  // were not before.
  [[nodiscard]] std::vector<WorkerId> lose_node(std::string_view node, const std::string& why,
                                                TimePoint now);
  [[nodiscard]] std::vector<WorkerId> lose_silent(TimePoint now);
  // We were not running for so long: it was not their silence.
  void excuse(Duration pause);
  // Forgets those that have been lost for long.
  void forget_old(TimePoint now);

  // The candidates for the requests of a model, in the order of ids.
  [[nodiscard]] std::vector<WorkerView> views(std::string_view model) const;
  // The digest of the model that all workers have; nothing where they have several, or there is
  // none.
  [[nodiscard]] std::optional<std::string> only_model() const;
  [[nodiscard]] std::vector<wire::WorkerStatus> statuses(TimePoint now) const;
  // Why no worker can decode, of any model or of this one; empty when one can.
  [[nodiscard]] std::string unhealthy() const;
  [[nodiscard]] std::string unhealthy(std::string_view model) const;

 private:
  [[nodiscard]] Status check(const wire::Heartbeat& heartbeat) const;
  [[nodiscard]] Status check_kv_type(const wire::Heartbeat& heartbeat) const;
  template <class Counts>
  [[nodiscard]] std::string unhealthy_where(Counts&& counts) const;

  Workers workers_;
};

}  // namespace troupe
