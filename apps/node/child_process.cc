#include "apps/node/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/assert.h"

namespace troupe {
namespace {

Status system_error(const std::string& what) {
  return {StatusCode::kResourceExhausted,
          what + " failed: " + std::generic_category().message(errno) +
              "; raise the limits of processes and open files (ulimit -u, ulimit -n)"};
}

struct Pipe {
  int read = -1, write = -1;

  [[nodiscard]] Status open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("a pipe to a child");
    read = ends[0];
    write = ends[1];
    return ok_status();
  }
  void close_both() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec only async-signal-safe calls are allowed.
[[noreturn]] void become(pid_t parent, int out, int err, char* const* arguments,
                         char* const* environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(ChildProcess::kExecFailed);  // it died before the line above
  ::setpgid(0, 0);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  constexpr std::string_view kSorry = "the program cannot be executed; is the build complete?\n";
  static_cast<void>(!::write(STDERR_FILENO, kSorry.data(), kSorry.size()));
  ::_exit(ChildProcess::kExecFailed);
}

}  // namespace

void LineCutter::add(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t room = kChildLineBytesMax - partial_.size();
    if (end != std::string_view::npos && end <= room) {
      partial_ += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
    } else {
      const size_t part = std::min(room, bytes.size());
      partial_ += bytes.substr(0, part);
      bytes.remove_prefix(part);
      if (partial_.size() < kChildLineBytesMax) return;
    }
    take(partial_);
    partial_.clear();
  }
}

void LineCutter::end(const Take& take) {
  if (!partial_.empty()) take(partial_);
  partial_.clear();
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ChildCommand& command) {
  TROUPE_ASSERT(!command.arguments.empty(), command.arguments.size());
  Pipe out;
  Pipe err;
  TROUPE_RETURN_IF_ERROR(out.open());
  if (const Status status = err.open(); !status.ok()) {
    out.close_both();
    return status;
  }
  const std::vector<char*> arguments = pointers_to(command.arguments);
  const std::vector<char*> environment = pointers_to(command.environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(parent, out.write, err.write, arguments.data(), environment.data());
  if (pid < 0) {
    const Status status = system_error("starting " + command.arguments[0]);
    out.close_both();
    err.close_both();
    return status;
  }
  ::setpgid(pid, pid);  // here as well: whichever of the two is first
  ::close(out.write);
  ::close(err.write);
  for (const int descriptor : {out.read, err.read}) ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(pid, out.read, err.read));  // private constructor
}

ChildProcess::~ChildProcess() {
  if (!ending_) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (const int descriptor : pipes_)
    if (descriptor >= 0) ::close(descriptor);
}

void ChildProcess::send_signal(int number) {
  // Not reaped, so that the number is still this child's.
  if (!ending_) ::kill(pid_, number);
}

void ChildProcess::read_lines(Stream stream, const LineCutter::Take& take) {
  int& descriptor = pipes_[stream];
  if (descriptor < 0) return;
  std::array<char, 16384> buffer;
  // A child that prints without end must not keep us from the others: one buffer a call.
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  if (got > 0) return cutters_[stream].add({buffer.data(), static_cast<size_t>(got)}, take);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  cutters_[stream].end(take);
  ::close(descriptor);
  descriptor = -1;
}

std::optional<std::string> ChildProcess::ending() {
  if (ending_) return ending_;
  int status = 0;
  const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
  if (reaped != pid_) return std::nullopt;
  if (WIFSIGNALED(status)) {
    ending_ = "was killed by signal " + std::to_string(WTERMSIG(status));
  } else {
    ending_ = "ended with " + std::to_string(WEXITSTATUS(status));
  }
  return ending_;
}

}  // namespace troupe
