#pragma once
// `troupe serve --cluster`: a router, prefill and decode workers and a monitor as processes of this
// machine, kept running.

#include "apps/troupe/options.h"

namespace troupe {

// Runs until a signal ends it, or a program ends before it ever was ready. Programs that end later
// are started again. Starts no thread. kUnavailable: the cluster did not come up.
[[nodiscard]] Status serve_cluster(const ServeOptions& options);

}  // namespace troupe
