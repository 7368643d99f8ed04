#include "actors/gateway/rpc/rpc_exchange.h"

#include <glog/logging.h>
#include <kj/debug.h>

#include <utility>

#include "actors/gateway/rpc/rpc_errors.h"
#include "base/assert.h"

namespace troupe {

namespace {

kj::Duration to_kj(std::chrono::milliseconds duration) {
  return duration.count() * kj::MILLISECONDS;
}

rpc::FinishReason to_rpc(std::optional<AnswerEnd> end) {
  if (!end) return rpc::FinishReason::UNFINISHED;
  switch (*end) {
    case AnswerEnd::kStop:
      return rpc::FinishReason::STOP;
    case AnswerEnd::kLength:
      return rpc::FinishReason::LENGTH;
    case AnswerEnd::kToolCalls:
      return rpc::FinishReason::TOOL_CALLS;
  }
  TROUPE_ASSERT(false, static_cast<int>(*end));
  return rpc::FinishReason::UNFINISHED;
}

kj::StringPtr view(const std::string& text) {
  return {text.c_str(), text.size()};
}

// About what a token takes in a message.
size_t bytes_of(const ChoiceToken& token) {
  return sizeof(uint64_t) * (2 + token.sampled.top.size());
}

void fill_tokens(const std::vector<ChoiceToken>& tokens, bool scored,
                 capnp::List<rpc::Token>::Builder out) {
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    const SampledToken& token = tokens[i].sampled;
    out[i].setId(static_cast<uint32_t>(token.token));
    if (!scored || !tokens[i].scored) continue;
    out[i].setLogprob(token.logprob);
    auto top = out[i].initTop(static_cast<uint32_t>(token.top.size()));
    for (uint32_t k = 0; k < token.top.size(); ++k) {
      top[k].setToken(static_cast<uint32_t>(token.top[k].token));
      top[k].setLogprob(token.top[k].logprob);
    }
  }
}

}  // namespace

kj::Promise<void> refuse(RpcContext& context, const Status& status,
                         kj::Maybe<rpc::ResponseSink::Client>& sink) {
  kj::Promise<void> told = kj::READY_NOW;
  KJ_IF_MAYBE (open, sink) {
    auto request = open->failedRequest();
    fill_error(status, request.initError());
    told = request.send()
               .ignoreResult()
               .exclusiveJoin(context.timer.afterDelay(to_kj(context.load.limits().abort_flush)))
               .catch_([](kj::Exception&&) {});  // a client need not implement it
  }
  return told.then([status]() -> kj::Promise<void> { return to_exception(status); });
}

RpcExchange::RpcExchange(RpcContext& context, LoadTicket ticket,
                         kj::Maybe<rpc::ResponseSink::Client> sink, Delivery delivery)
    : context_(&context),
      ticket_(std::move(ticket)),
      sink_(kj::mv(sink)),
      chunks_(sink_ != nullptr && delivery == Delivery::kChunks),
      cut_(kj::newPromiseAndFulfiller<void>()) {
  context_->exchanges.insert(this);
}

RpcExchange::~RpcExchange() noexcept {
  if (context_ != nullptr) context_->exchanges.erase(this);
  if (!ended_) VLOG(1) << "rpc " << identity_.label << " cancelled";
}

kj::Promise<void> RpcExchange::serve(PreparedRequest prepared, uint64_t number,
                                     const std::string& label) {
  const bool chat = prepared.body.api == Api::kChat;
  identity_.response_id = context_->load.response_id(chat ? "chatcmpl-" : "cmpl-", number);
  identity_.label = is_usable_request_id(label) ? label : "req-" + std::to_string(number);
  identity_.model = prepared.model->served().name;
  identity_.created_unix_s = context_->clock.unix_seconds();
  identity_.seed_default = context_->load.default_seed(number);
  logprobs_ = prepared.body.sampling.logprobs;
  run_ = std::make_unique<GenerationRun>(std::move(prepared), identity_, context_->generator,
                                         static_cast<RunSink&>(*this));
  if (Status status = run_->start(); !status.ok()) {
    ended_ = true;
    return refuse(*context_, status, sink_);
  }
  return pump().exclusiveJoin(kj::mv(cut_.promise)).then([this]() -> kj::Promise<void> {
    if (!error_) return kj::READY_NOW;
    if (context_ == nullptr) return kj::NEVER_DONE;
    run_ = nullptr;
    return refuse(*context_, *error_, sink_);
  });
}

void RpcExchange::abort(const Status& status) {
  if (run_ != nullptr) run_->abort(status);
}

void RpcExchange::orphan() {
  run_ = nullptr;
  ticket_.reset();
  context_ = nullptr;
}

size_t RpcExchange::add_part(const AnswerPart& part, Pending& pending) {
  switch (part.kind) {
    case AnswerPartKind::kText:
      pending.text += part.text;
      break;
    case AnswerPartKind::kReasoning:
      pending.reasoning += part.text;
      break;
    case AnswerPartKind::kCallStarted:
      pending.calls.push_back({part.call, part.id, part.text, {}});
      return sizeof(PendingCall) + part.id.size() + part.text.size();
    case AnswerPartKind::kCallArguments:
      // A chunk was given in the middle of the call.
      if (pending.calls.empty()) pending.calls.push_back({part.call, {}, {}, {}});
      TROUPE_ASSERT(pending.calls.back().index == part.call, part.call);
      pending.calls.back().arguments += part.text;
      break;
    case AnswerPartKind::kCallFinished:
      return 0;
  }
  return part.text.size();
}

void RpcExchange::fill_calls(const std::vector<PendingCall>& calls,
                             capnp::List<rpc::ToolCall>::Builder out) {
  for (uint32_t i = 0; i < calls.size(); ++i) {
    out[i].setIndex(calls[i].index);
    if (!calls[i].id.empty()) out[i].setId(view(calls[i].id));
    if (!calls[i].name.empty()) out[i].setName(view(calls[i].name));
    if (!calls[i].arguments.empty()) out[i].setArguments(view(calls[i].arguments));
  }
}

void RpcExchange::on_delta(const ChoiceDelta& delta, const GenerationRun& /*run*/) {
  if (error_) return;
  Pending& pending = pending_[delta.index];
  size_t bytes = 0;
  for (const AnswerPart& part : delta.parts) {
    bytes += add_part(part, pending);
  }
  pending.prompt.insert(pending.prompt.end(), delta.prompt.begin(), delta.prompt.end());
  pending.tokens.insert(pending.tokens.end(), delta.tokens.begin(), delta.tokens.end());
  if (delta.finish) pending.finish = delta.finish;
  if (!chunks_) return;
  pending_bytes_ += bytes;
  for (const ChoiceToken& token : delta.prompt) pending_bytes_ += bytes_of(token);
  for (const ChoiceToken& token : delta.tokens) pending_bytes_ += bytes_of(token);
  const size_t limit = context_->load.limits().pending_bytes_max;
  if (pending_bytes_ <= limit) return wake();
  context_->load.metrics().cut_unread.Increment();
  LOG(WARNING) << "request " << identity_.label << " is cut: its client does not read, "
               << pending_bytes_ << " bytes wait for it";
  cut({StatusCode::kResourceExhausted,
       "the client does not read its stream: more than the " + std::to_string(limit) +
           " bytes that may wait for it; read faster, or ask for less"});
}

// From inside the run, so it is not destroyed here.
void RpcExchange::cut(Status status) {
  error_ = std::move(status);
  cut_.fulfiller->fulfill();
}

void RpcExchange::on_end(const UsageTotals& totals) {
  ended_ = true;
  totals_ = totals;
  wake();
}

void RpcExchange::on_error(const Status& status) {
  ended_ = true;
  if (!error_) error_ = status;
  wake();
}

kj::Promise<void> RpcExchange::pump() {
  if (context_ == nullptr) return kj::NEVER_DONE;
  if (error_) return kj::READY_NOW;
  if (!chunks_) return ended_ ? kj::Promise<void>(kj::READY_NOW) : wait_for_output();
  auto& sink = KJ_ASSERT_NONNULL(sink_);
  if (!pending_.empty()) return give_chunk(sink).then([this] { return pump(); });
  if (ended_) return give_end(sink);
  return wait_for_output();
}

kj::Promise<void> RpcExchange::give_chunk(rpc::ResponseSink::Client& sink) {
  auto request = sink.chunkRequest();
  fill_choices(request.initChunk().initChoices(static_cast<uint32_t>(pending_.size())));
  pending_.clear();
  pending_bytes_ = 0;
  return in_time(request.send());
}

kj::Promise<void> RpcExchange::give_end(rpc::ResponseSink::Client& sink) {
  auto request = sink.endRequest();
  fill_answer(request.initAnswer());
  return in_time(request.send().ignoreResult());
}

kj::Promise<void> RpcExchange::in_time(kj::Promise<void> given) {
  const auto limit = context_->load.limits().write_timeout;
  return given.exclusiveJoin(context_->timer.afterDelay(to_kj(limit)).then([this, limit] {
    context_->load.metrics().cut_slow_reader.Increment();
    error_ = Status(StatusCode::kDeadlineExceeded, "the client did not answer a chunk within " +
                                                       std::to_string(limit.count()) + " ms");
  }));
}

kj::Promise<void> RpcExchange::wait_for_output() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  wake_ = kj::mv(pair.fulfiller);
  return pair.promise.then([this] { return pump(); });
}

void RpcExchange::wake() {
  if (wake_.get() == nullptr) return;
  kj::Own<kj::PromiseFulfiller<void>> wake = kj::mv(wake_);
  wake->fulfill();
}

void RpcExchange::fill_choices(capnp::List<rpc::Choice>::Builder out) const {
  uint32_t i = 0;
  for (const auto& [index, pending] : pending_) {
    rpc::Choice::Builder choice = out[i++];
    choice.setIndex(index);
    choice.setText(view(pending.text));
    if (!pending.reasoning.empty()) choice.setReasoning(view(pending.reasoning));
    if (!pending.calls.empty()) {
      fill_calls(pending.calls, choice.initToolCalls(static_cast<uint32_t>(pending.calls.size())));
    }
    fill_tokens(pending.tokens, logprobs_ >= 0,
                choice.initTokens(static_cast<uint32_t>(pending.tokens.size())));
    fill_tokens(pending.prompt, true,
                choice.initPromptTokens(static_cast<uint32_t>(pending.prompt.size())));
    choice.setFinishReason(to_rpc(pending.finish));
  }
}

void RpcExchange::fill_answer(rpc::Answer::Builder out) const {
  TROUPE_ASSERT(ended_ && !error_, identity_.label);
  out.setId(identity_.response_id.c_str());
  out.setModel(identity_.model.c_str());
  out.setCreated(identity_.created_unix_s);
  if (!pending_.empty()) fill_choices(out.initChoices(static_cast<uint32_t>(pending_.size())));
  rpc::Usage::Builder usage = out.initUsage();
  usage.setPromptTokens(totals_.prompt_tokens);
  usage.setCompletionTokens(totals_.completion_tokens);
  usage.setCachedTokens(totals_.cached_tokens ? static_cast<int64_t>(*totals_.cached_tokens) : -1);
}

}  // namespace troupe
