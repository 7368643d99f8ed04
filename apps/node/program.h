#pragma once
// What every program of the cluster does alike: logging, signals, lines about itself.

#include <kj/async-unix.h>

#include <functional>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

// To be called first in main(): logs go to standard error, a closed pipe ends nothing, and SIGTERM
// and SIGINT are kept for on_end_signal() on all threads.
void init_program(const char* name);

// Resolves when SIGTERM or SIGINT comes.
[[nodiscard]] kj::Promise<void> on_end_signal(kj::UnixEventPort& port);
// Calls `act` each time that SIGHUP comes, which must be captured before any thread starts.
// Resolves never.
[[nodiscard]] kj::Promise<void> on_each_hangup(kj::UnixEventPort& port, std::function<void()> act);
// Ends the process when the next such signal comes: for the time in which it ends in order.
// Resolves never.
[[nodiscard]] kj::Promise<void> end_at_once_on_signal(kj::UnixEventPort& port);

// One line "<key>: <value>" on standard output, at once; the keys stand in supervisor.h.
void say(std::string_view key, std::string_view value);

// Prints "<program>: <message>" on standard error unless the status is ok; the exit code.
[[nodiscard]] int exit_code_of(const char* program, const Status& status);

}  // namespace troupe
