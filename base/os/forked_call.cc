#include "base/os/forked_call.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kPoll{1};

[[noreturn]] void be_the_copy(const std::function<int()>& call) {
  // It dies quietly: neither a report of this program's handlers nor a core file.
  for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) std::signal(number, SIG_DFL);
  const rlimit none{0, 0};
  static_cast<void>(::setrlimit(RLIMIT_CORE, &none));
  ::_exit(call() & 0x7F);
}

}  // namespace

std::optional<int> call_in_fork(const std::function<int()>& call, Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child == 0) be_the_copy(call);
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return std::nullopt;
    if (std::chrono::steady_clock::now() > deadline) {
      ::kill(child, SIGKILL);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return std::nullopt;
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (!WIFEXITED(status)) return std::nullopt;
  return WEXITSTATUS(status);
}

}  // namespace troupe
