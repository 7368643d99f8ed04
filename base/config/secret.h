#pragma once
// The cluster's secret: what a node must know to take part.

#include <string>

#include "base/config/settings.h"
#include "troupe/status.h"

namespace troupe {

// Of a secret: shorter ones can be guessed, and nobody types longer ones.
inline constexpr size_t kSecretBytesMin = 16;
inline constexpr size_t kSecretBytesMax = 4096;

struct SecretOptions {
  std::string file;   // --secret-file
  std::string value;  // TROUPE_SECRET
};

// Declares secret-file, and the variable TROUPE_SECRET.
void add_secret_settings(Settings& settings, SecretOptions& options);

// The secret without white space at its end. kInvalidArgument: both or neither are set, the file
// cannot be read, may be read by others than its owner and group, or the secret is too short or
// too long. No message contains any of the secret.
[[nodiscard]] Result<std::string> read_secret(const SecretOptions& options);

}  // namespace troupe
