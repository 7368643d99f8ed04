#include "actors/gateway/http/exchange.h"

#include <glog/logging.h>
#include <kj/debug.h>

#include <cstdio>
#include <utility>

#include "base/assert.h"
#include "base/philox.h"

namespace troupe {

namespace {

constexpr uint32_t kResponseIdStream = 0x69640000;
constexpr uint32_t kDefaultSeedStream = 0x73656564;

// Unique in the process by its number, and among processes by the incarnation.
std::string make_response_id(Api api, uint64_t incarnation, uint64_t number) {
  char buffer[40];
  const uint64_t process = philox_u64(incarnation, 0, kResponseIdStream);
  std::snprintf(buffer, sizeof buffer, "%016llx%08llx", static_cast<unsigned long long>(process),
                static_cast<unsigned long long>(number));
  return (api == Api::kChat ? "chatcmpl-" : "cmpl-") + std::string(buffer);
}

}  // namespace

Exchange::Exchange(HttpContext& context, HttpRequestFacts request,
                   kj::HttpService::Response& response, DisconnectWatch& watch)
    : context_(context),
      request_(std::move(request)),
      response_(response),
      watch_(watch),
      cut_promise_(kj::newPromiseAndFulfiller<void>()) {
  context_.exchanges.insert(this);
}

Exchange::~Exchange() noexcept {
  context_.exchanges.erase(this);
  if (!ended_) log_request(context_, request_, "cancelled");
}

kj::Promise<void> Exchange::serve(PreparedRequest prepared) {
  stream_ = prepared.body.stream;
  RunIdentity identity;
  const uint64_t incarnation = context_.options.incarnation;
  identity.response_id = make_response_id(prepared.body.api, incarnation, request_.number);
  identity.label = request_.request_id;
  const ServedModel& model = prepared.model->served();
  identity.model = model.name;
  identity.created_unix_s = context_.clock.unix_seconds();
  identity.seed_default = philox_u64(incarnation, request_.number, kDefaultSeedStream);
  run_ = std::make_unique<GenerationRun>(std::move(prepared), std::move(identity), model.tokenizer,
                                         context_.generator, static_cast<RunSink&>(*this));
  if (const Status status = run_->start(); !status.ok()) {
    ended_ = true;
    return send_error(context_, request_, response_, to_api_error(status));
  }
  return pump().exclusiveJoin(watch_.when_gone()).exclusiveJoin(kj::mv(cut_promise_.promise));
}

void Exchange::abort(const Status& status) {
  if (run_ != nullptr) run_->abort(status);
}

void Exchange::on_event(std::string_view json) {
  if (cut_) return;
  pending_ += "data: ";
  pending_ += json;
  pending_ += "\n\n";
  if (pending_.size() > context_.options.limits.pending_bytes_max) {
    cut_ = true;
    LOG(WARNING) << "request " << request_.request_id << " is cut: its client does not read, "
                 << pending_.size() << " bytes wait for it";
    // Rejecting, not destroying here: this is called from inside the run.
    cut_promise_.fulfiller->reject(KJ_EXCEPTION(DISCONNECTED, "the client does not read"));
    return;
  }
  wake();
}

void Exchange::on_end(std::string body) {
  if (cut_) return;
  ended_ = true;
  pending_ += stream_ ? "data: [DONE]\n\n" : std::move(body);
  if (stream_) log_request(context_, request_, "200, streamed");
  wake();
}

void Exchange::on_error(const Status& status) {
  if (cut_) return;
  ended_ = true;
  if (out_.get() == nullptr) {
    error_ = status;
  } else {
    append_error_event(status);
  }
  wake();
}

void Exchange::append_error_event(const Status& status) {
  log_request(context_, request_, "error in the stream");
  pending_ += "data: " + format_error(to_api_error(status)) + "\n\ndata: [DONE]\n\n";
}

kj::Promise<void> Exchange::pump() {
  if (error_) return send_error(context_, request_, response_, to_api_error(*error_));
  if (!stream_) {
    if (!ended_) return wait_for_output();
    const kj::HttpHeaders headers = make_headers(context_, request_, "application/json");
    return send_response(context_, request_, response_, 200, headers, std::move(pending_));
  }
  if (!pending_.empty()) return send_pending();
  if (!ended_) return wait_for_output();
  out_ = nullptr;  // ends the chunked body
  return kj::READY_NOW;
}

kj::Promise<void> Exchange::send_pending() {
  if (out_.get() == nullptr) begin_stream();
  return write_in_time(context_, *out_, std::exchange(pending_, {})).then([this] {
    return pump();
  });
}

kj::Promise<void> Exchange::wait_for_output() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  wake_ = kj::mv(pair.fulfiller);
  kj::Promise<void> woken = kj::mv(pair.promise);
  if (stream_) {
    const kj::Duration silence = context_.options.limits.ping_interval.count() * kj::MILLISECONDS;
    woken = woken.exclusiveJoin(
        context_.timer.afterDelay(silence).then([this] { pending_ += ": ping\n\n"; }));
  }
  return woken.then([this] { return pump(); });
}

void Exchange::begin_stream() {
  kj::HttpHeaders headers = make_headers(context_, request_, "text/event-stream; charset=utf-8");
  headers.set(context_.names.cache_control, "no-cache");
  headers.set(context_.names.x_accel_buffering, "no");  // nginx would gather the events
  out_ = response_.send(200, "OK", headers);
}

void Exchange::wake() {
  if (wake_.get() == nullptr) return;
  kj::Own<kj::PromiseFulfiller<void>> wake = kj::mv(wake_);
  wake->fulfill();
}

}  // namespace troupe
