#pragma once
// The names of all settings of all programs that read one configuration file. A program that meets
// a name at the file's top that is none of its own looks here: a known name belongs to another
// program, an unknown one is a mistake. Settings::add() asserts that what it declares stands here.

#include <array>
#include <string_view>

namespace troupe {

inline constexpr auto kSettingTables = std::to_array<std::string_view>(
    {"router", "prefill", "decode", "monitor", "serve", "chat", "generate", "bench"});

inline constexpr auto kSettingNames = std::to_array<std::string_view>({
    "api-key",
    "api-key-file",
    "arrival",
    "backend",
    "burstiness",
    "chat-template",
    "cluster",
    "concurrency",
    "context-length",
    "cors-origin",
    "cpu-features",
    "decode-workers",
    "drain-seconds",
    "duration",
    "endpoint",
    "extra-body",
    "host",
    "http-host",
    "http-port",
    "ignore-eos",
    "join",
    "json",
    "kv-blocks",
    "kv-cache-dtype",
    "kv-memory-mib",
    "kv-window-blocks",
    "max-concurrency",
    "max-connections",
    "max-requests",
    "max-running",
    "max-step-tokens",
    "max-tokens-field",
    "metrics-host",
    "metrics-port",
    "model",
    "numa-node",
    "open-paths",
    "output-tokens",
    "peer-timeout-ms",
    "port",
    "prefill-workers",
    "prefix-groups",
    "prefix-tokens",
    "prompt-tokens",
    "prompts",
    "rate",
    "reasoning-format",
    "records",
    "requests",
    "retry-429",
    "role",
    "rpc-port",
    "secret",
    "secret-file",
    "seed",
    "served-model-name",
    "slo",
    "speculation",
    "step-time-ms",
    "svg",
    "temperature",
    "think-time",
    "threads",
    "time-scale",
    "timeout",
    "tool-call-format",
    "trace",
    "trust-request-chat-template",
    "turns",
    "url",
    "warmup",
    "worker-threads",
});

}  // namespace troupe
