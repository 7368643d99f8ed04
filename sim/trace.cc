#include "sim/trace.h"

#include <algorithm>

#include "transport/sim/seeded_rng.h"

namespace troupe::sim {

TraceWorkload::TraceWorkload(const Trace& trace, const TraceWorkloadOptions& options)
    : trace_(trace),
      options_(options),
      size_(options.requests_max > 0 ? std::min(options.requests_max, trace.requests.size())
                                     : trace.requests.size()) {}

Duration TraceWorkload::arrival(size_t index) const {
  return std::chrono::duration_cast<Duration>(trace_.requests[index].arrival / options_.speed);
}

SimRequest TraceWorkload::make(size_t index) const {
  const TraceRequest& from = trace_.requests[index];
  SimRequest request;
  request.prompt.resize(from.input_tokens);
  for (uint32_t i = 0; i < from.input_tokens; i += trace_.hash_tokens) {
    const size_t block = i / trace_.hash_tokens;
    // What is not named is of this request alone.
    const uint64_t content =
        block < from.hashes.size() ? from.hashes[block] * 2 : (index << 20 | block) * 2 + 1;
    SeededRng rng(content);
    const uint32_t end = std::min(from.input_tokens, i + trace_.hash_tokens);
    for (uint32_t k = i; k < end; ++k)
      request.prompt[k] = static_cast<TokenId>(rng.below(options_.vocabulary));
  }
  SamplingParams params;
  params.max_tokens = from.output_tokens;
  params.ignore_eos = true;
  params.seed = index;
  request.choices = {params};
  request.front = index % options_.fronts;
  return request;
}

}  // namespace troupe::sim
