// troupe: everything in one process. The flags of every command, and nothing else.

#include <glog/logging.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <vector>

#include "apps/troupe/bench.h"
#include "apps/troupe/options.h"
#include "apps/troupe/profile.h"
#include "apps/troupe/sim.h"
#include "apps/troupe/top.h"
#include "base/config/settings.h"

namespace troupe {
namespace {

// The commands' flags, and what runs when the command line has been read.
struct CommandLine {
  CLI::App app{
      "Troupe serves large language models.\n"
      "  troupe serve MODEL ...    an OpenAI-compatible server on 127.0.0.1:8000\n"
      "  troupe chat MODEL         talk to it here\n"
      "  troupe generate MODEL -p TEXT\n"
      "  troupe inspect MODEL      what is in the file, and the memory it will take\n"
      "  troupe profile MODEL      where the time of a forward pass goes\n"
      "  troupe top                what a cluster does, live\n"
      "  troupe sim                a cluster in virtual time, with a trace or with faults\n"
      "  troupe bench              load for any OpenAI-compatible server, and how it did\n",
      "troupe"};
  std::vector<std::unique_ptr<Settings>> settings;
  std::function<int()> run;
};

// Adds a command whose settings come from flags, variables and a file; `action` runs after them.
Settings& add_command(CommandLine& line, const std::string& name, const std::string& about,
                      std::function<int()> action) {
  CLI::App* command = line.app.add_subcommand(name, about);
  Settings& settings = *line.settings.emplace_back(std::make_unique<Settings>(name, *command));
  command->callback([&line, &settings, action = std::move(action)] {
    line.run = [&settings, action] {
      const Parsed parsed = settings.resolve();
      if (parsed.run) return action();
      (parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.output;
      return parsed.exit_code;
    };
  });
  return settings;
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

void add_serve(CommandLine& line, ServeOptions& options) {
  Settings& settings =
      add_command(line, "serve", "Serve models over the OpenAI-compatible HTTP API",
                  [&options] { return run_serve(options); });
  add_engine_settings(settings, options.engine, options.models);
  settings.add({.name = "host", .help = "Address to listen on"}, &options.host);
  settings.add({.name = "port", .help = "Port to listen on; 0: any free one"}, &options.port);
  settings.add(
      {.name = "rpc-port", .help = "Also serve Cap'n Proto RPC on this port; 0: any free one"},
      &options.rpc_port);
  add_served_name_setting(settings, "Names of the model (of several: FILE=NAME)",
                          options.served_names);
  add_chat_template_settings(settings, options.templates);
  add_frontend_settings(settings, options.frontend);
  add_answer_settings(settings, options.answers);
  settings.add({.name = "max-requests",
                .help = "Requests in flight; further ones get 429 at once",
                .least = 1,
                .most = 1 << 20},
               &options.engine.requests_in_flight_max);
  settings.add({.name = "cluster",
                .help = "As a cluster of processes on this machine instead of one process"},
               &options.cluster);
  settings.add({.name = "prefill-workers",
                .help = "Of a cluster: processes that compute prompts, for each model",
                .most = 64},
               &options.prefill_workers);
  settings.add({.name = "decode-workers",
                .help = "Of a cluster: processes that generate, for each model",
                .least = 1,
                .most = 64},
               &options.decode_workers);
  settings.add({.name = "worker-threads",
                .help = "Of each of these: threads that compute; 0: one per core",
                .most = 1024},
               &options.worker_threads);
}

void add_generate(CommandLine& line, GenerateOptions& options) {
  Settings& settings = add_command(line, "generate", "Continue a text",
                                   [&options] { return run_generate(options); });
  add_engine_settings(settings, options.engine);
  CLI::App* command = line.app.get_subcommand("generate");
  command->add_option("--prompt,-p", options.prompt, "The text to continue; -: from standard input")
      ->required();
  add_sampling_flags(*command, options.sampling);
  command->add_flag("--ignore-eos", options.ignore_eos, "Go on past the model's end token");
  command->add_flag("--json", options.json,
                    "Print one JSON object with token ids and log-probabilities");
}

void add_chat(CommandLine& line, ChatOptions& options) {
  Settings& settings = add_command(line, "chat", "Talk to a model in the terminal",
                                   [&options] { return run_chat(options); });
  add_engine_settings(settings, options.engine);
  settings.add({.name = "chat-template",
                .help = "File with a Jinja chat template to use instead of the model's"},
               &options.templates.file);
  options.sampling.temperature = 0.7F;
  options.sampling.max_tokens = 1024;
  CLI::App* command = line.app.get_subcommand("chat");
  command->add_option("--system", options.system, "The system message");
  add_sampling_flags(*command, options.sampling);
}

void add_bench(CommandLine& line, BenchOptions& options) {
  add_bench_settings(add_command(line, "bench", "Put load on an OpenAI-compatible server",
                                 [&options] { return run_bench(options); }),
                     options);
}

void add_inspect(CommandLine& line, std::string& model) {
  CLI::App* command =
      line.app.add_subcommand("inspect", "Show metadata, tensors and memory of a model");
  command->add_option("model", model, "The model: a GGUF file")->required();
  command->callback([&] { line.run = [&] { return run_inspect(model); }; });
}

void add_top(CommandLine& line, TopOptions& options) {
  CLI::App* command = line.app.add_subcommand("top", "Show the workers of a cluster, live");
  command->add_option("url", options.url, "The HTTP address of a router or monitor")
      ->capture_default_str();
  command->add_flag("--once", options.once, "Print it once; so it is where there is no terminal");
  command->callback([&] { line.run = [&] { return run_top(options); }; });
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

  troupe::CommandLine line;
  troupe::ServeOptions serve;
  troupe::GenerateOptions generate;
  troupe::ChatOptions chat;
  troupe::TopOptions top;
  troupe::BenchOptions bench;
  troupe::SimOptions sim;
  troupe::ProfileOptions profile;
  std::string inspected;
  line.app.set_version_flag("--version", std::string("troupe ") + TROUPE_VERSION);
  line.app.require_subcommand(1);
  troupe::add_serve(line, serve);
  troupe::add_chat(line, chat);
  troupe::add_generate(line, generate);
  troupe::add_bench(line, bench);
  troupe::add_inspect(line, inspected);
  troupe::add_top(line, top);
  troupe::add_sim(line.app, sim, line.run);
  troupe::add_profile(line.app, profile, line.run);
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = line.app.exit(error);
    for (const CLI::App* command : line.app.get_subcommands()) {
      std::cerr << troupe::flag_hints(*command);
    }
    return code;
  }
  return line.run();
}
