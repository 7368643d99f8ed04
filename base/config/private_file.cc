#include "base/config/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe {
namespace {

struct OpenFile {
  explicit OpenFile(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  const int fd;
};

}  // namespace

Result<std::string> read_private_file(const std::string& path, const std::string& setting,
                                      size_t bytes_max, const std::string& hint) {
  const std::string subject = setting + " " + path;
  const auto unreadable = [&]() -> Status {
    return invalid_argument(subject + " cannot be read (" + std::strerror(errno) + "); " + hint);
  };
  const OpenFile file(path);
  struct stat facts {};
  if (file.fd < 0 || fstat(file.fd, &facts) != 0) return unreadable();
  if ((facts.st_mode & S_IRWXO) != 0) {
    return invalid_argument(subject +
                            " may be used by every user of this machine; run: chmod 600 " + path);
  }
  std::string bytes(bytes_max + 1, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = read(file.fd, bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return unreadable();
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  if (filled > bytes_max) {
    return invalid_argument(subject + " has more than " + std::to_string(bytes_max) + " bytes");
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace troupe
