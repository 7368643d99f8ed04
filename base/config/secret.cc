#include "base/config/secret.h"

#include "base/config/private_file.h"

namespace troupe {
namespace {

// Of the file, which may end in blank lines and is told its own limit by read_secret().
constexpr size_t kSecretFileBytesMax = 2 * kSecretBytesMax;
constexpr const char* kHowToMake =
    "make one with: (umask 077; head -c 32 /dev/urandom | base64 > cluster.secret)";

}  // namespace

void add_secret_settings(Settings& settings, SecretOptions& options) {
  settings.add(
      {.name = "secret-file", .help = "File with the cluster's secret, not readable by every user"},
      &options.file);
  settings.add({.name = "secret", .help = "The cluster's secret itself", .secret = true},
               &options.value);
}

Result<std::string> read_secret(const SecretOptions& options) {
  if (!options.file.empty() && !options.value.empty()) {
    return invalid_argument(
        "secret-file and the variable TROUPE_SECRET are both set; unset one of them");
  }
  if (options.file.empty() && options.value.empty()) {
    return invalid_argument(std::string("a node needs the cluster's secret: give --secret-file "
                                        "FILE or the variable TROUPE_SECRET; ") +
                            kHowToMake);
  }
  std::string secret = options.value;
  const std::string source =
      options.file.empty() ? "the variable TROUPE_SECRET" : "secret-file " + options.file;
  if (!options.file.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        secret,
        read_private_file(options.file, "secret-file", kSecretFileBytesMax,
                          std::string("name a file that this user may read, or ") + kHowToMake));
  }
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  if (secret.empty()) return invalid_argument(source + " is empty; " + kHowToMake);
  if (secret.size() < kSecretBytesMin || secret.size() > kSecretBytesMax) {
    return invalid_argument(
        source + " has " + (secret.size() < kSecretBytesMin ? "fewer than " : "more than ") +
        std::to_string(secret.size() < kSecretBytesMin ? kSecretBytesMin : kSecretBytesMax) +
        " bytes; " + kHowToMake);
  }
  return secret;
}

}  // namespace troupe
