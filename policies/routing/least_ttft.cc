#include "policies/routing/least_ttft.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace troupe {
namespace {

// Prompt tokens that the worker has still to get for this request. The last one is always computed
// where it is decoded.
uint32_t missing(const RouteView& view, const WorkerView& worker) {
  const uint32_t wanted = std::max(1U, view.prompt_tokens) - 1;
  return wanted - std::min(wanted, worker.cached_tokens);
}

double wait_seconds(const WorkerView& worker) {
  return static_cast<double>(worker.queued_tokens) * worker.seconds_per_token;
}

}  // namespace

// Whoever has computed nothing yet is taken to be as fast as the others are on average: taken to be
// slower, it would never be asked to show its speed.
std::vector<WorkerView> LeastTtft::with_speeds(std::span<const WorkerView> workers) const {
  double sum = 0.0;
  size_t known = 0;
  for (const WorkerView& worker : workers) {
    sum += worker.seconds_per_token;
    known += worker.seconds_per_token > 0.0 ? 1 : 0;
  }
  const double typical =
      known > 0 ? sum / static_cast<double>(known) : options_.seconds_per_token_unknown;
  std::vector<WorkerView> filled(workers.begin(), workers.end());
  for (WorkerView& worker : filled) {
    if (worker.seconds_per_token <= 0.0) worker.seconds_per_token = typical;
  }
  return filled;
}

std::optional<RoutePlan> LeastTtft::decide(const RouteView& asked) const {
  const std::vector<WorkerView> workers = with_speeds(asked.workers);
  const RouteView view{workers, asked.prompt_tokens};
  uint32_t fewest = std::numeric_limits<uint32_t>::max();
  for (const WorkerView& worker : view.workers) {
    if (worker.accepting && worker.decodes) fewest = std::min(fewest, worker.requests);
  }
  const auto share = static_cast<uint32_t>(fewest * options_.requests_slack_share);
  const uint64_t most = uint64_t{fewest} + std::max(options_.requests_slack, share);
  std::optional<Candidate> best;
  const auto rank = [&view](const Candidate& candidate) {
    const WorkerView& decode = view.workers[candidate.plan.decode];
    return std::tuple(candidate.seconds, decode.requests, decode.id);
  };
  for (size_t d = 0; d < view.workers.size(); ++d) {
    const WorkerView& worker = view.workers[d];
    if (!worker.accepting || !worker.decodes || worker.requests > most) continue;
    const Candidate candidate = best_for(view, d);
    if (!best || rank(candidate) < rank(*best)) best = candidate;
  }
  if (!best) return std::nullopt;
  return best->plan;
}

LeastTtft::Candidate LeastTtft::best_for(const RouteView& view, size_t decode) const {
  const WorkerView& worker = view.workers[decode];
  Candidate best;
  best.plan.decode = decode;
  const double compute = missing(view, worker) * worker.seconds_per_token;
  best.seconds = wait_seconds(worker) + compute;
  if (!worker.imports) return best;
  best.seconds += compute * std::max(1U, worker.requests);
  for (size_t s = 0; s < view.workers.size(); ++s) {
    const WorkerView& source = view.workers[s];
    if (s == decode || !source.accepting) continue;
    const bool holds_more = source.exports && source.cached_tokens > worker.cached_tokens;
    if (!source.prefills && !holds_more) continue;
    const Candidate candidate = from(view, decode, s);
    if (candidate.seconds < best.seconds) best = candidate;
  }
  return best;
}

LeastTtft::Candidate LeastTtft::from(const RouteView& view, size_t decode, size_t source) const {
  const WorkerView& to = view.workers[decode];
  const WorkerView& by = view.workers[source];
  Candidate candidate;
  candidate.plan.decode = decode;
  candidate.plan.prefill = source;
  if (by.prefills) {
    candidate.plan.prefill_wait_seconds = wait_seconds(by);
    candidate.seconds = wait_seconds(by) + missing(view, by) * by.seconds_per_token +
                        missing(view, to) * options_.move_seconds_per_token +
                        options_.exchange_seconds;
    return candidate;
  }
  // Only what it holds: it has a batch of its own to decode.
  candidate.plan.prefill_tokens = std::min(by.cached_tokens, std::max(1U, view.prompt_tokens) - 1);
  const uint32_t moved = candidate.plan.prefill_tokens - to.cached_tokens;
  candidate.seconds = options_.exchange_seconds + moved * options_.move_seconds_per_token +
                      missing(view, by) * to.seconds_per_token + wait_seconds(to);
  return candidate;
}

}  // namespace troupe
