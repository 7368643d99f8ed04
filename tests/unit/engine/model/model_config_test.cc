#include "engine/model/model_config.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <numbers>
#include <string>

#include "kernels/reference/float16.h"
#include "tests/support/gguf_writer.h"

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(model_config)

namespace {

struct Loaded {
  std::string bytes;
  std::unique_ptr<GgufFile> file;
  ModelDescription model;
};

Loaded load(const GgufWriter& writer) {
  Loaded loaded{writer.finish(), nullptr, {}};
  auto file = GgufFile::from_bytes(std::as_bytes(std::span<const char>(loaded.bytes)), "tiny.gguf");
  BOOST_REQUIRE_MESSAGE(file.ok(), file.status().message());
  loaded.file = std::move(file).value();
  auto model = read_model(*loaded.file);
  BOOST_REQUIRE_MESSAGE(model.ok(), model.status().message());
  loaded.model = std::move(model).value();
  return loaded;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_numbers_of_a_model_are_those_of_its_file) {
  TinyModelOptions options;
  options.layers = 3;
  options.rope_freq_base = 500'000.0F;
  const Loaded loaded = load(tiny_model_writer(options));
  const ModelConfig& config = loaded.model.config;
  BOOST_TEST(config.architecture == "llama");
  BOOST_TEST(config.name == "tiny random llama");
  BOOST_TEST(config.layers == 3U);
  BOOST_TEST(config.context_length == 256U);
  BOOST_TEST(config.width == 32U);
  BOOST_TEST(config.ffn_width == 64U);
  BOOST_TEST(config.heads == 4U);
  BOOST_TEST(config.kv_heads == 2U);
  BOOST_TEST(config.head_size == 8U);
  BOOST_TEST(config.query_width() == 32U);
  BOOST_TEST(config.kv_width() == 16U);
  BOOST_TEST(config.vocab == tiny_vocabulary().size());
  BOOST_TEST(config.rms_epsilon == 1e-5F);
  BOOST_TEST(config.rope_dims == 8U);
  BOOST_TEST(config.rope_freq_base == 500'000.0F);
  BOOST_TEST(config.rope_linear_scale == 1.0F);
  BOOST_TEST(config.rope_factors.empty());
  BOOST_TEST(config.tied_output);
}

BOOST_AUTO_TEST_CASE(what_a_file_leaves_out_has_the_formats_default) {
  GgufWriter writer = tiny_model_writer({});
  for (const char* key : {"llama.attention.key_length", "llama.attention.value_length",
                          "llama.rope.dimension_count", "llama.rope.freq_base", "llama.vocab_size"})
    writer.remove(key);
  const ModelConfig config = load(writer).model.config;
  BOOST_TEST(config.head_size == 8U);
  BOOST_TEST(config.rope_dims == 8U);
  BOOST_TEST(config.rope_freq_base == 10'000.0F);
  TinyModelOptions multi_head;
  multi_head.kv_heads = multi_head.heads;
  GgufWriter without = tiny_model_writer(multi_head);
  without.remove("llama.attention.head_count_kv");
  BOOST_TEST(load(without).model.config.kv_heads == 4U);
}

BOOST_AUTO_TEST_CASE(every_tensor_of_a_layer_is_bound_to_its_place) {
  const Loaded loaded = load(tiny_model_writer({}));
  const ModelTensors& tensors = loaded.model.tensors;
  BOOST_TEST(tensors.token_embd->name == "token_embd.weight");
  BOOST_TEST(tensors.output == tensors.token_embd);
  BOOST_TEST(tensors.output_norm->name == "output_norm.weight");
  BOOST_REQUIRE_EQUAL(tensors.layers.size(), 2U);
  const LayerTensors& layer = tensors.layers[1];
  BOOST_TEST(layer.attn_norm->name == "blk.1.attn_norm.weight");
  BOOST_TEST(layer.attn_q->name == "blk.1.attn_q.weight");
  BOOST_TEST(layer.attn_k->name == "blk.1.attn_k.weight");
  BOOST_TEST(layer.attn_v->name == "blk.1.attn_v.weight");
  BOOST_TEST(layer.attn_output->name == "blk.1.attn_output.weight");
  BOOST_TEST(layer.ffn_norm->name == "blk.1.ffn_norm.weight");
  BOOST_TEST(layer.ffn_gate->name == "blk.1.ffn_gate.weight");
  BOOST_TEST(layer.ffn_up->name == "blk.1.ffn_up.weight");
  BOOST_TEST(layer.ffn_down->name == "blk.1.ffn_down.weight");
}

BOOST_AUTO_TEST_CASE(an_output_layer_of_its_own_is_bound) {
  TinyModelOptions options;
  options.tied = false;
  const Loaded loaded = load(tiny_model_writer(options));
  BOOST_TEST(!loaded.model.config.tied_output);
  BOOST_TEST(loaded.model.tensors.output->name == "output.weight");
}

BOOST_AUTO_TEST_CASE(every_weight_type_makes_a_model) {
  for (const WeightTypeTraits& traits : kWeightTypes) {
    TinyModelOptions options;
    options.layers = 1;
    options.width = 256;
    options.ffn_width = 256;
    options.head_size = 64;
    options.weights = traits.type;
    options.embeddings = traits.type;
    const Loaded loaded = load(tiny_model_writer(options));
    BOOST_TEST(loaded.model.tensors.layers[0].attn_q->bytes ==
               uint64_t{256} * 256 / traits.block_weights * traits.block_bytes);
  }
}

BOOST_AUTO_TEST_CASE(linear_rope_scaling_divides_the_positions) {
  GgufWriter writer = tiny_model_writer({});
  writer.add_string("llama.rope.scaling.type", "linear");
  writer.add_f32("llama.rope.scaling.factor", 4.0F);
  BOOST_TEST(load(writer).model.config.rope_linear_scale == 0.25F);
  GgufWriter old = tiny_model_writer({});
  old.add_f32("llama.rope.scale_linear", 2.0F);
  BOOST_TEST(load(old).model.config.rope_linear_scale == 0.5F);
  GgufWriter none = tiny_model_writer({});
  none.add_string("llama.rope.scaling.type", "none");
  none.add_f32("llama.rope.scaling.factor", 4.0F);
  BOOST_TEST(load(none).model.config.rope_linear_scale == 1.0F);
}

BOOST_AUTO_TEST_CASE(rope_factors_in_a_tensor_are_taken_as_they_are) {
  TinyModelOptions options;
  options.rope_factors = {1.0F, 1.5F, 4.0F, 8.0F};
  BOOST_TEST(load(tiny_model_writer(options)).model.config.rope_factors == options.rope_factors);
}

// Llama 3.1: head size 128, base 500,000. The two numbers between are from the formula in Python.
BOOST_AUTO_TEST_CASE(llama3_scaling_from_metadata_stretches_only_long_wavelengths) {
  TinyModelOptions options;
  options.layers = 1;
  options.heads = 2;
  options.kv_heads = 1;
  options.head_size = 128;
  options.rope_freq_base = 500'000.0F;
  GgufWriter writer = tiny_model_writer(options);
  writer.add_string("llama.rope.scaling.type", "llama3");
  writer.add_f32("llama.rope.scaling.factor", 8.0F);
  writer.add_u32("llama.rope.scaling.original_context_length", 8192);
  const std::vector<float> factors = load(writer).model.config.rope_factors;
  BOOST_REQUIRE_EQUAL(factors.size(), 64U);
  for (size_t i = 0; i < factors.size(); ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(500'000.0, static_cast<double>(i) / 64);
    if (wave < 8192.0 / 4) {
      BOOST_TEST(factors[i] == 1.0F);
    } else if (wave > 8192.0) {
      BOOST_TEST(factors[i] == 8.0F);
    } else {
      BOOST_TEST((factors[i] > 1.0F && factors[i] < 8.0F && factors[i] > factors[i - 1]));
    }
  }
  BOOST_TEST(factors[28] == 1.0F);
  BOOST_TEST(factors[32] == 2.6945297F, boost::test_tools::tolerance(1e-6F));
  BOOST_TEST(factors[36] == 8.0F);
  BOOST_TEST(factors[29] == 1.2074839F, boost::test_tools::tolerance(1e-6F));
}

BOOST_AUTO_TEST_CASE(the_memory_estimate_counts_keys_and_values_of_all_layers) {
  const Loaded loaded = load(tiny_model_writer({}));
  const MemoryEstimate memory = estimate_memory(*loaded.file, loaded.model.config, KvType::kF16);
  uint64_t bytes = 0;
  for (const GgufTensor& tensor : loaded.file->tensors()) bytes += tensor.bytes;
  BOOST_TEST(memory.weight_bytes == bytes);
  // 2 layers, keys and values of 2 heads, of 8 dims padded to 16, 2 bytes each.
  BOOST_TEST(memory.kv_bytes_per_token == 2U * 2 * 2 * 16 * 2);
  BOOST_TEST(memory.kv_bytes_per_block == 16 * memory.kv_bytes_per_token);
  const MemoryEstimate small = estimate_memory(*loaded.file, loaded.model.config, KvType::kInt8);
  BOOST_TEST(small.kv_bytes_per_token == 2U * 2 * 2 * (16 + 4));
}

BOOST_AUTO_TEST_CASE(random_weights_of_every_type_have_the_asked_size) {
  for (const WeightTypeTraits& traits : kWeightTypes) {
    const std::string weights = random_weights(traits.type, 512, 0.5F, 3);
    BOOST_TEST(weights.size() == 512U / traits.block_weights * traits.block_bytes);
    BOOST_TEST((weights == random_weights(traits.type, 512, 0.5F, 3)));
    BOOST_TEST((weights != random_weights(traits.type, 512, 0.5F, 4)));
  }
}

BOOST_AUTO_TEST_CASE(the_shipped_model_is_understood) {
  const std::string path = TROUPE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) {
    std::cout << "skipped: " << path << " is not there; ./serve obtains it\n";
    return;
  }
  const auto file = GgufFile::open(path);
  BOOST_REQUIRE_MESSAGE(file.ok(), file.status().message());
  const auto model = read_model(*file.value());
  BOOST_REQUIRE_MESSAGE(model.ok(), model.status().message());
  const ModelConfig& config = model->config;
  BOOST_TEST(config.layers == 30U);
  BOOST_TEST(config.context_length == 8192U);
  BOOST_TEST(config.width == 576U);
  BOOST_TEST(config.ffn_width == 1536U);
  BOOST_TEST(config.heads == 9U);
  BOOST_TEST(config.kv_heads == 3U);
  BOOST_TEST(config.head_size == 64U);
  BOOST_TEST(config.vocab == 49152U);
  BOOST_TEST(config.rope_freq_base == 100'000.0F);
  BOOST_TEST(config.tied_output);
  BOOST_TEST(file.value()->get_strings("tokenizer.ggml.tokens").value()[1] == "<|im_start|>");
  BOOST_TEST(file.value()->get_strings("tokenizer.ggml.merges").value().size() == 48900U);
}

BOOST_AUTO_TEST_CASE(each_family_has_its_traits) {
  TinyModelOptions options;
  options.architecture = "gemma3";
  options.window = 24;
  const Loaded gemma = load(tiny_model_writer(options));
  const ModelConfig& config = gemma.model.config;
  BOOST_TEST((config.rope_pairs == RopePairs::kHalves));
  BOOST_TEST((config.activation == Activation::kGeluTanh));
  BOOST_TEST(config.embedding_scale == std::sqrt(32.0F));
  BOOST_TEST(config.attention_scale == 1.0F / std::sqrt(8.0F));
  BOOST_TEST(config.window == 24U);
  BOOST_TEST(config.window_rope_freq_base == 10'000.0F);
  for (uint32_t layer = 0; layer < 18; ++layer)
    BOOST_TEST(config.windowed(layer) == (layer % 6 != 5), layer);
  BOOST_TEST(gemma.model.tensors.layers[0].attn_q_bias == nullptr);
  BOOST_TEST(gemma.model.tensors.layers[1].ffn_post_norm->name == "blk.1.post_ffw_norm.weight");

  options = {};
  options.architecture = "qwen2";
  const Loaded qwen2 = load(tiny_model_writer(options));
  BOOST_TEST((qwen2.model.config.rope_pairs == RopePairs::kHalves));
  BOOST_TEST(qwen2.model.tensors.layers[1].attn_v_bias->name == "blk.1.attn_v.bias");
  BOOST_TEST(qwen2.model.tensors.layers[1].attn_q_norm == nullptr);

  const Loaded llama = load(tiny_model_writer({}));
  BOOST_TEST((llama.model.config.rope_pairs == RopePairs::kAdjacent));
  BOOST_TEST(!llama.model.config.windowed(0));
  BOOST_TEST(llama.model.config.embedding_scale == 1.0F);
}

BOOST_AUTO_TEST_CASE(gemma_of_62_layers_scales_queries_by_the_width_per_head) {
  TinyModelOptions options;
  options.architecture = "gemma3";
  options.layers = 62;
  options.head_size = 16;
  BOOST_TEST(load(tiny_model_writer(options)).model.config.attention_scale ==
             1.0F / std::sqrt(32.0F / 4.0F));
}

BOOST_AUTO_TEST_SUITE_END()
