#pragma once
// Broken and hostile GGUF files, each with what the error must say: the cases of the unit test, and
// the seeds of the fuzzer's corpus.

#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "troupe/status.h"

namespace troupe::test {

struct GgufMutation {
  std::string name;  // fit for a file name
  std::string bytes;
  StatusCode code = StatusCode::kDataLoss;
  std::string message_part;  // that the error must contain: the input and the rule
};

// A sound model of one layer, as small as they come (about 3 KB); every mutation starts from it.
[[nodiscard]] GgufWriter smallest_model_writer(const std::string& architecture = "llama");

[[nodiscard]] std::vector<GgufMutation> gguf_mutations();

// Sound files of different shapes, for the corpus: versions, types, alignments, untied output.
[[nodiscard]] std::vector<GgufMutation> sound_gguf_files();

}  // namespace troupe::test
