#include "actors/decode/imports.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "troupe/transport.h"

namespace troupe {
namespace {

constexpr double kLatestWeight = 0.2;        // of the latest import in the learned mean
constexpr size_t kPrefillWorkersMax = 1024;  // whose speed is remembered

}  // namespace

OngoingImport& ImportTable::add(OngoingImport import) {
  const uint64_t landing = import.landing;
  const bool sequence_is_new = landing_of_.emplace(import.sequence, landing).second;
  TROUPE_ASSERT(sequence_is_new, import.sequence);
  const auto [place, landing_is_new] = imports_.emplace(landing, std::move(import));
  TROUPE_ASSERT(landing_is_new, landing);
  return place->second;
}

OngoingImport* ImportTable::find(uint64_t landing) {
  const auto found = imports_.find(landing);
  return found == imports_.end() ? nullptr : &found->second;
}

OngoingImport* ImportTable::find(SequenceId sequence) {
  const auto found = landing_of_.find(sequence);
  return found == landing_of_.end() ? nullptr : find(found->second);
}

void ImportTable::erase(uint64_t landing) {
  const auto found = imports_.find(landing);
  TROUPE_ASSERT(found != imports_.end(), landing);
  landing_of_.erase(found->second.sequence);
  imports_.erase(found);
}

std::vector<uint64_t> ImportTable::overdue(TimePoint now) const {
  std::vector<uint64_t> landings;
  for (const auto& [landing, import] : imports_) {
    if (!import.closing && now > import.deadline) landings.push_back(landing);
  }
  return landings;
}

std::vector<uint64_t> ImportTable::from_node(std::string_view node) const {
  std::vector<uint64_t> landings;
  for (const auto& [landing, import] : imports_) {
    if (!import.closing && node_of(import.prefill) == node) landings.push_back(landing);
  }
  return landings;
}

std::optional<double> ImportTable::predict_seconds(const std::string& prefill,
                                                   uint32_t tokens) const {
  const auto found = seconds_per_token_.find(prefill);
  if (found == seconds_per_token_.end()) return std::nullopt;
  return found->second * tokens;
}

void ImportTable::learn(const OngoingImport& import, TimePoint now) {
  const double seconds = std::chrono::duration<double>(now - import.started).count();
  const double latest = seconds / std::max(1U, import.tokens);
  const auto found = seconds_per_token_.find(import.prefill);
  if (found != seconds_per_token_.end()) {
    found->second += kLatestWeight * (latest - found->second);
  } else if (seconds_per_token_.size() < kPrefillWorkersMax) {
    seconds_per_token_.emplace(import.prefill, latest);
  }
}

}  // namespace troupe
