#include "actors/gateway/http/exchange.h"

#include <glog/logging.h>
#include <kj/debug.h>

#include <utility>

namespace troupe {

Exchange::Exchange(HttpContext& context, HttpRequestFacts request, LoadTicket ticket,
                   kj::HttpService::Response& response, DisconnectWatch& watch)
    : context_(context),
      request_(std::move(request)),
      ticket_(std::move(ticket)),
      response_(response),
      watch_(watch),
      cut_promise_(kj::newPromiseAndFulfiller<void>()) {
  context_.exchanges.insert(this);
}

Exchange::~Exchange() noexcept {
  context_.exchanges.erase(this);
  if (!ended_) log_request(context_, request_, "cancelled");
}

kj::Promise<void> Exchange::serve(const PreparedAnswer& prepared) {
  stream_ = prepared.stream;
  answer_ = prepared.make(static_cast<JsonSink&>(*this));
  if (const Status status = answer_->start(); !status.ok()) {
    ended_ = true;
    return send_error(context_, request_, response_, to_api_error(status));
  }
  return pump().exclusiveJoin(watch_.when_gone()).exclusiveJoin(kj::mv(cut_promise_.promise));
}

void Exchange::abort(const Status& status) {
  if (answer_ != nullptr) answer_->abort(status);
}

void Exchange::on_named_event(std::string_view name, std::string_view json) {
  if (cut_) return;
  pending_ += event_frame(name, json);
  if (pending_.size() > context_.load.limits().pending_bytes_max) {
    cut_ = true;
    context_.load.metrics().cut_unread.Increment();
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
  pending_ += stream_ ? end_frame(request_.style) : std::move(body);
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
  pending_ += error_frame(request_.style, to_api_error(status), request_.request_id);
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
    const kj::Duration silence = context_.load.limits().ping_interval.count() * kj::MILLISECONDS;
    woken = woken.exclusiveJoin(context_.timer.afterDelay(silence).then(
        [this] { pending_ += ping_frame(request_.style); }));
  }
  return woken.then([this] { return pump(); });
}

void Exchange::begin_stream() {
  kj::HttpHeaders headers = make_headers(context_, request_, "text/event-stream; charset=utf-8");
  headers.set(context_.names.cache_control, "no-cache");
  headers.set(context_.names.x_accel_buffering, "no");  // nginx would gather the events
  context_.load.metrics().count_response(200);
  out_ = response_.send(200, "OK", headers);
}

void Exchange::wake() {
  if (wake_.get() == nullptr) return;
  kj::Own<kj::PromiseFulfiller<void>> wake = kj::mv(wake_);
  wake->fulfill();
}

}  // namespace troupe
