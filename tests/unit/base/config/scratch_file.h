#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/assert.h"

namespace troupe {

// A file that lives as long as this object.
class ScratchFile final {
 public:
  explicit ScratchFile(const std::string& text, mode_t mode = 0600) {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-config-XXXXXX").string();
    const int fd = mkstemp(name.data());
    TROUPE_ASSERT(fd >= 0, name);
    close(fd);
    path_ = name;
    std::ofstream(path_, std::ios::binary) << text;
    TROUPE_ASSERT(chmod(path_.c_str(), mode) == 0, path_);
  }
  ~ScratchFile() { std::filesystem::remove(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace troupe
