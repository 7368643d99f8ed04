#include "apps/node/program.h"

#include <glog/logging.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

namespace troupe {

void init_program(const char* name) {
  google::InitGoogleLogging(name);
  FLAGS_logtostderr = true;
  std::signal(SIGPIPE, SIG_IGN);
  kj::UnixEventPort::captureSignal(SIGTERM);
  kj::UnixEventPort::captureSignal(SIGINT);
}

kj::Promise<void> on_end_signal(kj::UnixEventPort& port) {
  return port.onSignal(SIGTERM).exclusiveJoin(port.onSignal(SIGINT)).then([](siginfo_t&& signal) {
    LOG(INFO) << "signal " << signal.si_signo << " received";
  });
}

kj::Promise<void> on_each_hangup(kj::UnixEventPort& port, std::function<void()> act) {
  return port.onSignal(SIGHUP).then([&port, act = std::move(act)](siginfo_t&&) mutable {
    act();
    return on_each_hangup(port, std::move(act));
  });
}

kj::Promise<void> end_at_once_on_signal(kj::UnixEventPort& port) {
  return on_end_signal(port).then([]() -> kj::Promise<void> {
    LOG(WARNING) << "second signal: ended at once";
    google::FlushLogFiles(google::GLOG_INFO);
    ::_exit(EXIT_FAILURE);
  });
}

void say(std::string_view key, std::string_view value) {
  std::cout << key << ": " << value << std::endl;
}

int exit_code_of(const char* program, const Status& status) {
  if (status.ok()) return EXIT_SUCCESS;
  std::cerr << program << ": " << status.message() << '\n';
  return EXIT_FAILURE;
}

}  // namespace troupe
