#pragma once
#include <cstdint>

#include "engine/grammar/grammar_spec.h"
#include "troupe/status.h"

namespace troupe {

// How the decode worker has grammars compiled. Non-blocking.
class GrammarPort {
 public:
  virtual ~GrammarPort() = default;
  // One on_grammar_compiled() with the ticket follows, as a message of its own, unless it is given
  // up. kResourceExhausted: too many wait already, or too many are stuck.
  [[nodiscard]] virtual Status compile(uint64_t ticket, GrammarSpec spec) = 0;
  // Nobody waits for it any more. Harmless when unknown; an answer may still come.
  virtual void give_up(uint64_t ticket) = 0;
  // Every kHeartbeatInterval: ends what is overdue.
  virtual void on_tick() = 0;
};

}  // namespace troupe
