#include "loadgen/load.h"

#include <algorithm>

#include "base/assert.h"
#include "loadgen/limits.h"

namespace troupe::loadgen {
namespace {

kj::Duration to_kj(Duration duration) {
  return std::max<int64_t>(0, duration.count()) * kj::NANOSECONDS;
}

}  // namespace

Load::Load(HttpPeer& peer, kj::Timer& timer, const Clock& clock, const PromptSource& prompts,
           Arrivals* arrivals, const RequestShape& shape, const LoadOptions& options,
           uint64_t first_conversation)
    : peer_(peer),
      timer_(timer),
      clock_(clock),
      prompts_(prompts),
      arrivals_(arrivals),
      shape_(shape),
      options_(options),
      next_conversation_(first_conversation) {
  TROUPE_ASSERT(arrivals != nullptr || options.concurrency > 0);
  TROUPE_ASSERT(options.timeout > Duration(0));
}

kj::Promise<void> Load::run() {
  TROUPE_ASSERT(tasks_.get() == nullptr);
  began_ = clock_.now();
  tasks_ = kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this));
  auto paf = kj::newPromiseAndFulfiller<void>();
  done_ = kj::mv(paf.fulfiller);
  open_tasks_ = 1;  // until all have been begun
  if (arrivals_ != nullptr) {
    ++open_tasks_;
    tasks_->add(arrive().then([this] { task_done(); }));
  } else {
    for (uint32_t i = 0; i < options_.concurrency; ++i) {
      ++open_tasks_;
      tasks_->add(kj::evalLater([this] { return user(); }).then([this] { task_done(); }));
    }
  }
  task_done();
  return kj::mv(paf.promise);
}

void Load::task_done() {
  TROUPE_ASSERT(open_tasks_ > 0);
  if (--open_tasks_ > 0) return;
  TROUPE_ASSERT(in_flight_ == 0 && waiting_.empty(), in_flight_);
  if (!over_) over_ = now();
  done_->fulfill();
}

void Load::taskFailed(kj::Exception&& exception) {
  if (done_->isWaiting()) done_->reject(kj::mv(exception));
}

void Load::cancel() {
  if (over_) return;
  over_ = now();
  tasks_ = nullptr;
  waiting_.clear();
  for (RequestRecord& record : records_) {
    if (record.ending != Ending::kOpen) continue;
    record.ending = Ending::kCancelled;
    record.end = *over_;
  }
  in_flight_ = 0;
}

bool Load::may_send() const {
  return (options_.requests == 0 || records_.size() < options_.requests) &&
         !(options_.duration && now() >= *options_.duration);
}

std::shared_ptr<Load::Talk> Load::begin_talk(Duration due) {
  auto talk = std::make_shared<Talk>();
  talk->number = next_conversation_++;
  talk->plan = prompts_.make(talk->number);
  talk->said = talk->plan.opening;
  talk->due = due;
  TROUPE_ASSERT(!talk->plan.turns.empty());
  return talk;
}

kj::Promise<void> Load::user() {
  if (!may_send()) return kj::READY_NOW;
  return talk(begin_talk(now())).then([this] { return user(); });
}

kj::Promise<void> Load::arrive() {
  const auto due = arrivals_->next();
  if (!due || (options_.duration && *due >= *options_.duration)) return kj::READY_NOW;
  return wait_until(*due).then([this, due = *due]() -> kj::Promise<void> {
    if (!may_send()) return kj::READY_NOW;
    ++open_tasks_;
    tasks_->add(talk(begin_talk(due)).then([this] { task_done(); }));
    return arrive();
  });
}

kj::Promise<void> Load::wait_until(Duration due) {
  const Duration rest = due - now();
  if (rest <= Duration(0)) return kj::evalLater([] {});  // lets others have a turn
  return timer_.afterDelay(to_kj(rest)).then([this, due] { return wait_until(due); });
}

kj::Promise<void> Load::talk(std::shared_ptr<Talk> talk) {
  return turn(talk).then([this, talk]() -> kj::Promise<void> {
    if (talk->turn >= talk->plan.turns.size()) return kj::READY_NOW;
    talk->due = now() + options_.think_time;
    return wait_until(talk->due).then([this, talk] { return this->talk(talk); });
  });
}

kj::Promise<void> Load::turn(std::shared_ptr<Talk> talk) {
  return seat().then([this, talk]() -> kj::Promise<void> {
    if (!may_send()) {
      talk->turn = talk->plan.turns.size();
      leave_seat();
      return kj::READY_NOW;
    }
    const Turn& turn = talk->plan.turns[talk->turn];
    talk->said.push_back(turn.message);
    std::string body = request_body(shape_, talk->said, turn.output_tokens);
    RequestRecord& record = records_.emplace_back();
    record.index = records_.size() - 1;
    record.conversation = talk->number;
    record.turn = static_cast<uint32_t>(talk->turn);
    record.prompt_tokens_aimed = talk->turn == 0 ? turn.prompt_tokens_aimed : 0;
    record.output_tokens_aimed = shape_.ignore_eos ? turn.output_tokens : 0;
    record.scheduled = talk->due;
    record.start = now();
    return ask(record, std::move(body), talk).then([this] { leave_seat(); });
  });
}

kj::Promise<void> Load::seat() {
  const bool is_limited = arrivals_ != nullptr && options_.concurrency > 0;
  if (!is_limited || in_flight_ < options_.concurrency) {
    ++in_flight_;
    return kj::READY_NOW;
  }
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiting_.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

void Load::leave_seat() {
  TROUPE_ASSERT(in_flight_ > 0);
  if (waiting_.empty()) {
    --in_flight_;
    return;
  }
  waiting_.front()->fulfill();  // who waited longest takes the seat over
  waiting_.pop_front();
}

kj::Promise<void> Load::ask(RequestRecord& record, std::string body, std::shared_ptr<Talk> talk) {
  auto exchange = kj::heap<Exchange>(clock_, began_, record);
  Exchange& used = *exchange;
  const Duration left = record.start + options_.timeout - now();
  auto late =
      timer_.afterDelay(to_kj(left)).then([this, &used] { used.on_timeout(options_.timeout); });
  return try_once(used, body)
      .exclusiveJoin(kj::mv(late))
      .then([this, &record, &used, body = std::move(body), talk]() mutable -> kj::Promise<void> {
        const bool again = options_.retry_429 && used.is_refused_for_now() &&
                           record.error != "timeout" && record.tries < kTriesMax;
        if (!again) {
          take_answer(record, used, *talk);
          return kj::READY_NOW;
        }
        const double seconds =
            std::min<double>(used.retry_after_s().value_or(kRetryWaitDefault.count()),
                             static_cast<double>(kRetryWaitMax.count()));
        const auto wait =
            std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
        if (now() + wait >= record.start + options_.timeout) {
          take_answer(record, used, *talk);
          return kj::READY_NOW;
        }
        ++record.tries;
        record.ending = Ending::kOpen;
        record.http_status = 0;
        record.error.clear();
        record.detail.clear();
        return timer_.afterDelay(to_kj(wait))
            .then([this, &record, body = std::move(body), talk]() mutable {
              return ask(record, std::move(body), talk);
            });
      })
      .attach(kj::mv(exchange));
}

kj::Promise<void> Load::try_once(Exchange& exchange, std::string body) {
  return kj::evalNow(
             [&] { return peer_.post(path_of(shape_.endpoint), std::move(body), exchange); })
      .then([&exchange] { exchange.on_end(std::nullopt); },
            [&exchange](kj::Exception&& e) {
              exchange.on_end(std::string(e.getDescription().cStr()));
            });
}

void Load::take_answer(RequestRecord& record, const Exchange& exchange, Talk& talk) {
  TROUPE_ASSERT(record.ending != Ending::kOpen);
  if (record.ending == Ending::kFailed) {
    ++failed_;
    talk.turn = talk.plan.turns.size();  // a conversation without an answer does not go on
    return;
  }
  ++completed_;
  output_tokens_ += record.output_tokens;
  if (record.token_source != TokenSource::kUsage) uncounted_[record.index] = exchange.text();
  ++talk.turn;
  if (talk.turn < talk.plan.turns.size()) talk.said.push_back({"assistant", exchange.text()});
}

LoadProgress Load::progress() const {
  return {records_.size(), completed_, failed_, in_flight_, waiting_.size(), output_tokens_};
}

Duration Load::elapsed() const {
  return over_ ? *over_ : now();
}

}  // namespace troupe::loadgen
