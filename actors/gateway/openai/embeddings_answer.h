#pragma once
// POST /v1/embeddings: from the inputs' tokens to the answer.

#include <cstdint>
#include <string>
#include <vector>

#include "actors/gateway/openai/embeddings_request.h"
#include "actors/gateway/openai/prompt_batch.h"
#include "actors/gateway/openai/served_model.h"
#include "actors/gateway/running_answer.h"

namespace troupe {

// Cuts to the first `dimensions` values (0: all) and divides by their Euclidean length, which is
// summed in double precision from the first to the last; a vector of zeros stays as it is.
void finish_embedding(std::vector<float>& values, uint32_t dimensions, bool normalize);

// 32-bit floats, little-endian, in the alphabet of RFC 4648 section 4, padded.
[[nodiscard]] std::string base64_floats(const std::vector<float>& values);

class EmbeddingsAnswer final : public RunningAnswer {
 public:
  // `inputs` are those of encode_inputs(). `generator` and `sink` outlive the answer.
  EmbeddingsAnswer(EmbeddingsBody body, std::vector<std::vector<TokenId>> inputs,
                   const std::string& label, const ServedModel& model, Generator& generator,
                   JsonSink& sink);

  [[nodiscard]] Status start() override { return batch_.start(); }
  void abort(const Status& status) override { batch_.abort(status); }

 private:
  [[nodiscard]] static std::vector<GenerationRequest> make_requests(
      const EmbeddingsBody& body, std::vector<std::vector<TokenId>> inputs,
      const std::string& label, const std::string& digest);
  void finish(std::vector<PromptOutcome> outcomes);

  const EmbeddingsBody body_;
  const std::string model_;
  JsonSink& sink_;
  PromptBatch batch_;  // last: its end may still call the sink
};

}  // namespace troupe
