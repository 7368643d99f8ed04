#pragma once
#include <string>

namespace troupe {

struct TopOptions {
  std::string url = "http://127.0.0.1:8000";  // of a router or a monitor
  bool once = false;                          // print one picture and end
};

// `troupe top`: the cluster in the terminal, drawn anew every second until a signal; once where
// standard output is no terminal. The exit code: 1 if the one picture could not be had.
int run_top(const TopOptions& options);

}  // namespace troupe
