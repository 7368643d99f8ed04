#include "actors/decode/grammar_thread.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/limits.h"

namespace troupe {
namespace {

struct Job {
  uint64_t ticket = 0;
  GrammarSpec spec;
};

}  // namespace

struct GrammarThread::Shared {
  const Clock& clock;
  const MakeVocabulary make_vocabulary;
  const Compiled compiled;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> waiting;
  // What the current thread compiles, since when. A thread that is not the current one is stuck.
  std::optional<uint64_t> current;
  TimePoint started{};
  uint64_t generation = 0;  // of the current thread
  bool has_thread = false;
  size_t threads = 0;  // current and stuck
  bool stopping = false;
  std::optional<Result<std::shared_ptr<const GrammarVocabulary>>> vocabulary;

  Shared(const Clock& clock, MakeVocabulary make_vocabulary, Compiled compiled)
      : clock(clock), make_vocabulary(std::move(make_vocabulary)), compiled(std::move(compiled)) {}

  [[nodiscard]] size_t stuck() const { return threads - (has_thread ? 1 : 0); }
};

GrammarThread::GrammarThread(const Clock& clock, MakeVocabulary make_vocabulary, Compiled compiled)
    : shared_(std::make_shared<Shared>(clock, std::move(make_vocabulary), std::move(compiled))) {}

GrammarThread::~GrammarThread() {
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->waiting.clear();
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, grammar_limits::kCompileDeadline,
                            [this] { return !shared_->has_thread; });
}

Status GrammarThread::compile(uint64_t ticket, GrammarSpec spec) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->stuck() >= grammar_limits::kStuckCompilesMax) {
    return {StatusCode::kResourceExhausted,
            "the worker's grammar compiler is busy with grammars that take too long: retry later"};
  }
  if (shared_->waiting.size() >= grammar_limits::kCompileQueueMax) {
    return {StatusCode::kResourceExhausted, std::to_string(shared_->waiting.size()) +
                                                " grammars wait to be compiled, which is the "
                                                "limit: retry later"};
  }
  shared_->waiting.push_back({ticket, std::move(spec)});
  if (!shared_->has_thread) start_thread(shared_);
  shared_->changed.notify_all();
  return ok_status();
}

void GrammarThread::give_up(uint64_t ticket) {
  const std::lock_guard lock(shared_->mutex);
  std::erase_if(shared_->waiting, [ticket](const Job& job) { return job.ticket == ticket; });
}

void GrammarThread::on_tick() {
  std::vector<uint64_t> failed;
  {
    const std::lock_guard lock(shared_->mutex);
    const bool is_overdue = shared_->current && shared_->clock.now() - shared_->started >
                                                    grammar_limits::kCompileDeadline;
    if (!is_overdue) return;
    failed.push_back(*std::exchange(shared_->current, std::nullopt));
    shared_->has_thread = false;
    ++shared_->generation;
    if (shared_->stuck() >= grammar_limits::kStuckCompilesMax) {
      for (const Job& job : std::exchange(shared_->waiting, {})) failed.push_back(job.ticket);
    } else if (!shared_->waiting.empty()) {
      start_thread(shared_);
    }
  }
  for (const uint64_t ticket : failed) {
    shared_->compiled(ticket, Status{StatusCode::kResourceExhausted,
                                     "the grammar was not compiled in time: simplify it, or retry "
                                     "later"});
  }
}

// Under the lock. The thread's stack is what the compiler's recursion needs, whatever the system's
// default is.
void GrammarThread::start_thread(const std::shared_ptr<Shared>& shared) {
  TROUPE_ASSERT(!shared->has_thread, shared->threads);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, grammar_limits::kCompileStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto* argument = new std::shared_ptr<Shared>(shared);
  pthread_t thread{};
  const int error = pthread_create(
      &thread, &attributes,
      [](void* given) -> void* {
        const std::unique_ptr<std::shared_ptr<Shared>> own(
            static_cast<std::shared_ptr<Shared>*>(given));
        run(*own);
        return nullptr;
      },
      argument);
  pthread_attr_destroy(&attributes);
  TROUPE_ASSERT(error == 0, error);
  shared->has_thread = true;
  ++shared->threads;
}

void GrammarThread::run(const std::shared_ptr<Shared>& shared) {
  std::unique_ptr<GrammarCompiler> compiler;
  std::unique_lock lock(shared->mutex);
  const uint64_t generation = shared->generation;
  const auto is_current = [&] { return shared->generation == generation; };
  while (is_current()) {
    shared->changed.wait(lock, [&] { return shared->stopping || !shared->waiting.empty(); });
    if (shared->stopping) break;
    Job job = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    shared->current = job.ticket;
    shared->started = shared->clock.now();
    auto vocabulary = shared->vocabulary;
    lock.unlock();
    if (!vocabulary) vocabulary = shared->make_vocabulary();
    if (vocabulary->ok() && compiler == nullptr) compiler = vocabulary->value()->make_compiler();
    Result<Grammar> grammar =
        vocabulary->ok() ? compiler->compile(job.spec) : Result<Grammar>(vocabulary->status());
    lock.lock();
    if (!is_current()) break;  // overdue: reported as failed
    shared->vocabulary = std::move(vocabulary);
    shared->current.reset();
    if (shared->stopping) break;
    lock.unlock();
    shared->compiled(job.ticket, std::move(grammar));
    lock.lock();
  }
  if (is_current()) shared->has_thread = false;
  --shared->threads;
  shared->changed.notify_all();
}

}  // namespace troupe
