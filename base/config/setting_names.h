#pragma once
// The names of all settings of all programs that read one configuration file. A program that meets
// a name at the file's top that is none of its own looks here: a known name belongs to another
// program, an unknown one is a mistake. Settings::add() asserts that what it declares stands here.

#include <array>
#include <string_view>

namespace troupe {

inline constexpr auto kSettingTables = std::to_array<std::string_view>(
    {"router", "prefill", "decode", "monitor", "serve", "chat", "generate"});

inline constexpr auto kSettingNames = std::to_array<std::string_view>({
    "backend",
    "cluster",
    "context-length",
    "decode-workers",
    "drain-seconds",
    "host",
    "http-host",
    "http-port",
    "isa",
    "join",
    "kv-blocks",
    "kv-memory-mib",
    "max-requests",
    "max-running",
    "max-step-tokens",
    "metrics-host",
    "metrics-port",
    "model",
    "peer-timeout-ms",
    "port",
    "prefill-workers",
    "role",
    "rpc-port",
    "secret",
    "secret-file",
    "served-model-name",
    "threads",
    "worker-threads",
});

}  // namespace troupe
