#pragma once
// The identity of a block's content: a chained keyed hash over the salt and all tokens up to and
// including the block's. Equal identities are only a hint; the radix tree compares tokens.

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/ids.h"

namespace troupe {

struct BlockIdentity {
  uint64_t low = 0, high = 0;
  auto operator<=>(const BlockIdentity&) const = default;
};

// Stateless and thread-safe.
class BlockHasher {
 public:
  virtual ~BlockHasher() = default;
  // Where the chain of one salt begins.
  [[nodiscard]] virtual BlockIdentity root(std::string_view cache_salt) const = 0;
  // `tokens` has kBlockTokens elements.
  [[nodiscard]] virtual BlockIdentity next(const BlockIdentity& parent,
                                           std::span<const TokenId> tokens) const = 0;
};

// XXH3 with 128 bits and a secret derived from `secret_seed`: who does not know the seed cannot
// construct two prompts of one identity.
class Xxh3BlockHasher final : public BlockHasher {
 public:
  explicit Xxh3BlockHasher(uint64_t secret_seed);
  [[nodiscard]] BlockIdentity root(std::string_view cache_salt) const override;
  [[nodiscard]] BlockIdentity next(const BlockIdentity& parent,
                                   std::span<const TokenId> tokens) const override;

 private:
  static constexpr size_t kSecretBytes = 192;  // XXH3 wants at least 136
  std::array<unsigned char, kSecretBytes> secret_;
};

}  // namespace troupe
