#pragma once
// What all nodes of a cluster know and nobody else. It is never sent and never printed.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

using Mac = std::array<unsigned char, 32>;

// Value type; wiped when destroyed.
class Secret final {
 public:
  // kInvalidArgument: shorter than limits::kSecretBytesMin or longer than kSecretBytesMax.
  [[nodiscard]] static Result<Secret> create(std::string_view bytes);
  ~Secret();
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;

  // HMAC-SHA256 over `parts` one after the other; each part's length goes in as well, so that no
  // two lists of parts give the same input.
  [[nodiscard]] Mac mac(std::initializer_list<std::string_view> parts) const;

 private:
  explicit Secret(std::string_view bytes) : bytes_(bytes) {}
  std::string bytes_;
};

// Takes as long for any two.
[[nodiscard]] bool same_mac(const Mac& mac, std::string_view received);

[[nodiscard]] inline std::string_view bytes_of(const Mac& mac) {
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

}  // namespace troupe
