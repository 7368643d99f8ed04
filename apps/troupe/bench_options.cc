#include "apps/troupe/bench.h"
#include "loadgen/limits.h"

namespace troupe {
namespace {

void add_server_settings(Settings& settings, BenchOptions& options) {
  settings.add(
      {.name = "url", .help = "The server, with or without /v1; http or https", .positional = true},
      &options.url);
  settings.add({.name = "model", .help = "The model's name; empty: the first of /v1/models"},
               &options.model);
  settings.add({.name = "api-key",
                .help = "Sent as bearer token; empty: the variable OPENAI_API_KEY, if it is set"},
               &options.api_key);
  settings.add({.name = "endpoint",
                .help = "/v1/chat/completions or /v1/completions",
                .choices = {"chat", "completions"}},
               &options.endpoint);
}

void add_arrival_settings(Settings& settings, BenchOptions& options) {
  settings.add({.name = "concurrency",
                .help = "Closed loop: so many at once, each followed by the next; 0: 8, unless "
                        "rate or trace is given",
                .most = loadgen::kConcurrencyMax},
               &options.concurrency);
  settings.add({.name = "rate",
                .help = "Open loop: arrivals per second, however long answers take; 0: no",
                .least = 0,
                .most = 1e6},
               &options.rate);
  settings.add({.name = "arrival",
                .help = "Gaps of rate: random (poisson), or equal",
                .choices = {"poisson", "constant"}},
               &options.arrival);
  settings.add({.name = "burstiness",
                .help = "Shape of the gamma distribution of random gaps; 1: Poisson, less: bursts, "
                        "more: even",
                .least = 0.001,
                .most = 1e6},
               &options.burstiness);
  settings.add({.name = "max-concurrency",
                .help = "Open loop: further requests wait in the client; 0: none does",
                .most = loadgen::kConcurrencyMax},
               &options.max_concurrency);
  settings.add({.name = "trace",
                .help = "Open loop: arrivals and lengths of a recorded trace (Mooncake and Bailian "
                        "JSON lines, Azure and BurstGPT CSV)"},
               &options.trace);
  settings.add({.name = "time-scale",
                .help = "Every gap of the trace times this; 0.1: ten times as fast",
                .least = 1e-6,
                .most = 1e6},
               &options.time_scale);
  settings.add({.name = "requests",
                .help = "Requests in all; 0: as long as duration, else all of a file or trace, "
                        "else 100",
                .most = static_cast<double>(loadgen::kRequestsMax)},
               &options.requests);
  settings.add({.name = "duration",
                .help = "Seconds after which no more requests begin; 0: no limit",
                .least = 0,
                .most = 1e6},
               &options.duration_s);
  settings.add({.name = "warmup", .help = "Requests before, which do not count", .most = 100000},
               &options.warmup);
}

void add_prompt_settings(Settings& settings, BenchOptions& options) {
  settings.add({.name = "prompts",
                .help = "Prompts from a file (JSON lines with prompt or messages, or an array of "
                        "recorded conversations); empty: random words"},
               &options.prompts);
  settings.add({.name = "prompt-tokens", .help = "Of random prompts: N, or LEAST:MOST"},
               &options.prompt_tokens);
  settings.add({.name = "output-tokens",
                .help = "Of answers: N, or LEAST:MOST; empty: as prompts says, else 128"},
               &options.output_tokens);
  settings.add({.name = "prefix-tokens",
                .help = "Before each random prompt, the same within a group; 0: none",
                .most = loadgen::kTokensMax},
               &options.prefix_tokens);
  settings.add(
      {.name = "prefix-groups", .help = "Different shared prefixes", .least = 1, .most = 1e6},
      &options.prefix_groups);
  settings.add({.name = "turns",
                .help = "Of each conversation; later ones contain the earlier answers",
                .least = 1,
                .most = loadgen::kTurnsMax},
               &options.turns);
  settings.add({.name = "think-time",
                .help = "Seconds between an answer and the next turn",
                .least = 0,
                .most = 1e5},
               &options.think_time_s);
  settings.add({.name = "ignore-eos",
                .help = "Ask for answers of exactly the given length; =false for servers that "
                        "refuse the field"},
               &options.ignore_eos);
  settings.add({.name = "temperature", .help = "Of sampling", .least = 0, .most = 2},
               &options.temperature);
  settings.add({.name = "max-tokens-field",
                .help = "How a chat's limit is called; older servers know max_tokens only",
                .choices = {"max_completion_tokens", "max_tokens"}},
               &options.max_tokens_field);
  settings.add({.name = "extra-body", .help = "Further fields of each request, a JSON object"},
               &options.extra_body);
  settings.add({.name = "seed", .help = "Of arrivals and prompts"}, &options.seed);
}

void add_report_settings(Settings& settings, BenchOptions& options) {
  settings.add({.name = "timeout",
                .help = "Seconds for one request, after which it has failed",
                .least = 0.001,
                .most = 1e6},
               &options.timeout_s);
  settings.add(
      {.name = "retry-429", .help = "Ask again after Retry-After instead of counting a failure"},
      &options.retry_429);
  settings.add(
      {.name = "slo", .help = "For goodput: ttft:MS, tpot:MS, e2el:MS; may be given several times"},
      &options.slo);
  settings.add({.name = "json", .help = "Write everything as JSON to this file; -: print it"},
               &options.json);
  settings.add({.name = "records", .help = "Write a JSON line for each request to this file"},
               &options.records);
  settings.add({.name = "svg", .help = "Draw latency over time into this file"}, &options.svg);
}

}  // namespace

void add_bench_settings(Settings& settings, BenchOptions& options) {
  add_server_settings(settings, options);
  add_arrival_settings(settings, options);
  add_prompt_settings(settings, options);
  add_report_settings(settings, options);
}

}  // namespace troupe
