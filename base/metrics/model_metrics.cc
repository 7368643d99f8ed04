#include "base/metrics/model_metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace troupe {

ServingMetrics& ModelMetrics::add(std::string_view digest, const std::string& model_name) {
  const std::lock_guard lock(mutex_);
  auto& metrics = models_[std::string(digest)];
  if (!metrics) metrics = std::make_unique<ServingMetrics>(model_name);
  return *metrics;
}

ServingMetrics& ModelMetrics::of(std::string_view digest) {
  const std::lock_guard lock(mutex_);
  if (const auto found = models_.find(digest); found != models_.end()) return *found->second;
  if (!others_) others_ = std::make_unique<ServingMetrics>("");
  return *others_;
}

std::string ModelMetrics::serialize() const {
  const std::lock_guard lock(mutex_);
  if (models_.empty() && !others_) return ServingMetrics("").serialize();
  std::vector<prometheus::MetricFamily> families;
  const auto merge = [&families](const ServingMetrics& metrics) {
    // Sets without KV of their own have a family less.
    for (prometheus::MetricFamily& more : metrics.collect()) {
      const auto same = std::find_if(families.begin(), families.end(),
                                     [&](const auto& known) { return known.name == more.name; });
      if (same == families.end()) {
        families.push_back(std::move(more));
        continue;
      }
      same->metric.insert(same->metric.end(), std::make_move_iterator(more.metric.begin()),
                          std::make_move_iterator(more.metric.end()));
    }
  };
  for (const auto& [digest, metrics] : models_) merge(*metrics);
  if (others_) merge(*others_);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace troupe
