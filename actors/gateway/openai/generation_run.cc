#include "actors/gateway/openai/generation_run.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "actors/gateway/text/choice_text.h"
#include "actors/gateway/text/escape.h"
#include "actors/gateway/tools/answer_parser.h"
#include "actors/gateway/tools/tool_grammar.h"
#include "base/assert.h"
#include "base/philox.h"
#include "engine/tokenizer/detokenizer.h"

namespace troupe {

namespace {

// Separates the seeds of a request's choices from the draws that are made with them.
constexpr uint32_t kChoiceSeedStream = 0x63686F69;

}  // namespace

class GenerationRun::Choice final {
 public:
  Choice(GenerationRun& run, const PreparedPrompt& prompt, uint32_t index, size_t offset_base)
      : index_(index),
        offset_base_(offset_base),
        reasons_(prompt.format.reasoning != ReasoningFormat::kNone),
        text_(run.tokenizer_, text_options(run, prompt)) {
    if (needs_parser(prompt)) parser_.emplace(parser_options(run, prompt, index));
  }

  void take(std::span<const SampledToken> tokens) {
    for (const SampledToken& token : tokens) {
      if (stopped()) break;  // sampled behind the stop string: not part of the answer
      tokens_.push_back({token, offset_base_ + text_.characters(), true});
      add_text(text_.append(token.token));
      count_reasoning();
    }
  }

  // A stop string that is found only now, behind one that could have been longer, is still a stop.
  void finish(FinishReason reason) {
    TROUPE_ASSERT(!finished(), index_);
    if (!stopped()) add_text(text_.finish());
    if (parser_ && !stopped()) parser_->finish(pending_);
    const bool by_itself = stopped() || reason == FinishReason::kStop;
    end_ = by_itself ? AnswerEnd::kStop : AnswerEnd::kLength;
    if (by_itself && parser_ && parser_->has_whole_calls()) end_ = AnswerEnd::kToolCalls;
  }

  // The choice has ended with its text, whatever the sequence goes on to say.
  [[nodiscard]] bool stopped() const { return text_.stopped() || (parser_ && parser_->stopped()); }
  [[nodiscard]] bool finished() const { return end_.has_value(); }
  [[nodiscard]] uint32_t token_count() const { return text_.token_count(); }
  [[nodiscard]] const std::string& stop_string() const {
    return parser_ ? parser_->stop_string() : text_.stop_string();
  }

 private:
  friend class Prompt;

  static bool needs_parser(const PreparedPrompt& prompt) {
    return prompt.format.tools != ToolFormat::kNone ||
           prompt.format.reasoning != ReasoningFormat::kNone;
  }

  static ChoiceTextOptions text_options(const GenerationRun& run, const PreparedPrompt& prompt) {
    ChoiceTextOptions options;
    options.stop_text = run.body_.stop_text;
    options.stop_token_ids = run.body_.sampling.stop_token_ids;
    if (needs_parser(prompt)) {
      options.spelled = hidden_markers(prompt.format, run.tokenizer_);
    } else {
      options.stops = run.body_.stops;
    }
    return options;
  }

  static AnswerParserOptions parser_options(const GenerationRun& run, const PreparedPrompt& prompt,
                                            uint32_t index) {
    const GenerationBody& body = run.body_;
    AnswerParserOptions options;
    options.format = prompt.format;
    options.prompt_end = prompt.end;
    for (const Tool& tool : body.tools.tools) options.tool_names.push_back(tool.name);
    options.guided = body.tools.on() && !body.sampling.grammar.empty();
    options.calls_only = options.guided && body.tools.choice != ToolChoice::kAuto;
    options.one_call = is_one_call(body.tools);
    options.stops = body.stops;
    options.stop_text = body.stop_text;
    options.stop_in_reasoning = body.stop_in_reasoning;
    options.response_id = run.response_id_;
    options.choice = index;
    return options;
  }

  void add_text(std::string text) {
    if (text.empty()) return;
    if (parser_) return parser_->push(text, pending_);
    if (pending_.empty()) pending_.push_back({AnswerPartKind::kText, 0, {}, {}});
    pending_.back().text += text;  // without a parser, all is text
  }

  // The token that ends the reasoning belongs to it.
  void count_reasoning() {
    if (!parser_ || reasoning_counted_) return;
    using enum AnswerParser::Reasoning;
    if (parser_->reasoning() == kNone) return;
    reasoning_tokens_ = text_.token_count();
    reasoning_counted_ = parser_->reasoning() == kClosed;
  }

  uint32_t index_;
  size_t offset_base_;  // characters of the echoed prompt
  bool reasons_;
  ChoiceText text_;
  std::optional<AnswerParser> parser_;  // none where all text is text
  uint32_t reasoning_tokens_ = 0;
  bool reasoning_counted_ = false;
  // Not given yet.
  std::vector<ChoiceToken> tokens_;
  std::vector<AnswerPart> pending_;
  std::optional<AnswerEnd> end_;
  std::optional<uint32_t> cached_tokens_;
  bool begun_ = false;
  bool closed_ = false;  // its end has been given
  // What came before the prompt's scores were complete.
  std::vector<SampledToken> early_;
};

// One prompt and the listener of its generation. Invariant: live_ exactly while the generator may
// still call it.
class GenerationRun::Prompt final : public GenerationListener {
 public:
  Prompt(GenerationRun& run, uint32_t index, PreparedPrompt prepared)
      : run_(run), prepared_(std::move(prepared)) {
    const uint32_t n = run.body_.choices;
    const size_t echoed = count_code_points(prepared_.echo_text);
    for (uint32_t c = 0; c < n; ++c) {
      choices_.push_back(std::make_unique<Choice>(run, prepared_, index * n + c, echoed));
    }
  }

  // Nothing is generated and nothing scored: the answer is the prompt, or nothing.
  [[nodiscard]] bool needs_generator() const {
    return prepared_.max_tokens > 0 || (wants_scores() && prepared_.tokens.size() > 1);
  }

  Status submit() {
    GenerationRequest request;
    request.label = run_.label_;
    request.prompt = prepared_.tokens;
    request.cache_salt = run_.body_.cache_salt;
    request.model = run_.model_digest_;
    const uint64_t seed = run_.seed_;
    for (size_t c = 0; c < choices_.size(); ++c) {
      SamplingParams params = run_.body_.sampling;
      params.max_tokens = prepared_.max_tokens;
      if (c > 0) params.prompt_logprobs = -1;  // once is enough for all choices
      // Of the choice's number alone: the same prompt gives the same choices in any batch.
      params.seed = philox_u64(seed, c, kChoiceSeedStream);
      request.choices.push_back(std::move(params));
    }
    Result<RequestId> id = run_.generator_.submit(std::move(request), *this);
    if (!id.ok()) return id.status();
    id_ = id.value();
    live_ = true;
    return ok_status();
  }

  void finish_without_generator() {
    TROUPE_ASSERT(!needs_generator(), prepared_.max_tokens);
    for (auto& choice : choices_) {
      choice->finish(FinishReason::kLength);
      flush(*choice);
    }
  }

  void cancel() {
    if (!std::exchange(live_, false)) return;
    run_.generator_.cancel(id_);
  }

  void on_prompt_scores(std::span<const SampledToken> scores) override {
    if (!live_) return;
    scores_.insert(scores_.end(), scores.begin(), scores.end());
    if (scores_.size() > prepared_.tokens.size() - 1) return fail_scores();
    if (!ready()) return;
    for (auto& choice : choices_) {
      const std::vector<SampledToken> early = std::exchange(choice->early_, {});
      const auto index = static_cast<uint32_t>(&choice - choices_.data());
      if (!early.empty()) take(index, early);
    }
    close_finished();
  }

  void on_tokens(uint32_t index, std::span<const SampledToken> tokens) override {
    TROUPE_ASSERT(index < choices_.size(), index, choices_.size());
    Choice& choice = *choices_[index];
    if (!live_ || choice.finished()) return;
    if (!ready()) {
      choice.early_.insert(choice.early_.end(), tokens.begin(), tokens.end());
      return;
    }
    take(index, tokens);
    close_finished();
  }

  void on_finished(uint32_t index, FinishReason reason, TokenId /*stop_token*/,
                   const GenerationUsage& usage) override {
    TROUPE_ASSERT(index < choices_.size(), index, choices_.size());
    Choice& choice = *choices_[index];
    if (!live_ || choice.finished()) return;
    if (!ready()) return fail_scores();
    choice.cached_tokens_ = usage.cached_tokens;
    choice.finish(reason);
    flush(choice);
    close_finished();
  }

  void on_failed(const Status& status) override {
    if (!std::exchange(live_, false)) return;
    run_.abort(status);
  }

  [[nodiscard]] bool complete() const {
    return std::all_of(choices_.begin(), choices_.end(), [](auto& c) { return c->closed_; });
  }

  void add_to(UsageTotals& totals) const {
    totals.prompt_tokens += prepared_.tokens.size();
    std::optional<uint32_t> cached;
    for (const auto& choice : choices_) {
      totals.completion_tokens += choice->token_count();
      if (choice->reasons_) {
        totals.reasoning_tokens = totals.reasoning_tokens.value_or(0) + choice->reasoning_tokens_;
      }
      // The choice that found least computed the prompt; the others shared it.
      if (choice->cached_tokens_) {
        cached = std::min(cached.value_or(UINT32_MAX), *choice->cached_tokens_);
      }
    }
    if (!needs_generator()) cached = 0;
    if (!cached) totals.cached_tokens.reset();
    if (totals.cached_tokens) *totals.cached_tokens += *cached;
  }

 private:
  [[nodiscard]] bool wants_scores() const { return run_.body_.sampling.prompt_logprobs >= 0; }
  // The echoed prompt stands before everything else, so nothing is shown before its scores.
  [[nodiscard]] bool ready() const {
    return !wants_scores() || scores_.size() == prepared_.tokens.size() - 1;
  }

  void take(uint32_t index, std::span<const SampledToken> tokens) {
    Choice& choice = *choices_[index];
    choice.take(tokens);
    if (choice.stopped()) {
      choice.finish(FinishReason::kStop);
      choice.cached_tokens_ = run_.generator_.cancel_choice(id_, index).cached_tokens;
    }
    flush(choice);
  }

  // Gives what there is of a choice.
  void flush(Choice& choice) {
    const bool first = !std::exchange(choice.begun_, true);
    std::vector<ChoiceToken> prompt;
    if (first && run_.body_.echo) {
      std::string text = prepared_.echo_text;
      if (!choice.pending_.empty()) text += choice.pending_.front().text;
      choice.pending_.clear();
      choice.add_text(std::move(text));
      if (wants_scores()) prompt = scored_prompt();
    }
    choice.closed_ = choice.finished();
    const std::vector<AnswerPart> parts = std::exchange(choice.pending_, {});
    const std::vector<ChoiceToken> tokens = std::exchange(choice.tokens_, {});
    if (!first && parts.empty() && tokens.empty() && !choice.finished()) return;
    const std::string_view stop = choice.finished() ? choice.stop_string() : std::string_view();
    run_.give({choice.index_, first, parts, prompt, tokens, choice.end_, stop});
  }

  [[nodiscard]] std::vector<ChoiceToken> scored_prompt() const {
    const std::vector<TokenId>& tokens = prepared_.tokens;
    std::vector<ChoiceToken> out;
    IncrementalDetokenizer detokenizer(run_.tokenizer_, SpecialTokens::kSpell);
    size_t offset = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      SampledToken token = i == 0 ? SampledToken{tokens[0], 0.0F, {}} : scores_[i - 1];
      out.push_back({std::move(token), offset, i > 0});
      const std::string text = detokenizer.append(tokens[i]);
      // A begin token that the tokenizer added is not in the text.
      if (i == 0 && !prepared_.echo_text.starts_with(text)) continue;
      offset += count_code_points(text);
    }
    return out;
  }

  void close_finished() {
    if (std::all_of(choices_.begin(), choices_.end(), [](auto& c) { return c->finished(); })) {
      live_ = false;
    }
    run_.finish_if_complete();
  }

  void fail_scores() {
    cancel();
    run_.abort(Status(StatusCode::kInternal,
                      "the worker did not score each token of the prompt exactly once"));
  }

  GenerationRun& run_;
  PreparedPrompt prepared_;
  RequestId id_;
  bool live_ = false;
  std::vector<SampledToken> scores_;  // of prompt tokens 1, 2, ...
  std::vector<std::unique_ptr<Choice>> choices_;
};

GenerationRun::GenerationRun(PreparedRequest request, const RunIdentity& identity,
                             Generator& generator, RunSink& sink)
    : body_(std::move(request.body)),
      response_id_(identity.response_id),
      label_(identity.label),
      model_digest_(request.model->served().digest),
      seed_(body_.seed.value_or(identity.seed_default)),
      tokenizer_(request.model->served().tokenizer),
      generator_(generator),
      sink_(sink) {
  for (uint32_t i = 0; i < request.prompts.size(); ++i) {
    prompts_.push_back(std::make_unique<Prompt>(*this, i, std::move(request.prompts[i])));
  }
}

GenerationRun::~GenerationRun() {
  cancel_all();
}

Status GenerationRun::start() {
  TROUPE_ASSERT(!started_, prompts_.size());
  started_ = true;
  for (auto& prompt : prompts_) {
    if (!prompt->needs_generator()) continue;
    if (const Status status = prompt->submit(); !status.ok()) {
      cancel_all();
      ended_ = true;
      return status;
    }
  }
  for (auto& prompt : prompts_) {
    if (!prompt->needs_generator()) prompt->finish_without_generator();
  }
  finish_if_complete();
  return ok_status();
}

void GenerationRun::abort(const Status& status) {
  cancel_all();
  if (std::exchange(ended_, true)) return;
  sink_.on_error(status);
}

void GenerationRun::give(const ChoiceDelta& delta) {
  if (!ended_) sink_.on_delta(delta, *this);
}

void GenerationRun::cancel_all() {
  for (auto& prompt : prompts_) prompt->cancel();
}

void GenerationRun::finish_if_complete() {
  const bool complete = std::all_of(prompts_.begin(), prompts_.end(),
                                    [](auto& prompt) { return prompt->complete(); });
  if (!complete || std::exchange(ended_, true)) return;
  sink_.on_end(totals());
}

UsageTotals GenerationRun::totals() const {
  UsageTotals totals;
  totals.cached_tokens = 0;
  for (const auto& prompt : prompts_) prompt->add_to(totals);
  return totals;
}

}  // namespace troupe
