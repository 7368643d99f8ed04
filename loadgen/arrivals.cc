#include "loadgen/arrivals.h"

#include "base/assert.h"

namespace troupe::loadgen {
namespace {

Duration of_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

class GammaArrivals final : public Arrivals {
 public:
  GammaArrivals(double rate, double burstiness, uint64_t seed)
      : shape_(burstiness), scale_(1.0 / (rate * burstiness)), random_(seed, streams::kArrivals) {}

  std::optional<Duration> next() override {
    seconds_ += random_.gamma(shape_, scale_);
    return of_seconds(seconds_);
  }

 private:
  const double shape_, scale_;
  Random random_;
  double seconds_ = 0.0;
};

class ConstantArrivals final : public Arrivals {
 public:
  explicit ConstantArrivals(double rate) : rate_(rate) {}
  // By the count and not by adding up, so that no error does.
  std::optional<Duration> next() override {
    return of_seconds(static_cast<double>(count_++) / rate_);
  }

 private:
  const double rate_;
  uint64_t count_ = 0;
};

class TraceArrivals final : public Arrivals {
 public:
  TraceArrivals(const Trace& trace, double scale) : trace_(trace), scale_(scale) {}

  std::optional<Duration> next() override {
    if (index_ == trace_.requests.size()) return std::nullopt;
    return std::chrono::duration_cast<Duration>(trace_.requests[index_++].arrival * scale_);
  }

 private:
  const Trace& trace_;
  const double scale_;
  size_t index_ = 0;
};

}  // namespace

std::unique_ptr<Arrivals> gamma_arrivals(double rate_per_s, double burstiness, uint64_t seed) {
  TROUPE_ASSERT(rate_per_s > 0.0 && burstiness > 0.0);
  return std::make_unique<GammaArrivals>(rate_per_s, burstiness, seed);
}

std::unique_ptr<Arrivals> constant_arrivals(double rate_per_s) {
  TROUPE_ASSERT(rate_per_s > 0.0);
  return std::make_unique<ConstantArrivals>(rate_per_s);
}

std::unique_ptr<Arrivals> trace_arrivals(const Trace& trace, double time_scale) {
  TROUPE_ASSERT(time_scale > 0.0);
  return std::make_unique<TraceArrivals>(trace, time_scale);
}

}  // namespace troupe::loadgen
