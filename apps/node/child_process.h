#pragma once
// A program that runs as our child, with what it prints in lines. It never outlives us: the kernel
// kills it when we die, however that happens.

#include <sys/types.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/status.h"

namespace troupe {

struct ChildCommand {
  std::vector<std::string> arguments;    // the first is the program's path
  std::vector<std::string> environment;  // "NAME=value"; the child's whole environment
};

// Lines of a child longer than this are handed on in pieces.
inline constexpr size_t kChildLineBytesMax = size_t{16} << 10;

// Cuts a stream of bytes into lines.
class LineCutter {
 public:
  using Take = std::function<void(std::string_view line)>;
  void add(std::string_view bytes, const Take& take);
  // The stream has ended: what is left is a line, too.
  void end(const Take& take);

 private:
  std::string partial_;
};

// Single-threaded; its methods are called on the thread that started it, which must live as long:
// the kernel takes that thread's end for the parent's.
class ChildProcess final {
 public:
  enum Stream { kOut, kErr };

  // The child gets a process group of its own, so that a terminal's Ctrl-C reaches us alone, no
  // standard input, and default signal handling. kResourceExhausted: the system refuses to fork.
  // A program that cannot be executed ends with kExecFailed.
  [[nodiscard]] static Result<std::unique_ptr<ChildProcess>> start(const ChildCommand& command);
  static constexpr int kExecFailed = 127;

  // Kills and waits, if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running() const { return !ending_; }
  // Harmless when it has ended.
  void send_signal(int number);
  // The descriptor to poll for reading; -1 once it is closed.
  [[nodiscard]] int descriptor(Stream stream) const { return pipes_[stream]; }
  // Non-blocking: hands on the lines that are there.
  void read_lines(Stream stream, const LineCutter::Take& take);
  // Non-blocking: once it has ended, how: "ended with 1", "was killed by signal 9". Keeps saying
  // so.
  [[nodiscard]] std::optional<std::string> ending();

 private:
  ChildProcess(pid_t pid, int out, int err) : pid_(pid), pipes_{out, err} {}

  pid_t pid_;
  std::array<int, 2> pipes_;
  std::array<LineCutter, 2> cutters_;
  std::optional<std::string> ending_;
};

}  // namespace troupe
