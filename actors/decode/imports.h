#pragma once
// The prompts that prefill workers compute for a decode worker: one entry from the moment its
// landing is open until the landing has been closed. Plain state; decides nothing.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace troupe {

struct OngoingImport {
  uint64_t landing = 0;
  SequenceId sequence;
  std::string prefill;         // endpoint of the worker that computes
  uint32_t tokens = 0;         // that it has to compute or find in its cache
  uint32_t cached_tokens = 0;  // that it found there
  TimePoint started{}, deadline{};
  bool closing = false;
};

class ImportTable {
 public:
  // Precondition: neither its landing nor its sequence is known.
  OngoingImport& add(OngoingImport import);
  [[nodiscard]] OngoingImport* find(uint64_t landing);
  [[nodiscard]] OngoingImport* find(SequenceId sequence);
  void erase(uint64_t landing);

  // Landings, smallest first, of those not closing that are over their deadline …
  [[nodiscard]] std::vector<uint64_t> overdue(TimePoint now) const;
  // … or computed at this node.
  [[nodiscard]] std::vector<uint64_t> from_node(std::string_view node) const;
  [[nodiscard]] bool empty() const { return imports_.empty(); }
  [[nodiscard]] size_t size() const { return imports_.size(); }

  // How long the worker at `prefill` will take for so many tokens, from what it took before;
  // nothing while unknown.
  [[nodiscard]] std::optional<double> predict_seconds(const std::string& prefill,
                                                      uint32_t tokens) const;
  // What a complete import took, from its start to its last byte.
  void learn(const OngoingImport& import, TimePoint now);

 private:
  std::map<uint64_t, OngoingImport> imports_;
  std::unordered_map<SequenceId, uint64_t> landing_of_;
  std::unordered_map<std::string, double> seconds_per_token_;  // by endpoint of the worker
};

}  // namespace troupe
