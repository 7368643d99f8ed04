#pragma once
// The numbers of a process that serves several models: one set for each, told apart by their label
// model_name, on one page.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/metrics/serving_metrics.h"

namespace troupe {

// Thread-safe. What it hands out stays as long as the object.
class ModelMetrics final {
 public:
  ModelMetrics() = default;
  ModelMetrics(const ModelMetrics&) = delete;
  ModelMetrics& operator=(const ModelMetrics&) = delete;

  // A model by its digest, and the name under which it is shown. A second call changes nothing.
  ServingMetrics& add(std::string_view digest, const std::string& model_name);
  // Of a model that was never added: one set for all of these, shown only once there is one.
  [[nodiscard]] ServingMetrics& of(std::string_view digest);
  // Prometheus text format, each name once with the samples of all models. While there is no model,
  // every name is there with an empty model_name, at zero.
  [[nodiscard]] std::string serialize() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<ServingMetrics>, std::less<>> models_;
  std::unique_ptr<ServingMetrics> others_;
};

}  // namespace troupe
