#include "sim/sim_model.h"

#include <algorithm>

namespace troupe::sim {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15U + b;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

float logprob_of(uint64_t sum, TokenId token) {
  return -static_cast<float>(mix(sum, static_cast<uint64_t>(token)) % 4096) / 256.0F;
}

}  // namespace

uint64_t SimModel::kv(uint32_t layer, uint64_t before, TokenId token, uint32_t position) {
  return mix(before + layer, uint64_t{position} << 32 | static_cast<uint32_t>(token));
}

uint64_t SimModel::weigh(uint64_t kv, uint32_t layer, uint32_t position) {
  return mix(kv, uint64_t{layer} << 32 | position);
}

SampledToken SimModel::sample(uint64_t sum, const SamplingParams& params, uint32_t outputs) const {
  auto token = static_cast<TokenId>(mix(sum, params.seed) % vocabulary);
  // The sampler never proposes the end before min_tokens.
  if (token == end_token && outputs < params.min_tokens) token = (end_token + 1) % vocabulary;
  SampledToken sampled{.token = token, .logprob = 0.0F, .top = {}};
  if (params.logprobs < 0) return sampled;
  sampled.logprob = logprob_of(sum, token);
  for (int32_t i = 0; i < params.logprobs; ++i) {
    const auto other = static_cast<TokenId>((static_cast<uint32_t>(token + i)) % vocabulary);
    sampled.top.push_back({other, logprob_of(sum, other)});
  }
  return sampled;
}

SampledToken SimModel::score(uint64_t sum, TokenId token) const {
  return {.token = token, .logprob = logprob_of(sum, token), .top = {}};
}

double SimModel::row(uint64_t sum) {
  return 1.0 / (1.0 + static_cast<double>(sum % 99991));
}

Answer answer_of(const SimModel& model, const std::vector<TokenId>& prompt,
                 const SamplingParams& params, uint32_t context_tokens) {
  Answer answer;
  std::vector<uint64_t> before(model.layers);
  std::vector<uint64_t> seen;  // what each token adds in windowed layers, until it is out of sight
  uint64_t all = 0;
  double rows = 0.0;
  TokenId token = prompt[0];
  for (uint32_t i = 0;; ++i) {
    uint64_t latest = 0, windowed = 0;
    for (uint32_t layer = 0; layer < model.layers; ++layer) {
      before[layer] = SimModel::kv(layer, before[layer], token, i);
      const uint64_t weight = SimModel::weigh(before[layer], layer, i);
      latest += weight;
      if (model.windowed(layer)) windowed += weight;
    }
    all = model.reads == Reads::kAll ? all + latest : latest;
    seen.push_back(windowed);
    if (model.window > 0 && i >= model.window) all -= seen[i - model.window];
    rows += SimModel::row(all);
    if (i + 1 < prompt.size()) {
      token = prompt[i + 1];
      if (params.prompt_logprobs >= 0 && i + 1 >= params.score_from)
        answer.prompt_scores.push_back(model.score(all, token));
      continue;
    }
    const auto outputs = static_cast<uint32_t>(answer.tokens.size());
    if (params.pooling == Pooling::kLast) {
      answer.embedding = {static_cast<float>(SimModel::row(all))};
    } else if (params.pooling == Pooling::kMean) {
      answer.embedding = {static_cast<float>(rows / static_cast<double>(prompt.size()))};
    }
    if (params.max_tokens == 0) {
      answer.reason = FinishReason::kLength;
      return answer;
    }
    answer.tokens.push_back(model.sample(all, params, outputs));
    token = answer.tokens.back().token;
    const bool is_named =
        std::count(params.stop_token_ids.begin(), params.stop_token_ids.end(), token) > 0;
    const bool is_end = token == model.end_token && !params.ignore_eos;
    if (outputs + 1 > params.min_tokens && (is_end || is_named)) {
      answer.stop_token = token;
      return answer;
    }
    if (outputs + 1 == params.max_tokens || prompt.size() + outputs + 1 == context_tokens) {
      answer.reason = FinishReason::kLength;
      return answer;
    }
  }
}

}  // namespace troupe::sim
