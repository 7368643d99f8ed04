#include "actors/gateway/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace troupe {

ApiKeys::Digest ApiKeys::digest_of(std::string_view text) {
  Digest out{};
  static_assert(SHA256_DIGEST_LENGTH == sizeof(Digest));
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

void ApiKeys::replace(const std::vector<std::string>& keys) {
  digests_.clear();
  for (const std::string& key : keys) digests_.push_back(digest_of(key));
}

bool ApiKeys::accepts(std::string_view key) const {
  const Digest given = digest_of(key);
  bool found = false;
  // All of them, so that the time does not tell which one it was.
  for (const Digest& digest : digests_) {
    found = (CRYPTO_memcmp(digest.data(), given.data(), digest.size()) == 0) || found;
  }
  return found;
}

}  // namespace troupe
