#pragma once
// One generation for the terminal: shows the text as it comes and waits for the end.

#include <kj/async.h>

#include <functional>
#include <string>
#include <vector>

#include "actors/gateway/generation.h"
#include "actors/gateway/text/choice_text.h"
#include "apps/troupe/options.h"

namespace troupe {

class TerminalAnswer final : private GenerationListener {
 public:
  using Show = std::function<void(std::string_view)>;

  TerminalAnswer(const Tokenizer& tokenizer, ChoiceTextOptions options, Show show);
  ~TerminalAnswer() noexcept override = default;

  // Runs the request's only choice to its end. The loop of `scope` drives it.
  [[nodiscard]] Status run(Generator& generator, GenerationRequest request, kj::WaitScope& scope);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<SampledToken>& tokens() const { return tokens_; }
  [[nodiscard]] FinishReason finish_reason() const { return reason_; }

 private:
  void on_prompt_scores(std::span<const SampledToken> scores) override;
  void on_tokens(uint32_t choice, std::span<const SampledToken> tokens) override;
  void on_finished(uint32_t choice, FinishReason reason, TokenId stop_token,
                   const GenerationUsage& usage) override;
  void on_failed(const Status& status) override;
  void show(const std::string& text);

  ChoiceText choice_;
  Show show_;
  Generator* generator_ = nullptr;
  RequestId request_;
  std::string text_;
  std::vector<SampledToken> tokens_;
  FinishReason reason_ = FinishReason::kStop;
  Status status_;
  kj::Own<kj::PromiseFulfiller<void>> done_;
};

// The flags as parameters; checked against the model. `logprobs` as in SamplingParams.
[[nodiscard]] Result<SamplingParams> sampling_params_of(const SamplingOptions& options,
                                                        int32_t logprobs, uint32_t vocab_size,
                                                        uint32_t context_tokens);

}  // namespace troupe
