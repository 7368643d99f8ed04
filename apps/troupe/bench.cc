#include "apps/troupe/bench.h"

#include <glog/logging.h>
#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <ctime>
#include <fstream>
#include <iostream>
#include <optional>
#include <thread>

#include "apps/troupe/options.h"
#include "base/os/environment.h"
#include "base/os/priority.h"
#include "base/os/system_clock.h"
#include "base/os/thread_time.h"
#include "loadgen/lag_meter.h"
#include "loadgen/limits.h"
#include "loadgen/load.h"
#include "loadgen/report.h"
#include "loadgen/tokens.h"

namespace troupe {
namespace {

using loadgen::Load;
using loadgen::LoadOptions;
using Json = nlohmann::ordered_json;

constexpr uint32_t kConcurrencyDefault = 8;
constexpr uint64_t kRequestsDefault = 100;
constexpr const char* kOutputTokensDefault = "128";
// Conversations of the warm-up, which no run reaches.
constexpr uint64_t kWarmupConversations = uint64_t{1} << 40;
constexpr uint32_t kWarmupConcurrency = 8;
constexpr kj::Duration kProgressInterval = 500 * kj::MILLISECONDS;
constexpr int kExitInterrupted = 130;

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

std::string fixed(double value, int digits) {
  char text[48];
  const int size = std::snprintf(text, sizeof text, "%.*f", digits, value);
  return {text, static_cast<size_t>(size)};
}

// What the options say once they have been checked, before the server was asked anything.
struct Plan {
  loadgen::Url url;
  loadgen::Slos slos;
  loadgen::LengthRange prompt_tokens, output_tokens;
  loadgen::RequestShape shape;
  LoadOptions load;
  std::optional<Trace> trace;
  std::vector<loadgen::Conversation> given;  // of a file
  bool is_open = false;
  std::string how;  // "4 at once", "poisson arrivals at 2/s"
};

Status check_combination(const BenchOptions& options) {
  if (options.rate > 0 && !options.trace.empty()) {
    return invalid_argument("--rate and --trace both say when requests arrive; give one of them");
  }
  const bool is_open = options.rate > 0 || !options.trace.empty();
  if (is_open && options.concurrency > 0) {
    return invalid_argument(
        "--concurrency is for a closed loop, and --rate or --trace make an open one; leave it out, "
        "or give --max-concurrency to limit the open one");
  }
  if (!is_open && options.max_concurrency > 0) {
    return invalid_argument(
        "--max-concurrency limits an open loop; give --rate or --trace, or --concurrency instead");
  }
  if (!options.trace.empty() && !options.prompts.empty()) {
    return invalid_argument("--trace and --prompts both say what is asked; give one of them");
  }
  if (options.turns > 1 && !options.trace.empty()) {
    return invalid_argument(
        "--turns is for random prompts and recorded conversations, not for "
        "--trace; leave one of them out");
  }
  if (options.prefix_tokens > 0 && (!options.trace.empty() || !options.prompts.empty())) {
    return invalid_argument(
        "--prefix-tokens is for random prompts; leave out --trace and "
        "--prompts");
  }
  return ok_status();
}

Result<std::vector<loadgen::Conversation>> read_given(const BenchOptions& options,
                                                      bool keep_lengths,
                                                      const loadgen::LengthRange& output_tokens) {
  std::ifstream in(options.prompts, std::ios::binary);
  if (!in) {
    return Status(StatusCode::kNotFound, "--prompts: " + options.prompts + " cannot be opened");
  }
  return loadgen::read_prompts(in, options.prompts,
                               {output_tokens, keep_lengths, options.turns, options.seed});
}

Status read_inputs(const BenchOptions& options, Plan& plan) {
  if (!options.trace.empty()) {
    std::ifstream in(options.trace, std::ios::binary);
    if (!in) {
      return {StatusCode::kNotFound, "--trace: " + options.trace + " cannot be opened"};
    }
    TROUPE_ASSIGN_OR_RETURN(plan.trace, read_trace(in, options.trace));
  }
  if (!options.prompts.empty()) {
    TROUPE_ASSIGN_OR_RETURN(plan.given,
                            read_given(options, options.output_tokens.empty(), plan.output_tokens));
  }
  return ok_status();
}

void set_load(const BenchOptions& options, Plan& plan) {
  LoadOptions& load = plan.load;
  plan.is_open = options.rate > 0 || plan.trace;
  load.concurrency = plan.is_open               ? options.max_concurrency
                     : options.concurrency == 0 ? kConcurrencyDefault
                                                : options.concurrency;
  load.requests = options.requests;
  if (options.duration_s > 0) load.duration = seconds(options.duration_s);
  if (load.requests == 0 && plan.trace) {
    load.requests = plan.trace->requests.size();
  } else if (load.requests == 0 && !load.duration) {
    for (const loadgen::Conversation& each : plan.given) load.requests += each.turns.size();
    if (load.requests == 0) load.requests = kRequestsDefault;
  }
  load.timeout = seconds(options.timeout_s);
  load.think_time = seconds(options.think_time_s);
  load.retry_429 = options.retry_429;
  plan.how = plan.trace ? "arrivals of a trace"
             : options.rate == 0
                 ? std::to_string(load.concurrency) + " at once"
                 : options.arrival + " arrivals at " + fixed(options.rate, 3) + "/s";
}

Result<Plan> make_plan(const BenchOptions& options) {
  Plan plan;
  TROUPE_RETURN_IF_ERROR(check_combination(options));
  TROUPE_ASSIGN_OR_RETURN(plan.url, loadgen::parse_url(options.url));
  TROUPE_ASSIGN_OR_RETURN(plan.slos, loadgen::parse_slos(options.slo));
  TROUPE_ASSIGN_OR_RETURN(plan.prompt_tokens,
                          loadgen::parse_length_range("--prompt-tokens", options.prompt_tokens));
  TROUPE_ASSIGN_OR_RETURN(plan.output_tokens, loadgen::parse_length_range(
                                                  "--output-tokens", options.output_tokens.empty()
                                                                         ? kOutputTokensDefault
                                                                         : options.output_tokens));
  TROUPE_ASSIGN_OR_RETURN(plan.shape.extra, loadgen::parse_extra_body(options.extra_body));
  plan.shape.endpoint =
      options.endpoint == "chat" ? loadgen::Endpoint::kChat : loadgen::Endpoint::kCompletions;
  plan.shape.temperature = options.temperature;
  plan.shape.ignore_eos = options.ignore_eos;
  plan.shape.max_tokens_field = options.max_tokens_field;
  TROUPE_RETURN_IF_ERROR(read_inputs(options, plan));
  set_load(options, plan);
  return plan;
}

// Every option as it was used; the key is nobody's business.
Json config_of(const BenchOptions& options, const Plan& plan) {
  return {{"url", options.url},
          {"model", plan.shape.model},
          {"endpoint", options.endpoint},
          {"loop", plan.is_open ? "open" : "closed"},
          {"concurrency", plan.is_open ? 0 : plan.load.concurrency},
          {"max_concurrency", options.max_concurrency},
          {"rate", options.rate},
          {"arrival", options.arrival},
          {"burstiness", options.burstiness},
          {"trace", options.trace},
          {"time_scale", options.time_scale},
          {"requests", plan.load.requests},
          {"duration_s", options.duration_s},
          {"warmup", options.warmup},
          {"prompts", options.prompts},
          {"prompt_tokens", options.prompt_tokens},
          {"output_tokens", options.output_tokens},
          {"prefix_tokens", options.prefix_tokens},
          {"prefix_groups", options.prefix_groups},
          {"turns", options.turns},
          {"think_time_s", options.think_time_s},
          {"ignore_eos", options.ignore_eos},
          {"temperature", options.temperature},
          {"max_tokens_field", options.max_tokens_field},
          {"extra_body", plan.shape.extra},
          {"seed", options.seed},
          {"timeout_s", options.timeout_s},
          {"retry_429", options.retry_429}};
}

Json environment_of(const Clock& clock) {
  utsname system{};
  uname(&system);
  const std::time_t now = clock.unix_seconds();
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return {{"date", date},
          {"troupe", TROUPE_VERSION},
          {"host", system.nodename},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"machine", system.machine},
          {"cores", std::thread::hardware_concurrency()}};
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (out) return ok_status();
  return {StatusCode::kUnavailable,
          "cannot write " + path + "; name a file in a folder that may " + "be written to"};
}

// One command, from the first question to the server to the report.
class Bench {
 public:
  Bench(const BenchOptions& options, Plan plan, std::string api_key)
      : options_(options),
        plan_(std::move(plan)),
        peer_(io_, plan_.url, std::move(api_key)),
        shows_progress_(isatty(STDERR_FILENO) == 1) {}

  Result<int> run() {
    std::optional<std::string> failure;
    peer_.resolve()
        .then([] {}, [&](kj::Exception&& e) { failure = e.getDescription().cStr(); })
        .wait(io_.waitScope);
    if (failure) {
      return Status(StatusCode::kNotFound, "--url: " + plan_.url.host + " is not known (" +
                                               *failure + "); name a server that exists");
    }
    if (options_.model.empty()) {
      TROUPE_ASSIGN_OR_RETURN(plan_.shape.model, loadgen::find_model(peer_, timer_, io_.waitScope));
    } else {
      plan_.shape.model = options_.model;
    }
    loadgen::Tokens tokens(peer_, timer_, plan_.shape.model);
    const auto prompts = make_prompts(tokens);
    kj::UnixEventPort::captureSignal(SIGINT);
    warm_up(*prompts);
    if (!was_interrupted_) measure(*prompts);
    if (load_ == nullptr) return kExitInterrupted;
    if (!was_interrupted_) count_missing(tokens);
    return report();
  }

 private:
  std::unique_ptr<loadgen::PromptSource> make_prompts(loadgen::Tokens& tokens) {
    if (!plan_.given.empty()) return loadgen::given_prompts(plan_.given);
    auto words = tokens.single_token_words(loadgen::common_words(), io_.waitScope);
    constexpr size_t kWordsMin = 16;
    words_are_counted_ = words.size() >= kWordsMin;
    if (!words_are_counted_) words = loadgen::common_words();
    if (plan_.trace) return loadgen::trace_prompts(*plan_.trace, options_.seed, std::move(words));
    return loadgen::random_prompts(
        {plan_.prompt_tokens, plan_.output_tokens, options_.prefix_tokens, options_.prefix_groups,
         options_.turns, options_.seed},
        std::move(words));
  }

  // Waits for `work` or Ctrl-C, which cancels `load`; what follows takes moments.
  void wait_for(kj::Promise<void> work, Load& load) {
    auto signal =
        io_.unixEventPort.onSignal(SIGINT).then([this](siginfo_t&&) { was_interrupted_ = true; });
    work.exclusiveJoin(kj::mv(signal)).wait(io_.waitScope);
    if (was_interrupted_) load.cancel();
  }

  void warm_up(const loadgen::PromptSource& prompts) {
    if (options_.warmup == 0) return;
    LoadOptions how = plan_.load;
    how.requests = options_.warmup;
    how.duration.reset();
    how.concurrency = plan_.is_open ? kWarmupConcurrency : plan_.load.concurrency;
    Load load(peer_, timer_, clock_, prompts, nullptr, plan_.shape, how, kWarmupConversations);
    wait_for(load.run(), load);
  }

  std::unique_ptr<loadgen::Arrivals> make_arrivals() const {
    if (plan_.trace) return loadgen::trace_arrivals(*plan_.trace, options_.time_scale);
    if (!plan_.is_open) return nullptr;
    if (options_.arrival == "constant") return loadgen::constant_arrivals(options_.rate);
    return loadgen::gamma_arrivals(options_.rate, options_.burstiness, options_.seed);
  }

  void measure(const loadgen::PromptSource& prompts) {
    arrivals_ = make_arrivals();
    load_ = std::make_unique<Load>(peer_, timer_, clock_, prompts, arrivals_.get(), plan_.shape,
                                   plan_.load, 0);
    prefer_this_thread();
    const loadgen::LagMeter meter(timer_, clock_);
    const Duration cpu_before = thread_cpu_time();
    auto showing = shows_progress_ ? show_progress().eagerlyEvaluate(nullptr)
                                   : kj::Promise<void>(kj::READY_NOW);
    wait_for(load_->run(), *load_);
    showing = kj::READY_NOW;
    if (shows_progress_) std::cerr << "\r\x1b[K" << std::flush;
    client_.loop_lag_ms = meter.late_ms();
    client_.cpu_share = loadgen::to_seconds(thread_cpu_time() - cpu_before) /
                        std::max(loadgen::to_seconds(load_->elapsed()), 1e-9);
    if (!plan_.is_open || plan_.load.concurrency > 0) return;
    for (const loadgen::RequestRecord& record : load_->records()) {
      if (record.turn == 0) {
        client_.lateness_ms.push_back(loadgen::to_ms(record.start - record.scheduled));
      }
    }
  }

  kj::Promise<void> show_progress() {
    return timer_.afterDelay(kProgressInterval).then([this] {
      const loadgen::LoadProgress now = load_->progress();
      const double elapsed = std::max(loadgen::to_seconds(load_->elapsed()), 1e-3);
      const std::string of =
          plan_.load.requests > 0 ? "/" + std::to_string(plan_.load.requests) : "";
      std::cerr << "\r\x1b[K" << fixed(elapsed, 1) << " s: " << now.completed << of << " done, "
                << now.failed << " failed, " << now.in_flight << " under way"
                << (now.waiting > 0 ? ", " + std::to_string(now.waiting) + " waiting" : "") << ", "
                << fixed(static_cast<double>(now.completed) / elapsed, 2) << " requests/s, "
                << fixed(static_cast<double>(now.output_tokens) / elapsed, 1) << " tokens/s"
                << std::flush;
      return show_progress();
    });
  }

  // Answers without usage get their tokens counted, where the server can.
  void count_missing(loadgen::Tokens& tokens) {
    for (const auto& [index, text] : load_->uncounted()) {
      const auto count = tokens.count(text, io_.waitScope);
      if (!count) return;
      loadgen::RequestRecord& record = load_->records()[index];
      record.output_tokens = *count;
      record.token_source = loadgen::TokenSource::kTokenize;
    }
  }

  Result<int> report() {
    loadgen::Report report;
    report.title =
        plan_.shape.model + " at " + options_.url + ", " + options_.endpoint + ", " + plan_.how;
    report.config = config_of(options_, plan_);
    report.config["prompt_words_counted_by_server"] = words_are_counted_;
    report.environment = environment_of(clock_);
    report.slos = plan_.slos;
    report.measures = loadgen::measure(load_->records(), load_->elapsed(), plan_.slos);
    report.client = loadgen::judge(client_, report.measures);
    report.was_interrupted = was_interrupted_;
    const std::string json = json_of(report).dump(2, ' ', false, Json::error_handler_t::replace);
    std::cout << (options_.json == "-" ? json + "\n" : table_of(report)) << std::flush;
    if (!options_.json.empty() && options_.json != "-") {
      TROUPE_RETURN_IF_ERROR(write_file(options_.json, json + "\n"));
    }
    if (!options_.records.empty()) {
      TROUPE_RETURN_IF_ERROR(write_file(options_.records, json_lines_of(load_->records())));
    }
    if (!options_.svg.empty()) {
      TROUPE_RETURN_IF_ERROR(write_file(options_.svg, svg_of(report, load_->records())));
    }
    if (was_interrupted_) return kExitInterrupted;
    return report.measures.completed > 0 ? 0 : 1;
  }

  const BenchOptions& options_;
  Plan plan_;
  const SystemClock clock_;
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  kj::Timer& timer_ = io_.provider->getTimer();
  loadgen::HttpPeer peer_;
  const bool shows_progress_;
  bool words_are_counted_ = false, was_interrupted_ = false;
  std::unique_ptr<loadgen::Arrivals> arrivals_;
  std::unique_ptr<Load> load_;
  loadgen::ClientLoad client_;
};

}  // namespace

int run_bench(const BenchOptions& options) {
  auto plan = make_plan(options);
  if (!plan.ok()) return fail(plan.status());
  std::string key = !options.api_key.empty() ? options.api_key
                                             : environment_variable("OPENAI_API_KEY").value_or("");
  for (const char c : key) {
    if (c > ' ' && c <= '~') continue;
    return fail(
        invalid_argument("--api-key must be visible ASCII without blanks; check the quotes "
                         "around it"));
  }
  const auto code = Bench(options, std::move(plan).value(), std::move(key)).run();
  return code.ok() ? code.value() : fail(code.status());
}

}  // namespace troupe
