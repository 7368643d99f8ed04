#include "base/config/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe {
namespace {

constexpr const char* kHowToMake =
    "make one with: (umask 077; head -c 32 /dev/urandom | base64 > cluster.secret)";

struct OpenFile {
  explicit OpenFile(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  const int fd;
};

Status unreadable(const std::string& path) {
  return invalid_argument("secret-file " + path + " cannot be read (" + std::strerror(errno) +
                          "); name a file that this user may read, or " + kHowToMake);
}

Result<std::string> read_file(const std::string& path) {
  const OpenFile file(path);
  struct stat facts {};
  if (file.fd < 0 || fstat(file.fd, &facts) != 0) return unreadable(path);
  if ((facts.st_mode & S_IRWXO) != 0) {
    return invalid_argument("secret-file " + path +
                            " may be used by every user of this machine; run: chmod 600 " + path);
  }
  std::string bytes(kSecretBytesMax + 2, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = read(file.fd, bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return unreadable(path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

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
    TROUPE_ASSIGN_OR_RETURN(secret, read_file(options.file));
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
