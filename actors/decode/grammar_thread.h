#pragma once
// The thread of a decode worker that compiles grammars, so that no step waits for it.

#include <functional>
#include <memory>

#include "actors/decode/grammar_port.h"
#include "base/clock.h"
#include "engine/grammar/grammar_compiler.h"

namespace troupe {

// Makes the vocabulary's compiler when the first grammar comes, on its own thread, which starts
// then. A compilation cannot be stopped: one that is overdue fails its ticket and is left alone
// with its thread and compiler, and another thread with a new compiler goes on with the others. The
// checks before (engine/grammar/check_grammar.h) make that a rare thing; kStuckCompilesMax bounds
// it.
class GrammarThread final : public GrammarPort {
 public:
  using Grammar = std::shared_ptr<const CompiledGrammar>;
  // Called on the thread, or inside on_tick(); must not block.
  using Compiled = std::function<void(uint64_t ticket, Result<Grammar> grammar)>;
  // Called on the thread, once, before the first compilation.
  using MakeVocabulary = std::function<Result<std::shared_ptr<const GrammarVocabulary>>()>;

  // `clock` must outlive this object and what is stuck when it is destroyed; so must what
  // `make_vocabulary` uses, until the first compilation has ended.
  GrammarThread(const Clock& clock, MakeVocabulary make_vocabulary, Compiled compiled);
  // Waits for a compilation that runs, at most kCompileDeadline; nothing is reported any more.
  ~GrammarThread() override;
  GrammarThread(const GrammarThread&) = delete;
  GrammarThread& operator=(const GrammarThread&) = delete;

  [[nodiscard]] Status compile(uint64_t ticket, GrammarSpec spec) override;
  void give_up(uint64_t ticket) override;
  void on_tick() override;

 private:
  struct Shared;
  static void start_thread(const std::shared_ptr<Shared>& shared);
  static void run(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;  // with the threads, which may outlive this object
};

}  // namespace troupe
