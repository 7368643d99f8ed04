#pragma once
// An answer that is generated: a run together with what writes it down.

#include <memory>
#include <utility>

#include "actors/gateway/openai/generation_run.h"
#include "actors/gateway/running_answer.h"

namespace troupe {

class GeneratedAnswer final : public RunningAnswer {
 public:
  // `writer` takes the run's output; `generator` outlives the answer.
  GeneratedAnswer(PreparedRequest request, const RunIdentity& identity, Generator& generator,
                  std::unique_ptr<RunSink> writer)
      : writer_(std::move(writer)), run_(std::move(request), identity, generator, *writer_) {}

  [[nodiscard]] Status start() override { return run_.start(); }
  void abort(const Status& status) override { run_.abort(status); }

 private:
  std::unique_ptr<RunSink> writer_;
  GenerationRun run_;  // last: its end may still call the writer
};

}  // namespace troupe
