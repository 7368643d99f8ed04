#pragma once
// The keys that clients must know, as an operator gives them: by flag, variable or file.

#include <string>
#include <vector>

#include "base/config/settings.h"
#include "troupe/status.h"

namespace troupe {

inline constexpr size_t kApiKeyBytesMin = 8;
inline constexpr size_t kApiKeyBytesMax = 512;
inline constexpr size_t kApiKeysMax = 1024;
// Of the file; a larger one is refused.
inline constexpr size_t kApiKeyFileBytesMax = size_t{1} << 20;

struct ApiKeyOptions {
  std::vector<std::string> keys;  // from --api-key or TROUPE_API_KEY
  std::string file;               // one key a line; "#" begins a comment line
};

void add_api_key_settings(Settings& settings, ApiKeyOptions& options);

// All keys; none: clients need no key. May be called again when the file has changed. No message
// quotes a key. kInvalidArgument: a key or the file breaks a rule, the file cannot be read, may be
// read by every user, or has no key.
[[nodiscard]] Result<std::vector<std::string>> read_api_keys(const ApiKeyOptions& options);

}  // namespace troupe
