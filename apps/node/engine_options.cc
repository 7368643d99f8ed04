#include "apps/node/engine_options.h"

namespace troupe {

namespace {

void add_compute_settings(Settings& settings, EngineOptions& options) {
  settings.add({.name = "threads", .help = "Threads that compute; 0: one per core", .most = 1024},
               &options.threads);
  settings.add({.name = "numa-node",
                .help = "Memory node (NUMA) whose cores and memory to use; -1: any",
                .least = -1,
                .most = 4095},
               &options.numa_node);
  settings.add({.name = "backend",
                .help = "cpu, or reference: plain fp32, the slow yardstick",
                .choices = {"cpu", "reference"}},
               &options.backend);
  settings.add({.name = "cpu-features",
                .help = "Largest instruction set to compute with; all give the same tokens",
                .choices = {"auto", "scalar", "avx2", "avx512", "avx512vnni", "amx"}},
               &options.cpu_features);
  settings.add({.name = "kv-memory-mib",
                .help = "Memory for KV in MiB; 0: a quarter of what is available, at most 4096",
                .alias = "kv-memory"},
               &options.kv_memory_mib);
  settings.add({.name = "kv-blocks",
                .help = "KV blocks of 16 tokens; overrides kv-memory-mib; 0: as that says"},
               &options.kv_blocks);
  settings.add({.name = "kv-window-blocks",
                .help = "KV blocks of layers with a sliding window; more where many sequences are "
                        "short; 0: in proportion"},
               &options.kv_window_blocks);
  settings.add({.name = "kv-cache-dtype",
                .help = "How KV is stored: auto (f16), or int8, which takes half the memory and "
                        "changes tokens a little; the same for all workers of a model",
                .choices = {"auto", "f16", "int8"}},
               &options.kv_cache_dtype);
  settings.add(
      {.name = "context-length", .help = "Tokens of prompt and output together; 0: the model's"},
      &options.context_tokens);
  settings.add({.name = "max-step-tokens",
                .help = "Tokens computed in one step; longer prompts go in chunks",
                .least = 1,
                .most = 65536},
               &options.step_tokens_max);
  settings.add({.name = "step-time-ms",
                .help = "Milliseconds that a step should take: prompts go in chunks that fit, so "
                        "that running streams go on evenly; 0: as max-step-tokens says",
                .most = 60000},
               &options.step_time_ms);
  settings.add(
      {.name = "max-running", .help = "Sequences in the batch at once", .least = 1, .most = 65536},
      &options.running_max);
  settings.add(
      {.name = "speculation",
       .help = "Guess tokens from the sequence's own text and check them, where that pays; "
               "the tokens stay the same",
       .choices = {"auto", "off"}},
      &options.speculation);
}

}  // namespace

Result<KvType> kv_type_of(const std::string& kv_cache_dtype, const std::string& backend) {
  if (backend == "reference") {
    if (kv_cache_dtype == "auto") return KvType::kF32;
    return invalid_argument("--kv-cache-dtype " + kv_cache_dtype +
                            " does not go with --backend reference, which stores fp32: leave it at "
                            "auto, or take --backend cpu");
  }
  return kv_cache_dtype == "int8" ? KvType::kInt8 : KvType::kF16;
}

void add_engine_settings(Settings& settings, EngineOptions& options) {
  settings.add(
      {.name = "model", .help = "The model: a GGUF file", .required = true, .positional = true},
      &options.model_path);
  add_compute_settings(settings, options);
}

void add_engine_settings(Settings& settings, EngineOptions& options,
                         std::vector<std::string>& model_paths) {
  settings.add({.name = "model",
                .help = "The models: GGUF files",
                .required = true,
                .positional = true,
                .commas = false},
               &model_paths);
  add_compute_settings(settings, options);
}

void add_served_name_setting(Settings& settings, const std::string& what,
                             std::vector<std::string>& names) {
  settings.add({.name = "served-model-name",
                .help = what + " in the API, the first for lists; none: the file's name"},
               &names);
}

}  // namespace troupe
