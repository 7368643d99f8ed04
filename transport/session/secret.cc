#include "transport/session/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "transport/session/bytes.h"
#include "transport/session/limits.h"

namespace troupe {

Result<Secret> Secret::create(std::string_view bytes) {
  if (bytes.size() < limits::kSecretBytesMin || bytes.size() > limits::kSecretBytesMax) {
    return invalid_argument("the cluster secret has " + std::to_string(bytes.size()) +
                            " bytes; it must have between " +
                            std::to_string(limits::kSecretBytesMin) + " and " +
                            std::to_string(limits::kSecretBytesMax));
  }
  return Secret(bytes);
}

Secret::~Secret() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

Mac Secret::mac(std::initializer_list<std::string_view> parts) const {
  ByteWriter input;
  for (const std::string_view part : parts) {
    input.u64(part.size());
    input.raw(part);
  }
  const std::string text = input.take();
  Mac out{};
  unsigned int size = 0;
  const auto* result =
      HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &size);
  TROUPE_ASSERT(result != nullptr && size == out.size(), size);
  return out;
}

bool same_mac(const Mac& mac, std::string_view received) {
  return received.size() == mac.size() &&
         CRYPTO_memcmp(mac.data(), received.data(), mac.size()) == 0;
}

}  // namespace troupe
