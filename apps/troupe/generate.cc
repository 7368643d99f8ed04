#include <glog/logging.h>
#include <kj/async-io.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "apps/troupe/local_cluster.h"
#include "apps/troupe/terminal_answer.h"
#include "base/os/system_clock.h"

namespace troupe {
namespace {

std::string as_json(const std::vector<TokenId>& prompt, const TerminalAnswer& answer) {
  nlohmann::ordered_json out;
  out["prompt_ids"] = prompt;
  for (const SampledToken& token : answer.tokens()) {
    out["ids"].push_back(token.token);
    out["logprobs"].push_back(token.logprob);
  }
  out["text"] = answer.text();
  out["finish_reason"] = answer.finish_reason() == FinishReason::kStop ? "stop" : "length";
  return out.dump(2);
}

Status generate(const GenerateOptions& options) {
  const SystemClock clock;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  TROUPE_ASSIGN_OR_RETURN(const auto loaded, LoadedModel::load(options.engine, clock));
  ModelMetrics metrics;
  const std::vector<LocalModel> models{{*loaded, loaded->name()}};
  TROUPE_ASSIGN_OR_RETURN(const auto cluster,
                          LocalCluster::start(options.engine, models, clock, metrics,
                                              io.unixEventPort, io.provider->getTimer()));
  std::string prompt = options.prompt;
  if (prompt == "-") prompt.assign(std::istreambuf_iterator<char>(std::cin), {});

  GenerationRequest request;
  request.label = "generate";
  TROUPE_ASSIGN_OR_RETURN(request.prompt, loaded->tokenizer().encode(TextPiece{prompt, true}));
  if (request.prompt.empty()) {
    return invalid_argument("the prompt is empty; give --prompt some text");
  }
  TROUPE_ASSIGN_OR_RETURN(
      SamplingParams params,
      sampling_params_of(options.sampling, options.json ? 0 : -1,
                         static_cast<uint32_t>(loaded->tokenizer().vocab_size()),
                         loaded->context_tokens()));
  params.ignore_eos = options.ignore_eos;
  request.choices = {std::move(params)};
  const std::vector<TokenId> prompt_ids = request.prompt;

  TerminalAnswer answer(loaded->tokenizer(), {options.sampling.stop, StopText::kExclude, {}},
                        [&](std::string_view text) {
                          if (!options.json) std::cout << text << std::flush;
                        });
  TROUPE_RETURN_IF_ERROR(cluster->wait_until_ready(io.waitScope));
  TROUPE_RETURN_IF_ERROR(answer.run(cluster->gateway(), std::move(request), io.waitScope));
  if (options.json) std::cout << as_json(prompt_ids, answer);
  std::cout << std::endl;
  return ok_status();
}

}  // namespace

int run_generate(const GenerateOptions& options) {
  FLAGS_minloglevel = google::GLOG_WARNING;
  const Status status = generate(options);
  return status.ok() ? 0 : fail(status);
}

}  // namespace troupe
