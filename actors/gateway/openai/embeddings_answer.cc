#include "actors/gateway/openai/embeddings_answer.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "actors/gateway/text/escape.h"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "base64_floats() copies the bytes");

std::string float_list(const std::vector<float>& values) {
  std::string out = "[";
  for (const float value : values) {
    if (out.size() > 1) out += ',';
    append_json_number(out, value);
  }
  return out + ']';
}

}  // namespace

void finish_embedding(std::vector<float>& values, uint32_t dimensions, bool normalize) {
  if (dimensions > 0 && dimensions < values.size()) values.resize(dimensions);
  if (!normalize) return;
  double squares = 0.0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  const double length = std::sqrt(squares);
  if (length == 0.0) return;
  for (float& value : values) value = static_cast<float>(value / length);
}

std::string base64_floats(const std::vector<float>& values) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kAlphabet[group >> (18 - 6 * k) & 63];
    }
  }
  return out;
}

EmbeddingsAnswer::EmbeddingsAnswer(EmbeddingsBody body, std::vector<std::vector<TokenId>> inputs,
                                   const std::string& label, const ServedModel& model,
                                   Generator& generator, JsonSink& sink)
    : body_(std::move(body)),
      model_(model.name),
      sink_(sink),
      batch_(make_requests(body_, std::move(inputs), label, model.digest), generator,
             [this](Result<std::vector<PromptOutcome>> outcomes, size_t failed) {
               if (outcomes.ok()) return finish(std::move(outcomes).value());
               const Status& status = outcomes.status();
               if (body_.one_input) return sink_.on_error(status);
               const std::string path = "input[" + std::to_string(failed) + "]";
               sink_.on_error({status.code(), path + ": " + status.message(), path});
             }) {}

std::vector<GenerationRequest> EmbeddingsAnswer::make_requests(
    const EmbeddingsBody& body, std::vector<std::vector<TokenId>> inputs, const std::string& label,
    const std::string& digest) {
  std::vector<GenerationRequest> requests;
  requests.reserve(inputs.size());
  for (std::vector<TokenId>& tokens : inputs) {
    GenerationRequest& request = requests.emplace_back();
    request.label = label;
    request.prompt = std::move(tokens);
    request.cache_salt = body.cache_salt;
    request.model = digest;
    request.choices.emplace_back().pooling = body.pooling;
  }
  return requests;
}

void EmbeddingsAnswer::finish(std::vector<PromptOutcome> outcomes) {
  std::string data;
  uint64_t tokens = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    std::vector<float>& values = outcomes[i].embedding;
    if (values.empty()) {
      return sink_.on_error({StatusCode::kInternal, "the worker gave no vector for an input"});
    }
    tokens += outcomes[i].usage.prompt_tokens;
    finish_embedding(values, body_.dimensions.value_or(0), body_.normalize);
    if (i > 0) data += ',';
    data += R"({"object":"embedding","index":)" + std::to_string(i) + ",\"embedding\":";
    data += body_.base64 ? '"' + base64_floats(values) + '"' : float_list(values);
    data += '}';
  }
  std::string out = R"({"object":"list","data":[)" + data + "],\"model\":";
  append_json_string(out, model_);
  const std::string count = std::to_string(tokens);
  out += ",\"usage\":{\"prompt_tokens\":" + count + ",\"total_tokens\":" + count + "}}";
  sink_.on_end(std::move(out));
}

}  // namespace troupe
