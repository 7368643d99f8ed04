#include "tests/support/tiny_families.h"

namespace troupe::test {

std::vector<TinyFamily> tiny_families() {
  std::vector<TinyFamily> families;
  families.push_back({"llama",
                      {.layers = 3,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_size = 16,
                       .width = 64,
                       .ffn_width = 96,
                       .rope_factors = {1.0F, 1.0F, 1.5F, 2.0F, 4.0F, 8.0F, 8.0F, 8.0F}}});
  families.push_back({"qwen2",
                      {.architecture = "qwen2",
                       .layers = 3,
                       .heads = 6,
                       .kv_heads = 2,
                       .head_size = 16,
                       .width = 96,
                       .ffn_width = 128,
                       .rope_freq_base = 1'000'000.0F,
                       .rms_epsilon = 1e-6F,
                       .pre_tokenizer = "qwen2"}});
  families.push_back({"qwen3",
                      {.architecture = "qwen3",
                       .layers = 3,
                       .heads = 4,
                       .kv_heads = 1,
                       .head_size = 32,  // wider in all than the model
                       .width = 64,
                       .ffn_width = 96,
                       .rope_freq_base = 1'000'000.0F,
                       .rms_epsilon = 1e-6F,
                       .tied = false,
                       .pre_tokenizer = "qwen2"}});
  // The window is shorter than the text, no multiple of a block, and seven layers have a global
  // one.
  families.push_back({"gemma3",
                      {.architecture = "gemma3",
                       .layers = 7,
                       .heads = 4,
                       .kv_heads = 1,
                       .head_size = 32,
                       .width = 64,
                       .ffn_width = 96,
                       .rope_freq_base = 1'000'000.0F,
                       .rms_epsilon = 1e-6F,
                       .window = 21}});
  return families;
}

}  // namespace troupe::test
