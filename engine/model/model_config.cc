#include "engine/model/model_config.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "base/assert.h"
#include "engine/model/architectures/architecture.h"
#include "engine/model/config_reader.h"
#include "engine/model/printable.h"
#include "engine/model/tensor_binder.h"

namespace troupe {
namespace {

// Keys that change the arithmetic of a file when they differ from the neutral value.
struct NeutralKey {
  std::string_view suffix;
  double neutral;
};
constexpr NeutralKey kNeutralKeys[] = {
    {"expert_count", 0},
    {"logit_scale", 1},
    {"residual_scale", 1},
    {"embedding_scale", 1},
    {"attention.clamp_kqv", 0},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"attention.max_alibi_bias", 0},
};

void check_neutral_keys(ConfigReader& reader) {
  const GgufFile& file = reader.file();
  for (const NeutralKey& key : kNeutralKeys) {
    const GgufValue* value = file.find_value(reader.key(key.suffix));
    if (value == nullptr) continue;
    const std::optional<int64_t> integer = integer_at(value->type, value->payload.data());
    const Result<float> real = file.get_f32(value->key);
    const bool neutral = integer ? static_cast<double>(*integer) == key.neutral
                                 : real.ok() && static_cast<double>(real.value()) == key.neutral;
    if (!neutral) {
      reader.unsupported(key.suffix, "asks for an operation that the " + reader.architecture() +
                                         " architecture of this build does not have");
    }
  }
}

void read_shape(ConfigReader& reader, ModelConfig& config) {
  config.layers = reader.number("block_count", ModelLimits::kLayersMax);
  config.context_length = reader.number("context_length", ModelLimits::kContextMax);
  config.width = reader.number("embedding_length", ModelLimits::kWidthMax);
  config.ffn_width = reader.number("feed_forward_length", ModelLimits::kWidthMax);
  config.heads = reader.number("attention.head_count", ModelLimits::kHeadsMax);
  config.kv_heads =
      reader.number_or("attention.head_count_kv", config.heads, ModelLimits::kHeadsMax);
  if (!reader.status().ok()) return;
  if (config.heads % config.kv_heads != 0) {
    return reader.corrupt("attention.head_count",
                          "is " + std::to_string(config.heads) +
                              ", not a multiple of attention.head_count_kv " +
                              std::to_string(config.kv_heads));
  }
  if (!reader.has("attention.key_length") && config.width % config.heads != 0) {
    return reader.corrupt("embedding_length", "is " + std::to_string(config.width) +
                                                  ", not a multiple of attention.head_count " +
                                                  std::to_string(config.heads));
  }
  config.head_size = reader.number_or("attention.key_length", config.width / config.heads,
                                      ModelLimits::kHeadSizeMax);
  const uint32_t value_length =
      reader.number_or("attention.value_length", config.head_size, ModelLimits::kHeadSizeMax);
  if (!reader.status().ok()) return;
  if (value_length != config.head_size) {
    return reader.unsupported("attention.value_length", "is " + std::to_string(value_length) +
                                                            " and differs from the key length " +
                                                            std::to_string(config.head_size));
  }
  if (uint64_t{config.heads} * config.head_size > ModelLimits::kWidthMax) {
    return reader.corrupt("attention.head_count", "is " + std::to_string(config.heads) +
                                                      "; with heads of " +
                                                      std::to_string(config.head_size) +
                                                      " the width exceeds the limit of " +
                                                      std::to_string(ModelLimits::kWidthMax));
  }
  config.attention_scale = 1.0F / std::sqrt(static_cast<float>(config.head_size));
}

// The frequencies of Llama 3.1 and later as factors that divide them: long wavelengths are
// stretched by `factor`, short ones stay, those between are interpolated. The formula is Meta's
// (llama-models, apply_scaling), as `transformers` has it under rope type "llama3".
void read_llama3_scaling(ConfigReader& reader, ModelConfig& config) {
  const float factor = reader.factor_or("rope.scaling.factor", 8.0F);
  const float low = reader.factor_or("rope.scaling.low_freq_factor", 1.0F);
  const float high = reader.factor_or("rope.scaling.high_freq_factor", 4.0F);
  const double original =
      reader.number_or("rope.scaling.original_context_length", 8192, ModelLimits::kContextMax);
  if (!reader.status().ok()) return;
  if (high <= low) {
    return reader.corrupt("rope.scaling.high_freq_factor", "must be above low_freq_factor");
  }
  const double long_wave = original / low;
  const double short_wave = original / high;
  for (uint32_t i = 0; i < config.rope_dims / 2; ++i) {
    const double frequency = std::pow(double{config.rope_freq_base}, -2.0 * i / config.rope_dims);
    const double wave = 2.0 * std::numbers::pi / frequency;
    double divisor = 1.0;
    if (wave > long_wave) {
      divisor = factor;
    } else if (wave > short_wave) {
      const double smooth = (original / wave - low) / (double{high} - low);
      divisor = 1.0 / ((1.0 - smooth) / factor + smooth);
    }
    config.rope_factors.push_back(static_cast<float>(divisor));
  }
}

void read_rope(ConfigReader& reader, ModelConfig& config) {
  const GgufFile& file = reader.file();
  config.rope_dims =
      reader.number_or("rope.dimension_count", config.head_size, ModelLimits::kHeadSizeMax);
  if (!reader.status().ok()) return;
  if (config.rope_dims % 2 != 0 || config.rope_dims > config.head_size) {
    return reader.corrupt("rope.dimension_count",
                          "is " + std::to_string(config.rope_dims) +
                              "; it must be even and at most the head size " +
                              std::to_string(config.head_size));
  }
  config.rope_freq_base =
      reader.in_range_or("rope.freq_base", 10'000.0F, 1.0F, ModelLimits::kRopeBaseMax);
  const Result<std::string_view> type =
      file.get_string_or(reader.key("rope.scaling.type"), "unspecified");
  if (!type.ok()) return reader.fail(type.status());
  // Files from before rope.scaling.* have rope.scale_linear alone.
  const bool old_linear = type.value() == "unspecified" && reader.has("rope.scale_linear");
  if (type.value() == "linear" || old_linear) {
    config.rope_linear_scale =
        1.0F / reader.factor_or(old_linear ? "rope.scale_linear" : "rope.scaling.factor", 1.0F);
  } else if (type.value() == "llama3") {
    if (file.find_tensor("rope_freqs.weight") == nullptr) read_llama3_scaling(reader, config);
  } else if (type.value() != "none" && type.value() != "unspecified") {
    reader.unsupported("rope.scaling.type",
                       "is " + quoted(type.value()) + "; none, linear and llama3 are supported");
  }
}

// The vocabulary is as long as the embedding table; every other claim about it must agree.
void read_vocab(ConfigReader& reader, ModelConfig& config) {
  const GgufFile& file = reader.file();
  const GgufTensor* table = file.find_tensor("token_embd.weight");
  if (table == nullptr) return reader.fail(missing_tensor(file, "token_embd.weight"));
  if (table->rank != 2 || table->dims[1] > ModelLimits::kVocabMax) {
    return reader.fail({StatusCode::kDataLoss,
                        file.name() + ": tensor 'token_embd.weight' has the shape " +
                            shape_text(*table) + "; it must be [width, vocabulary] with at most " +
                            std::to_string(ModelLimits::kVocabMax) + " tokens. " + kConvertAgain});
  }
  config.vocab = static_cast<uint32_t>(table->dims[1]);
  const uint32_t stated = reader.number_or("vocab_size", config.vocab, ModelLimits::kVocabMax);
  if (reader.status().ok() && stated != config.vocab) {
    return reader.corrupt("vocab_size", "is " + std::to_string(stated) +
                                            " but token_embd.weight has " +
                                            std::to_string(config.vocab) + " rows");
  }
  const GgufValue* tokens = file.find_value("tokenizer.ggml.tokens");
  if (tokens != nullptr && tokens->count != config.vocab) {
    reader.fail({StatusCode::kDataLoss,
                 file.name() + ": metadata key 'tokenizer.ggml.tokens' has " +
                     std::to_string(tokens->count) + " tokens but token_embd.weight has " +
                     std::to_string(config.vocab) + " rows. " + kConvertAgain});
  }
}

// rope_freqs.weight: the factors of Llama 3, ready made by the converter.
Status read_rope_factors(const GgufFile& file, ModelConfig& config) {
  const GgufTensor* tensor = file.find_tensor("rope_freqs.weight");
  if (tensor == nullptr) return {};
  const auto bad = [&](const std::string& what) {
    return Status(StatusCode::kDataLoss,
                  file.name() + ": tensor 'rope_freqs.weight' " + what + ". " + kConvertAgain);
  };
  if (tensor->type != WeightType::kF32 || tensor->rank != 1 ||
      tensor->dims[0] != config.rope_dims / 2) {
    return bad("is " + std::string(traits_of(tensor->type).name) + " " + shape_text(*tensor) +
               "; it must be F32 [" + std::to_string(config.rope_dims / 2) + "]");
  }
  config.rope_factors.resize(tensor->dims[0]);
  std::memcpy(config.rope_factors.data(), tensor->data, tensor->bytes);
  for (const float factor : config.rope_factors) {
    if (!(factor >= ModelLimits::kRopeFactorMin && factor <= ModelLimits::kRopeFactorMax)) {
      return bad("holds " + std::to_string(factor) + "; factors are from " +
                 std::to_string(ModelLimits::kRopeFactorMin) + " to " +
                 std::to_string(ModelLimits::kRopeFactorMax));
    }
  }
  return {};
}

Result<const Architecture*> architecture_of(const GgufFile& file) {
  TROUPE_ASSIGN_OR_RETURN(const std::string_view name, file.get_string("general.architecture"));
  if (const Architecture* found = find_architecture(name); found != nullptr) return found;
  std::string known;
  for (const Architecture& one : architectures())
    known +=
        (known.empty() ? "" : ", ") + std::string(one.name) + " (" + std::string(one.models) + ")";
  return Status(StatusCode::kUnsupported, file.name() + ": the model's architecture is " +
                                              quoted(name) + "; this build serves: " + known +
                                              ". Use a model of one of these architectures.");
}

Result<ModelTensors> bind_tensors(const GgufFile& file, const Architecture& architecture,
                                  const ModelConfig& config) {
  TensorBinder binder(file, architecture.name);
  ModelTensors tensors;
  tensors.token_embd = binder.matrix("token_embd.weight", config.width, config.vocab);
  tensors.output_norm = binder.vector("output_norm.weight", config.width);
  tensors.output = config.tied_output ? tensors.token_embd
                                      : binder.matrix("output.weight", config.width, config.vocab);
  for (uint32_t layer = 0; layer < config.layers && binder.status().ok(); ++layer)
    tensors.layers.push_back(architecture.bind_layer(binder, config, layer));
  TROUPE_RETURN_IF_ERROR(binder.status());
  binder.ignore("rope_freqs.weight");  // read_rope_factors() has read it
  TROUPE_RETURN_IF_ERROR(binder.check_all_used());
  return tensors;
}

}  // namespace

Result<ModelDescription> read_model(const GgufFile& file) {
  if (!file.has_data()) {
    return Status{StatusCode::kUnsupported,
                  file.name() +
                      ": this is the header of a model file, without the tensors' data; "
                      "open the whole file"};
  }
  TROUPE_ASSIGN_OR_RETURN(const Architecture* architecture, architecture_of(file));
  ModelDescription model;
  ModelConfig& config = model.config;
  config.architecture = architecture->name;
  TROUPE_ASSIGN_OR_RETURN(const std::string_view name, file.get_string_or("general.name", ""));
  config.name = name;
  ConfigReader reader(file, config.architecture);
  read_shape(reader, config);
  if (reader.status().ok()) read_rope(reader, config);
  if (!reader.has("attention.layer_norm_rms_epsilon"))
    reader.corrupt("attention.layer_norm_rms_epsilon", "is missing");
  config.rms_epsilon = reader.positive_or("attention.layer_norm_rms_epsilon", 1e-5F);
  check_neutral_keys(reader);
  read_vocab(reader, config);
  if (reader.status().ok()) architecture->read(reader, config);
  TROUPE_RETURN_IF_ERROR(reader.status());
  TROUPE_RETURN_IF_ERROR(read_rope_factors(file, config));
  config.tied_output = file.find_tensor("output.weight") == nullptr;
  TROUPE_ASSIGN_OR_RETURN(model.tensors, bind_tensors(file, *architecture, config));
  TROUPE_ASSERT(config.rope_factors.empty() || config.rope_factors.size() == config.rope_dims / 2,
                config.rope_dims);
  TROUPE_ASSERT(model.tensors.layers.size() == config.layers, config.layers);
  return model;
}

MemoryEstimate estimate_memory(const GgufFile& file, const ModelConfig& config, KvType kv_type) {
  MemoryEstimate estimate;
  for (const GgufTensor& tensor : file.tensors()) estimate.weight_bytes += tensor.bytes;
  estimate.kv_bytes_per_block =
      config.layers * kv_block_bytes(kv_type, config.kv_heads, config.head_size);
  estimate.kv_bytes_per_token = estimate.kv_bytes_per_block / kBlockTokens;
  return estimate;
}

}  // namespace troupe
