#pragma once
// What a router believes the workers' prefix caches to hold: the prompts that it had computed
// there, as many of the latest as fit the worker's pool. It knows less than the truth (outputs,
// what other routers sent), and at times more (what the worker evicted for these): a prefix that is
// not there after all is computed, at the cost of time.

#include <cstdint>
#include <list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "engine/kv/block_hash.h"

namespace troupe {

class PrefixIndex {
 public:
  // Identities of a prompt's full blocks, in order.
  using Chain = std::vector<BlockIdentity>;

  // `hasher` must outlive the index.
  explicit PrefixIndex(const BlockHasher& hasher) : hasher_(hasher) {}

  // Of another model, or under another salt, the same prompt has none of these.
  [[nodiscard]] Chain chain_of(std::string_view model, std::string_view cache_salt,
                               std::span<const TokenId> prompt) const;
  // Tokens at the beginning of the chain that the worker is believed to hold.
  [[nodiscard]] uint32_t cached_tokens(WorkerId worker, const Chain& chain) const;
  // The worker has or will have all of the chain; its pool has so many blocks.
  void insert(WorkerId worker, const Chain& chain, uint32_t pool_blocks);
  // The worker is lost, and its cache with it.
  void forget(WorkerId worker) { workers_.erase(worker); }

 private:
  struct HashOfIdentity {
    size_t operator()(const BlockIdentity& identity) const { return identity.low; }
  };
  struct Cache {
    std::list<BlockIdentity> by_use;  // the latest first; of one chain its beginning
    std::unordered_map<BlockIdentity, std::list<BlockIdentity>::iterator, HashOfIdentity> blocks;
  };

  const BlockHasher& hasher_;
  std::unordered_map<WorkerId, Cache> workers_;
};

}  // namespace troupe
