#include "apps/troupe/serve_cluster.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "apps/node/supervisor.h"
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
std::vector<std::string> child_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("TROUPE_")) environment.emplace_back(*entry);
  environment.push_back("TROUPE_SECRET=" + fresh_secret());
  // Six processes share this machine's cores, and who waits for one is not dead.
  environment.push_back("TROUPE_PEER_TIMEOUT_MS=1000");
  return environment;
}

class LocalProcesses {
 public:
  explicit LocalProcesses(const ServeOptions& options)
      : options_(options),
        supervisor_(SupervisorOptions{child_environment()}, clock_,
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
    for (uint32_t i = 1; i <= options_.prefill_workers; ++i)
      TROUPE_RETURN_IF_ERROR(supervisor_.add(worker("prefill", i, address)).status());
    for (uint32_t i = 1; i <= options_.decode_workers; ++i)
      TROUPE_RETURN_IF_ERROR(supervisor_.add(worker("decode", i, address)).status());
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
    if (!options_.served_model_name.empty()) add("--served-model-name", options_.served_model_name);
    return spec;
  }

  [[nodiscard]] MemberSpec worker(const std::string& role, uint32_t number,
                                  const std::string& router) const {
    const EngineOptions& engine = options_.engine;
    MemberSpec spec{role + "-" + std::to_string(number),
                    {program("troupe-" + role), engine.model_path},
                    {{kSaysListening, "--port", 0}},
                    true};
    const auto add = [&](const char* flag, const std::string& value) {
      spec.arguments.insert(spec.arguments.end(), {flag, value});
    };
    add("--join", router);
    add("--threads", std::to_string(options_.worker_threads));
    add("--backend", engine.backend);
    add("--isa", engine.isa);
    add("--kv-memory-mib", std::to_string(engine.kv_memory_mib));
    add("--kv-blocks", std::to_string(engine.kv_blocks));
    add("--context-length", std::to_string(engine.context_tokens));
    add("--max-step-tokens", std::to_string(engine.step_tokens_max));
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
  Supervisor supervisor_;
};

}  // namespace

Status serve_cluster(const ServeOptions& options) {
  return LocalProcesses(options).run();
}

}  // namespace troupe
