#include "apps/troupe/serve_cluster.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "apps/node/supervisor.h"
#include "apps/troupe/served_names.h"
#include "base/limits.h"
#include "base/os/entropy.h"
#include "base/os/system_clock.h"

extern char** environ;

namespace troupe {
namespace {

constexpr std::chrono::seconds kListenDeadline{30};
// A large model's weights come from a disk.
constexpr std::chrono::minutes kReadyDeadline{10};
// Beyond what a router lets its requests go on.
constexpr std::chrono::seconds kEndMargin{5};
constexpr int kSecretWords = 4;  // of 64 bits

std::string fresh_secret() {
  std::string secret;
  for (int i = 0; i < kSecretWords; ++i) secret += std::to_string(entropy_u64());
  return secret;
}

// Ours without Troupe's variables: the flags say everything. The secret travels as a variable,
// which only this user can read and nothing leaves behind.
std::vector<std::string> child_environment(const ServeOptions& options) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("TROUPE_")) environment.emplace_back(*entry);
  environment.push_back("TROUPE_SECRET=" + fresh_secret());
  std::string keys;
  for (const std::string& key : options.frontend.api_keys.keys)
    keys += (keys.empty() ? "" : ",") + key;
  if (!keys.empty()) environment.push_back("TROUPE_API_KEY=" + keys);
  // Six processes share this machine's cores, and who waits for one is not dead.
  environment.push_back("TROUPE_PEER_TIMEOUT_MS=1000");
  return environment;
}

class LocalProcesses {
 public:
  explicit LocalProcesses(const ServeOptions& options)
      : options_(options),
        supervisor_(SupervisorOptions{child_environment(options)}, clock_,
                    [](std::string_view text) { std::cerr << text << std::flush; }) {}

  Status run() {
    const Status started = start();
    if (started.code() == StatusCode::kCancelled) {
      end();
      return ok_status();
    }
    if (!started.ok()) return {started.code(), "the cluster did not come up: " + started.message()};
    std::cout << kSaysReady << ": " << supervisor_.said(kRouter, kSaysReady).value_or("")
              << std::endl;
    if (const auto rpc = supervisor_.said(kRouter, kSaysRpc))
      std::cout << kSaysReady << ": rpc " << *rpc << std::endl;
    TROUPE_RETURN_IF_ERROR(supervisor_.run_until_signal());
    end();
    return ok_status();
  }

 private:
  static constexpr size_t kRouter = 0;

  [[nodiscard]] std::string program(const std::string& name) const {
    return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
  }

  Status start() {
    TROUPE_RETURN_IF_ERROR(supervisor_.add(router()).status());
    const auto listening = [this] { return supervisor_.said(kRouter, kSaysListening).has_value(); };
    TROUPE_RETURN_IF_ERROR(supervisor_.run_until(listening, kListenDeadline));
    const std::string address = *supervisor_.said(kRouter, kSaysListening);
    TROUPE_ASSIGN_OR_RETURN(names_, served_names_of(options_.models, options_.served_names));
    for (size_t model = 0; model < options_.models.size(); ++model) {
      for (uint32_t i = 1; i <= options_.prefill_workers; ++i)
        TROUPE_RETURN_IF_ERROR(supervisor_.add(worker("prefill", model, i, address)).status());
      for (uint32_t i = 1; i <= options_.decode_workers; ++i)
        TROUPE_RETURN_IF_ERROR(supervisor_.add(worker("decode", model, i, address)).status());
    }
    TROUPE_RETURN_IF_ERROR(supervisor_.add(monitor(address)).status());
    return supervisor_.run_until([this] { return supervisor_.all_ready(); }, kReadyDeadline);
  }

  [[nodiscard]] MemberSpec router() const {
    MemberSpec spec{"router",
                    {program("troupe-router"), "--host", "127.0.0.1"},
                    {{kSaysListening, "--port", 0}, {kSaysHttp, "--http-port", options_.port}},
                    true};
    auto& arguments = spec.arguments;
    const auto add = [&](const char* flag, const std::string& value) {
      arguments.insert(arguments.end(), {flag, value});
    };
    add("--http-host", options_.host);
    add("--max-requests", std::to_string(options_.engine.requests_in_flight_max));
    if (options_.rpc_port) spec.ports.push_back({kSaysRpc, "--rpc-port", *options_.rpc_port});
    if (!options_.templates.file.empty()) add("--chat-template", options_.templates.file);
    if (options_.templates.trusts_requests) {
      arguments.emplace_back("--trust-request-chat-template");
    }
    const FrontendOptions& frontend = options_.frontend;
    if (!frontend.api_keys.file.empty()) add("--api-key-file", frontend.api_keys.file);
    for (const std::string& path : frontend.open_paths) add("--open-paths", path);
    for (const std::string& origin : frontend.cors_origins) add("--cors-origin", origin);
    add("--max-connections", std::to_string(frontend.connections_max));
    const std::vector<std::string> formats = options_.answers.flags();
    arguments.insert(arguments.end(), formats.begin(), formats.end());
    return spec;
  }

  [[nodiscard]] MemberSpec worker(const std::string& role, size_t model, uint32_t number,
                                  const std::string& router) const {
    const EngineOptions& engine = options_.engine;
    const std::string of = options_.models.size() > 1 ? "-" + names_[model][0] : "";
    MemberSpec spec{role + of + "-" + std::to_string(number),
                    {program("troupe-" + role), options_.models[model]},
                    {{kSaysListening, "--port", 0}},
                    true};
    const auto add = [&](const char* flag, const std::string& value) {
      spec.arguments.insert(spec.arguments.end(), {flag, value});
    };
    add("--join", router);
    for (const std::string& name : names_[model]) add("--served-model-name", name);
    add("--threads", std::to_string(options_.worker_threads));
    if (engine.numa_node >= 0) add("--numa-node", std::to_string(engine.numa_node));
    add("--backend", engine.backend);
    add("--cpu-features", engine.cpu_features);
    add("--kv-memory-mib", std::to_string(engine.kv_memory_mib));
    add("--kv-blocks", std::to_string(engine.kv_blocks));
    add("--kv-window-blocks", std::to_string(engine.kv_window_blocks));
    add("--kv-cache-dtype", engine.kv_cache_dtype);
    add("--context-length", std::to_string(engine.context_tokens));
    add("--max-step-tokens", std::to_string(engine.step_tokens_max));
    add("--step-time-ms", std::to_string(engine.step_time_ms));
    add("--max-running", std::to_string(engine.running_max));
    add("--speculation", engine.speculation);
    return spec;
  }

  [[nodiscard]] MemberSpec monitor(const std::string& router) const {
    return {"monitor",
            {program("troupe-monitor"), "--join", router},
            {{kSaysListening, "--port", 0}, {kSaysHttp, "--http-port", 0}},
            true};
  }

  // The router first: what it lets finish needs the workers.
  void end() {
    supervisor_.end(kRouter, 1, limits::kDrainDeadline + kEndMargin);
    supervisor_.end(kRouter + 1, supervisor_.size() - 1, kEndMargin);
  }

  const SystemClock clock_;
  const ServeOptions& options_;
  std::vector<std::vector<std::string>> names_;  // of each model
  Supervisor supervisor_;
};

}  // namespace

Status serve_cluster(const ServeOptions& options) {
  TROUPE_RETURN_IF_ERROR(check_frontend_options(options.frontend));
  TROUPE_RETURN_IF_ERROR(read_api_keys(options.frontend.api_keys).status());
  TROUPE_RETURN_IF_ERROR(served_names_of(options.models, options.served_names).status());
  return LocalProcesses(options).run();
}

}  // namespace troupe
