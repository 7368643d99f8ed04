#include "sim/sim_client.h"

#include <algorithm>
#include <utility>

namespace troupe::sim {
namespace {

double seconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

SimClient::SimClient(const Environment& environment, uint64_t number, SimRequest request)
    : environment_(environment),
      number_(number),
      request_(std::move(request)),
      prompt_tokens_(static_cast<uint32_t>(request_.prompt.size())) {
  for (const SamplingParams& params : request_.choices) {
    Choice& choice = choices_.emplace_back();
    if (!environment_.checks_tokens) continue;
    choice.expected =
        answer_of(environment_.model, request_.prompt, params, environment_.context_tokens);
  }
  ++environment_.measured.requests;
}

void SimClient::violate(std::string_view oracle, const std::string& what) {
  environment_.log.violate(oracle, "client " + std::to_string(number_) + ": " + what);
}

bool SimClient::submit(SimFront* front) {
  submitted_ = environment_.events.now();
  GenerationRequest asked;
  asked.label = std::to_string(number_);
  asked.choices = request_.choices;
  asked.cache_salt = request_.cache_salt;
  asked.prompt = request_.prompt;
  Result<RequestId> id = Status(StatusCode::kUnavailable, "the front is down");
  if (front != nullptr) id = front->gateway().submit(std::move(asked), *this);
  if (id.ok()) {
    id_ = id.value();
    front_ = front;
    request_.prompt = {};
    environment_.log.note("asks", "client", number_, id_.value);
    return true;
  }
  if (request_.retries > 0) {
    --request_.retries;
    return false;
  }
  environment_.log.note("is refused", "client", number_);
  end(environment_.measured.refused);
  return true;
}

void SimClient::leave() {
  if (over_ || front_ == nullptr) return;
  environment_.log.note("leaves", "client", number_, id_.value);
  for (const Choice& choice : choices_) front_->tally().abort += choice.ended ? 0 : 1;
  SimFront& front = *front_;
  end(environment_.measured.left);
  front.gateway().cancel(id_);
}

void SimClient::on_front_lost(const SimFront& front) {
  if (over_ || front_ != &front) return;
  environment_.log.note("is cut off", "client", number_);
  end(environment_.measured.failed);
}

void SimClient::end(uint64_t& how) {
  ++how;
  over_ = true;
  front_ = nullptr;
  for (Choice& choice : choices_) choice.expected = {};
}

std::string SimClient::describe() const {
  std::string text = "client " + std::to_string(number_) + " (request " +
                     std::to_string(id_.value) + ", prompt of " + std::to_string(prompt_tokens_) +
                     ") has waited for " +
                     std::to_string(seconds_between(submitted_, environment_.events.now())) + " s;";
  for (const Choice& choice : choices_) {
    text +=
        " " + std::to_string(choice.tokens) + " tokens" + (choice.ended ? " and its end;" : ";");
  }
  return text;
}

void SimClient::count_prompt() {
  if (!std::exchange(prompt_counted_, true)) front_->tally().prompt_tokens += prompt_tokens_;
}

void SimClient::on_prompt_scores(std::span<const SampledToken> scores) {
  if (over_) return violate("once", "hears scores after its end");
  if (!environment_.checks_tokens) return;
  const auto& expected = choices_[0].expected.prompt_scores;
  if (scores_ + scores.size() > expected.size() ||
      !std::equal(scores.begin(), scores.end(),
                  expected.begin() + static_cast<ptrdiff_t>(scores_))) {
    violate("tokens", "prompt scores from " + std::to_string(scores_) + " on are wrong");
  }
  scores_ += scores.size();
}

void SimClient::on_tokens(uint32_t index, std::span<const SampledToken> tokens) {
  if (over_) return violate("once", "hears tokens after its end");
  Choice& choice = choices_[index];
  if (choice.ended) return violate("once", "hears tokens of a choice that has ended");
  count_prompt();
  Tally& tally = front_->tally();
  tally.tokens += tokens.size();
  const TimePoint now = environment_.events.now();
  if (choice.tokens == 0) {
    ++tally.first_tokens;
    choice.first = now;
  } else {
    environment_.measured.itl.push_back(static_cast<float>(seconds_between(choice.last, now)));
  }
  choice.last = now;
  if (environment_.checks_tokens) {
    const auto& expected = choice.expected.tokens;
    if (choice.tokens + tokens.size() > expected.size() ||
        !std::equal(tokens.begin(), tokens.end(), expected.begin() + choice.tokens)) {
      violate("tokens", "choice " + std::to_string(index) + " of request " +
                            std::to_string(id_.value) + " differs from the single worker's at " +
                            std::to_string(choice.tokens) + " or after it");
    }
  }
  choice.tokens += static_cast<uint32_t>(tokens.size());
  const bool is_last = index + 1 == choices_.size();
  if (index == 0 && request_.leaves_after_tokens && choice.tokens >= *request_.leaves_after_tokens)
    return leave();
  if (is_last && request_.stops_last_choice_after &&
      choice.tokens >= *request_.stops_last_choice_after) {
    choice.ended = true;
    ++tally.stop;
    SimFront& front = *front_;
    const bool all_ended =
        std::all_of(choices_.begin(), choices_.end(), [](const Choice& one) { return one.ended; });
    if (all_ended) end(environment_.measured.completed);
    front.gateway().cancel_choice(id_, index);
  }
}

void SimClient::on_embedding(uint32_t index, std::span<const float> values) {
  if (over_) return violate("once", "hears a vector after its end");
  Choice& choice = choices_[index];
  if (std::exchange(choice.embedded, true)) return violate("once", "hears a second vector");
  if (!environment_.checks_tokens) return;
  const std::vector<float>& expected = choice.expected.embedding;
  if (!std::equal(values.begin(), values.end(), expected.begin(), expected.end()))
    violate("tokens", "the vector of choice " + std::to_string(index) + " is wrong");
}

void SimClient::on_finished(uint32_t index, FinishReason reason, TokenId stop_token,
                            const GenerationUsage& usage) {
  if (over_) return violate("once", "hears an end after its end");
  Choice& choice = choices_[index];
  if (std::exchange(choice.ended, true)) return violate("once", "a choice ends twice");
  count_prompt();
  ++(reason == FinishReason::kStop ? front_->tally().stop : front_->tally().length);
  environment_.log.note("has its answer", "client", number_, choice.tokens);
  const Answer& expected = choice.expected;
  if (environment_.checks_tokens) {
    if (choice.tokens != expected.tokens.size() || reason != expected.reason ||
        stop_token != expected.stop_token) {
      violate("tokens", "choice " + std::to_string(index) + " ends after " +
                            std::to_string(choice.tokens) + " tokens, the single worker's after " +
                            std::to_string(expected.tokens.size()) + ", or for another reason");
    }
    if (choice.embedded == expected.embedding.empty())
      violate("tokens", "the prompt's vector is missing");
    if (index == 0 && scores_ != expected.prompt_scores.size())
      violate("tokens", "prompt scores are missing");
  }
  const uint32_t planted = environment_.saboteur.strikes(Plant::kWrongUsage) ? 1 : 0;
  if (usage.prompt_tokens + planted != prompt_tokens_ || usage.cached_tokens >= prompt_tokens_)
    violate("usage", "its prompt is counted wrongly");
  measure(choice);
  environment_.measured.output_tokens += choice.tokens;
  if (std::all_of(choices_.begin(), choices_.end(), [](const Choice& one) { return one.ended; })) {
    environment_.measured.prompt_tokens += prompt_tokens_;
    environment_.measured.cached_tokens += usage.cached_tokens;
    environment_.measured.within_slo += within_slo_ ? 1 : 0;
    end(environment_.measured.completed);
  }
  if (environment_.saboteur.strikes(Plant::kDoubleEnd))
    on_finished(index, reason, stop_token, usage);
}

void SimClient::measure(const Choice& choice) {
  Measured& measured = environment_.measured;
  measured.e2e.push_back(
      static_cast<float>(seconds_between(submitted_, environment_.events.now())));
  if (choice.tokens == 0) return;
  const double ttft = seconds_between(submitted_, choice.first);
  measured.ttft.push_back(static_cast<float>(ttft));
  within_slo_ = within_slo_ && ttft <= environment_.slo.ttft_seconds;
  if (choice.tokens == 1) return;
  const double tpot = seconds_between(choice.first, choice.last) / (choice.tokens - 1);
  measured.tpot.push_back(static_cast<float>(tpot));
  within_slo_ = within_slo_ && tpot <= environment_.slo.tpot_seconds;
}

void SimClient::on_failed(const Status& status) {
  if (over_) return violate("once", "fails after its end");
  for (const Choice& choice : choices_) front_->tally().error += choice.ended ? 0 : 1;
  environment_.log.note("fails", "client", number_, static_cast<uint64_t>(status.code()));
  const bool is_always_fair = status.code() == StatusCode::kResourceExhausted ||
                              status.code() == StatusCode::kContextLength;
  if (!is_always_fair && !environment_.may_lose)
    violate("failure", "fails though nothing went wrong: " + status.message());
  if (status.code() == StatusCode::kInvalidArgument)
    violate("failure", "is called wrong: " + status.message());
  end(environment_.measured.failed);
}

}  // namespace troupe::sim
