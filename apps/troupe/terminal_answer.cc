#include "apps/troupe/terminal_answer.h"

#include "base/assert.h"
#include "engine/sample/sampler.h"
#include "engine/sample/validate.h"

namespace troupe {

TerminalAnswer::TerminalAnswer(const Tokenizer& tokenizer, ChoiceTextOptions options, Show show)
    : choice_(tokenizer, std::move(options)), show_(std::move(show)) {}

Status TerminalAnswer::run(Generator& generator, GenerationRequest request, kj::WaitScope& scope) {
  TROUPE_ASSERT(request.choices.size() == 1, request.choices.size());
  auto done = kj::newPromiseAndFulfiller<void>();
  done_ = kj::mv(done.fulfiller);
  generator_ = &generator;
  TROUPE_ASSIGN_OR_RETURN(request_, generator.submit(std::move(request), *this));
  done.promise.wait(scope);
  return status_;
}

void TerminalAnswer::on_prompt_scores(std::span<const SampledToken> /*scores*/) {}

void TerminalAnswer::on_tokens(uint32_t choice, std::span<const SampledToken> tokens) {
  for (const SampledToken& token : tokens) {
    tokens_.push_back(token);
    show(choice_.append(token.token));
    if (!choice_.stopped()) continue;
    reason_ = FinishReason::kStop;
    generator_->cancel_choice(request_, choice);
    done_->fulfill();
    return;
  }
}

void TerminalAnswer::on_finished(uint32_t /*choice*/, FinishReason reason, TokenId /*stop_token*/,
                                 const GenerationUsage& /*usage*/) {
  show(choice_.finish());
  reason_ = reason;
  done_->fulfill();
}

void TerminalAnswer::on_failed(const Status& status) {
  status_ = status;
  done_->fulfill();
}

void TerminalAnswer::show(const std::string& text) {
  if (text.empty()) return;
  text_ += text;
  show_(text);
}

Result<SamplingParams> sampling_params_of(const SamplingOptions& options, int32_t logprobs,
                                          uint32_t vocab_size, uint32_t context_tokens) {
  SamplingParams params;
  params.temperature = options.temperature;
  params.top_k = options.top_k;
  params.top_p = options.top_p;
  params.min_p = options.min_p;
  params.repetition_penalty = options.repetition_penalty;
  params.seed = choice_seed(options.seed, 0);
  params.max_tokens = options.max_tokens;
  params.logprobs = logprobs;
  TROUPE_RETURN_IF_ERROR(validate(params, {vocab_size, context_tokens, "logprobs"}));
  return params;
}

}  // namespace troupe
