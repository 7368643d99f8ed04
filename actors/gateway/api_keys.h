#pragma once
// The keys that clients of the front ends must know.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// Keeps no key, only SHA-256 of each. Loop thread only.
class ApiKeys final {
 public:
  ApiKeys() = default;
  explicit ApiKeys(const std::vector<std::string>& keys) { replace(keys); }

  // From now on these; connections that are open are asked anew with their next request.
  void replace(const std::vector<std::string>& keys);
  // Whether clients need a key at all.
  [[nodiscard]] bool required() const { return !digests_.empty(); }
  // Takes the same time for every text of one length, whatever keys there are.
  [[nodiscard]] bool accepts(std::string_view key) const;

 private:
  using Digest = std::array<uint8_t, 32>;
  [[nodiscard]] static Digest digest_of(std::string_view text);

  std::vector<Digest> digests_;
};

}  // namespace troupe
