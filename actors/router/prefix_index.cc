#include "actors/router/prefix_index.h"

#include <algorithm>
#include <string>

#include "base/limits.h"

namespace troupe {

PrefixIndex::Chain PrefixIndex::chain_of(std::string_view model, std::string_view cache_salt,
                                         std::span<const TokenId> prompt) const {
  Chain chain;
  chain.reserve(prompt.size() / kBlockTokens);
  // The length keeps "ab" + "c" apart from "a" + "bc".
  std::string space = std::to_string(model.size()) + ':';
  space.append(model).append(cache_salt);
  BlockIdentity identity = hasher_.root(space);
  for (size_t at = 0; at + kBlockTokens <= prompt.size(); at += kBlockTokens) {
    identity = hasher_.next(identity, prompt.subspan(at, kBlockTokens));
    chain.push_back(identity);
  }
  return chain;
}

uint32_t PrefixIndex::cached_tokens(WorkerId worker, const Chain& chain) const {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return 0;
  const auto& blocks = found->second.blocks;
  // A prefix is never forgotten before what builds on it, so what is held is a beginning of the
  // chain, and its end is found by halving.
  const auto missing =
      std::partition_point(chain.begin(), chain.end(),
                           [&blocks](const auto& identity) { return blocks.contains(identity); });
  return static_cast<uint32_t>(missing - chain.begin()) * kBlockTokens;
}

void PrefixIndex::insert(WorkerId worker, const Chain& chain, uint32_t pool_blocks) {
  Cache& cache = workers_[worker];
  // From its end, so that a prefix is never forgotten before what builds on it.
  for (auto identity = chain.rbegin(); identity != chain.rend(); ++identity) {
    const auto known = cache.blocks.find(*identity);
    if (known != cache.blocks.end()) {
      cache.by_use.splice(cache.by_use.begin(), cache.by_use, known->second);
    } else {
      cache.by_use.push_front(*identity);
      cache.blocks.emplace(*identity, cache.by_use.begin());
    }
  }
  const size_t most = std::min<size_t>(pool_blocks, limits::kIndexedBlocksMax);
  while (cache.by_use.size() > most) {
    cache.blocks.erase(cache.by_use.back());
    cache.by_use.pop_back();
  }
}

}  // namespace troupe
