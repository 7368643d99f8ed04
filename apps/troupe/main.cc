// troupe: everything in one process. The flags of every command, and nothing else.

#include <glog/logging.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <functional>
#include <iostream>

#include "apps/troupe/options.h"

namespace troupe {
namespace {

void add_engine_flags(CLI::App& command, EngineOptions& options) {
  command.add_option("model", options.model_path, "The model: a GGUF file")->required();
  command.add_option("--threads", options.threads, "Threads that compute; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      .add_option("--backend", options.backend, "cpu, or reference: plain fp32, the slow yardstick")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->capture_default_str();
  command
      .add_option(
          "--isa", options.isa,
          "Instruction set: auto, scalar, avx2, avx512, avx512vnni, amx. All give the same tokens")
      ->check(CLI::IsMember({"auto", "scalar", "avx2", "avx512", "avx512vnni", "amx"}))
      ->capture_default_str();
  command
      .add_option("--kv-memory", options.kv_memory_mib,
                  "Memory for KV in MiB; 0: a quarter of what is available, at most 4096")
      ->capture_default_str();
  command
      .add_option("--kv-blocks", options.kv_blocks, "KV blocks of 16 tokens; overrides --kv-memory")
      ->capture_default_str();
  command
      .add_option("--context-length", options.context_tokens,
                  "Tokens of prompt and output together; 0: the model's")
      ->capture_default_str();
  command
      .add_option("--max-step-tokens", options.step_tokens_max,
                  "Tokens computed in one step; longer prompts go in chunks")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_option("--max-running", options.running_max, "Sequences in the batch at once")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

void add_sampling_flags(CLI::App& command, SamplingOptions& options) {
  command.add_option("--temperature", options.temperature, "0: always the most probable token")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  command.add_option("--top-k", options.top_k, "Only the k most probable tokens; 0: off")
      ->capture_default_str();
  command.add_option("--top-p", options.top_p, "Only the most probable tokens of this share")
      ->capture_default_str();
  command
      .add_option("--min-p", options.min_p,
                  "Only tokens of this share of the best one's probability")
      ->capture_default_str();
  command.add_option("--repetition-penalty", options.repetition_penalty, "1: off")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Of the random numbers")->capture_default_str();
  command.add_option("--max-tokens", options.max_tokens, "Tokens to generate at most")
      ->check(CLI::Range(1U, 1U << 20))
      ->capture_default_str();
  command
      .add_option("--stop", options.stop, "Text that ends the answer; may be given several times")
      ->expected(1, 4)
      ->allow_extra_args(false);
}

void add_serve(CLI::App& app, ServeOptions& options, std::function<int()>& run) {
  CLI::App* command =
      app.add_subcommand("serve", "Serve a model over the OpenAI-compatible HTTP API");
  add_engine_flags(*command, options.engine);
  command->add_option("--host", options.host, "Address to listen on")->capture_default_str();
  command->add_option("--port", options.port, "Port to listen on; 0: any free one")
      ->capture_default_str();
  command->add_option("--served-model-name", options.served_model_name,
                      "The model's name in the API; default: the file's name without .gguf");
  command
      ->add_option("--max-requests", options.engine.requests_in_flight_max,
                   "Requests in flight; further ones get 429 at once")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_flag("--cluster", options.cluster,
                    "As a cluster of processes on this machine instead of one process");
  const auto add_cluster_flag = [&](const char* flag, uint32_t& value, uint32_t least,
                                    uint32_t most, const char* help) {
    command->add_option(flag, value, help)->check(CLI::Range(least, most))->capture_default_str();
  };
  add_cluster_flag("--prefill-workers", options.prefill_workers, 0, 64,
                   "Of a cluster: processes that compute prompts");
  add_cluster_flag("--decode-workers", options.decode_workers, 1, 64,
                   "Of a cluster: processes that generate");
  add_cluster_flag("--worker-threads", options.worker_threads, 0, 1024,
                   "Of each of these: threads that compute; 0: one per core");
  command
      ->add_option("--rpc-port", options.rpc_port,
                   "Of a cluster: port for Cap'n Proto RPC; 0: none")
      ->capture_default_str();
  command->callback([&] { run = [&] { return run_serve(options); }; });
}

void add_generate(CLI::App& app, GenerateOptions& options, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand("generate", "Continue a text");
  add_engine_flags(*command, options.engine);
  command->add_option("--prompt,-p", options.prompt, "The text to continue; -: from standard input")
      ->required();
  add_sampling_flags(*command, options.sampling);
  command->add_flag("--ignore-eos", options.ignore_eos, "Go on past the model's end token");
  command->add_flag("--json", options.json,
                    "Print one JSON object with token ids and log-probabilities");
  command->callback([&] { run = [&] { return run_generate(options); }; });
}

void add_chat(CLI::App& app, ChatOptions& options, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand("chat", "Talk to a model in the terminal");
  add_engine_flags(*command, options.engine);
  options.sampling.temperature = 0.7F;
  options.sampling.max_tokens = 1024;
  command->add_option("--system", options.system, "The system message");
  add_sampling_flags(*command, options.sampling);
  command->callback([&] { run = [&] { return run_chat(options); }; });
}

}  // namespace

int fail(const Status& status) {
  std::cerr << "troupe: " << status.message() << '\n';
  return 1;
}

}  // namespace troupe

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App app{
      "Troupe serves large language models.\n"
      "  troupe serve MODEL        an OpenAI-compatible server on 127.0.0.1:8000\n"
      "  troupe chat MODEL         talk to it here\n"
      "  troupe generate MODEL -p TEXT\n"
      "  troupe inspect MODEL      what is in the file, and the memory it will take\n",
      "troupe"};
  app.set_version_flag("--version", std::string("troupe ") + TROUPE_VERSION);
  app.require_subcommand(1);
  std::function<int()> run;
  troupe::ServeOptions serve;
  troupe::GenerateOptions generate;
  troupe::ChatOptions chat;
  std::string inspected;
  troupe::add_serve(app, serve, run);
  troupe::add_chat(app, chat, run);
  troupe::add_generate(app, generate, run);
  CLI::App* inspect = app.add_subcommand("inspect", "Show metadata, tensors and memory of a model");
  inspect->add_option("model", inspected, "The model: a GGUF file")->required();
  inspect->callback([&] { run = [&] { return troupe::run_inspect(inspected); }; });

  CLI11_PARSE(app, argc, argv);
  return run();
}
