#include "engine/kv/block_hash.h"

#include <xxhash.h>

#include <cstring>

#include "base/assert.h"
#include "base/philox.h"

namespace troupe {
namespace {

BlockIdentity from_xxh(XXH128_hash_t hash) {
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace

Xxh3BlockHasher::Xxh3BlockHasher(uint64_t secret_seed) {
  constexpr uint32_t kSecretStream = 0x6b76;  // apart from every other use of the seed
  for (size_t i = 0; i < kSecretBytes; i += sizeof(uint64_t)) {
    const uint64_t word = philox_u64(secret_seed, i, kSecretStream);
    std::memcpy(secret_.data() + i, &word, sizeof(word));
  }
}

BlockIdentity Xxh3BlockHasher::root(std::string_view cache_salt) const {
  return from_xxh(XXH3_128bits_withSecret(cache_salt.data(), cache_salt.size(), secret_.data(),
                                          secret_.size()));
}

BlockIdentity Xxh3BlockHasher::next(const BlockIdentity& parent,
                                    std::span<const TokenId> tokens) const {
  TROUPE_ASSERT(tokens.size() == kBlockTokens, tokens.size());
  struct {
    uint64_t low, high;
    TokenId tokens[kBlockTokens];
  } input;
  static_assert(sizeof(input) == 2 * sizeof(uint64_t) + kBlockTokens * sizeof(TokenId));
  input.low = parent.low;
  input.high = parent.high;
  std::memcpy(input.tokens, tokens.data(), sizeof(input.tokens));
  return from_xxh(XXH3_128bits_withSecret(&input, sizeof(input), secret_.data(), secret_.size()));
}

}  // namespace troupe
