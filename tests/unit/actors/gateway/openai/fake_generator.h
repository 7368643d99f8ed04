#pragma once
// A Generator whose tokens the test decides.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/gateway/generation.h"

namespace troupe::test {

// Keeps what was submitted and cancelled, and asserts the contract: nothing is said to a listener
// after its end or its cancellation.
class FakeGenerator final : public Generator {
 public:
  static constexpr uint32_t kCachedWhenCancelled = 1;

  struct Entry {
    GenerationRequest request;
    GenerationListener* listener = nullptr;  // null: ended or cancelled
    std::set<uint32_t> open;                 // choices that have not ended
    std::set<uint32_t> cancelled_choices;
    bool cancelled = false;
  };

  Result<RequestId> submit(GenerationRequest request, GenerationListener& listener) override {
    if (!reject_with.ok() && reject_after-- == 0) return reject_with;
    Entry entry{std::move(request), &listener, {}, {}, false};
    for (uint32_t c = 0; c < entry.request.choices.size(); ++c) entry.open.insert(c);
    const uint64_t id = next_id++;
    entries[id] = std::move(entry);
    return RequestId(id);
  }

  void cancel(RequestId id) override {
    Entry& entry = entries.at(id.value);
    if (entry.listener == nullptr) return;
    entry.listener = nullptr;
    entry.cancelled = true;
  }

  GenerationUsage cancel_choice(RequestId id, uint32_t choice) override {
    Entry& entry = entries.at(id.value);
    entry.cancelled_choices.insert(choice);
    close(entry, choice);
    return {static_cast<uint32_t>(entry.request.prompt.size()), kCachedWhenCancelled};
  }

  // The n-th submitted request, from 1.
  Entry& entry(uint64_t id) { return entries.at(id); }
  [[nodiscard]] bool is_open(uint64_t id, uint32_t choice = 0) {
    return entry(id).listener != nullptr && entry(id).open.contains(choice);
  }
  [[nodiscard]] size_t running() const {
    size_t count = 0;
    for (const auto& [id, entry] : entries) count += entry.listener != nullptr ? 1 : 0;
    return count;
  }

  // One token, unless the choice has ended or was cancelled.
  void token(uint64_t id, TokenId token, uint32_t choice = 0) {
    tokens(id, {SampledToken{token, -0.5F, {}}}, choice);
  }
  void tokens(uint64_t id, const std::vector<SampledToken>& tokens, uint32_t choice = 0) {
    if (is_open(id, choice)) entry(id).listener->on_tokens(choice, tokens);
  }
  void text(uint64_t id, std::string_view text, uint32_t choice = 0) {
    for (const char c : text) token(id, static_cast<uint8_t>(c), choice);
  }
  void scores(uint64_t id, const std::vector<SampledToken>& scores) {
    if (entry(id).listener != nullptr) entry(id).listener->on_prompt_scores(scores);
  }
  void embedding(uint64_t id, const std::vector<float>& values) {
    if (entry(id).listener != nullptr) entry(id).listener->on_embedding(0, values);
  }
  void finish(uint64_t id, FinishReason reason, uint32_t choice = 0, uint32_t cached_tokens = 0) {
    if (!is_open(id, choice)) return;
    Entry& e = entry(id);
    GenerationListener* listener = e.listener;
    close(e, choice);
    const auto prompt = static_cast<uint32_t>(e.request.prompt.size());
    listener->on_finished(choice, reason, -1, {prompt, cached_tokens});
  }
  void fail(uint64_t id, const Status& status) {
    GenerationListener* listener = std::exchange(entry(id).listener, nullptr);
    if (listener != nullptr) listener->on_failed(status);
  }

  std::map<uint64_t, Entry> entries;
  uint64_t next_id = 1;
  Status reject_with;  // when not ok: the answer to submit() number reject_after (from 0)
  int reject_after = 0;

 private:
  static void close(Entry& entry, uint32_t choice) {
    entry.open.erase(choice);
    if (entry.open.empty()) entry.listener = nullptr;
  }
};

}  // namespace troupe::test
