#pragma once
// The program of a worker: troupe-prefill and troupe-decode differ in their roles alone.

namespace troupe {

enum class WorkerKind { kPrefill, kDecode };

// The whole of main(): settings, model, node, actors, until a signal ends it. The exit code.
int run_worker_program(WorkerKind kind, int argc, char** argv);

}  // namespace troupe
