#include "actors/gateway/openai/prompt_batch.h"

#include <utility>

#include "actors/gateway/openai/request_limits.h"
#include "base/assert.h"

namespace troupe {

// Invariant: live_ exactly while the generator may still call it.
class PromptBatch::Entry final : public GenerationListener {
 public:
  Entry(PromptBatch& batch, size_t index) : batch_(batch), index_(index) {}

  [[nodiscard]] Status submit(GenerationRequest request) {
    TROUPE_ASSERT(request.choices.size() == 1 && request.choices[0].max_tokens == 0, index_);
    Result<RequestId> id = batch_.generator_.submit(std::move(request), *this);
    if (!id.ok()) return id.status();
    id_ = id.value();
    live_ = true;
    return ok_status();
  }
  void cancel() {
    if (std::exchange(live_, false)) batch_.generator_.cancel(id_);
  }

  void on_prompt_scores(std::span<const SampledToken> scores) override {
    auto& out = batch_.outcomes_[index_].scores;
    out.insert(out.end(), scores.begin(), scores.end());
  }
  void on_tokens(uint32_t /*choice*/, std::span<const SampledToken> tokens) override {
    TROUPE_ASSERT(tokens.empty(), index_, tokens.size());
  }
  void on_embedding(uint32_t /*choice*/, std::span<const float> values) override {
    batch_.outcomes_[index_].embedding.assign(values.begin(), values.end());
  }
  void on_finished(uint32_t /*choice*/, FinishReason /*reason*/, TokenId /*stop_token*/,
                   const GenerationUsage& usage) override {
    live_ = false;
    batch_.outcomes_[index_].usage = usage;
    batch_.on_ended();
  }
  void on_failed(const Status& status) override {
    live_ = false;
    batch_.fail(index_, status);
  }

 private:
  PromptBatch& batch_;
  const size_t index_;
  RequestId id_;
  bool live_ = false;
};

PromptBatch::PromptBatch(std::vector<GenerationRequest> requests, Generator& generator, Done done)
    : requests_(std::move(requests)),
      generator_(generator),
      done_(std::move(done)),
      outcomes_(requests_.size()) {
  TROUPE_ASSERT(!requests_.empty(), requests_.size());
}

PromptBatch::~PromptBatch() {
  cancel_all();
}

Status PromptBatch::start() {
  TROUPE_ASSERT(entries_.empty() && !over_, entries_.size());
  Status status = fill();
  if (!status.ok()) {
    over_ = true;
    cancel_all();
  }
  return status;
}

// A full queue is no failure while others of the batch run: it goes on when they end.
Status PromptBatch::fill() {
  while (running_ < kPromptsAtOnce && entries_.size() < requests_.size()) {
    const size_t index = entries_.size();
    auto entry = std::make_unique<Entry>(*this, index);
    const Status status = entry->submit(requests_[index]);
    if (status.code() == StatusCode::kResourceExhausted && running_ > 0) return ok_status();
    TROUPE_RETURN_IF_ERROR(status);
    entries_.push_back(std::move(entry));
    requests_[index].prompt = {};  // submitted; no need to keep it
    ++running_;
  }
  return ok_status();
}

void PromptBatch::on_ended() {
  if (over_) return;
  TROUPE_ASSERT(running_ > 0, ended_count_);
  --running_;
  if (++ended_count_ == requests_.size()) {
    over_ = true;
    return done_(std::move(outcomes_), 0);
  }
  const Status status = fill();
  if (!status.ok()) fail(entries_.size(), status);
}

void PromptBatch::fail(size_t index, const Status& status) {
  if (std::exchange(over_, true)) return;
  cancel_all();
  done_(status, index);
}

void PromptBatch::abort(const Status& status) {
  fail(0, status);
}

void PromptBatch::cancel_all() {
  for (auto& entry : entries_) entry->cancel();
}

}  // namespace troupe
