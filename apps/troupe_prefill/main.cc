// troupe-prefill: computes prompts for decode workers.

#include "apps/node/worker_program.h"

int main(int argc, char** argv) {
  return troupe::run_worker_program(troupe::WorkerKind::kPrefill, argc, argv);
}
