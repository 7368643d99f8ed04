#include "base/metrics/model_metrics.h"

#include <prometheus/text_serializer.h>

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
    // All sets register the same families in the same order.
    std::vector<prometheus::MetricFamily> more = metrics.collect();
    if (families.empty()) {
      families = std::move(more);
      return;
    }
    for (size_t i = 0; i < families.size(); ++i) {
      auto& samples = families[i].metric;
      samples.insert(samples.end(), std::make_move_iterator(more[i].metric.begin()),
                     std::make_move_iterator(more[i].metric.end()));
    }
  };
  for (const auto& [digest, metrics] : models_) merge(*metrics);
  if (others_) merge(*others_);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace troupe
