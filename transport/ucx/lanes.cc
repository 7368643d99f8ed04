#include "transport/ucx/lanes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/assert.h"
#include "base/limits.h"
#include "transport/session/limits.h"
#include "transport/ucx/limits.h"

namespace troupe::ucx {
namespace {

constexpr uint32_t kCallbackAndData =
    UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE;

}  // namespace

// An active message that UCX has: its memory must stay until UCX has completed it.
struct Lanes::MessageOp {
  Lanes& lanes;
  bool is_result = false;
  uint64_t sequence = 0;
  std::string head;
  MessageWords words;
  size_t charge = 0;
  [[nodiscard]] size_t bytes() const { return words.size() * sizeof(uint64_t); }
};

// A message that has arrived, or of which the head has.
struct Lanes::Inbound {
  Lanes& lanes;
  std::string endpoint;
  MessageWords words;
  bool whole = false;
  [[nodiscard]] size_t bytes() const { return words.size() * sizeof(uint64_t); }
};

LaneCounters& LaneCounters::operator+=(const LaneCounters& other) {
  messages_sent += other.messages_sent;
  messages_received += other.messages_received;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  parts_refused += other.parts_refused;
  return *this;
}

Result<std::unique_ptr<Lanes>> Lanes::open(const LaneEnvironment& environment,
                                           const std::string& lane_address, uint64_t token_out,
                                           Account& account) {
  std::unique_ptr<Lanes> lanes(new Lanes(environment, token_out, account));
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(lane_address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.arg = lanes.get();
  params.err_handler.cb = [](void* self, ucp_ep_h, ucs_status_t status) {
    static_cast<Lanes*>(self)->has_failed_ = true;
    static_cast<Lanes*>(self)->break_off(
        {StatusCode::kUnavailable,
         "the connection broke: " + std::string(ucs_status_string(status))});
  };
  TROUPE_RETURN_IF_ERROR(
      status_of(ucp_ep_create(environment.worker.handle(), &params, &lanes->endpoint_),
                "open a way to the peer"));
  return lanes;
}

Lanes::Lanes(const LaneEnvironment& environment, uint64_t token_out, Account& account)
    : environment_(environment),
      token_out_(token_out),
      account_(account),
      sender_({token_out, environment.worker.head_bytes_max(), environment.rendezvous,
               environment.checksum_fault},
              [this] { account_.moves.fetch_sub(1); }),
      receiver_(environment.worker.handle(), environment.landings) {}

Lanes::~Lanes() {
  TROUPE_ASSERT(endpoint_ == nullptr || (close_asked_ && closing_ == nullptr));
}

void Lanes::break_off(Status why) {
  if (broken_.ok()) broken_ = std::move(why);
}

bool Lanes::flush() {
  if (!broken_.ok()) return false;
  bool did_something = flush_messages();
  did_something |= flush_results();
  if (Status status = sender_.flush(endpoint_, did_something); !status.ok()) break_off(status);
  return did_something;
}

// A message that is received by rendezvous arrives later than small ones that follow it, which the
// peer must keep until then.
bool Lanes::may_send_message() const {
  if (incomplete_.empty()) return true;
  const auto [sequence, bytes] = *incomplete_.begin();
  return incomplete_.size() < limits::kMessagesInFlightMax &&
         next_sequence_out_ - sequence < limits::kMessagesAheadMax &&
         message_bytes_out_ - bytes < limits::kMessageBytesAheadMax;
}

bool Lanes::flush_messages() {
  size_t sent = 0, bytes = 0;
  while (!messages_.empty() && broken_.ok() && may_send_message() &&
         sent < limits::kMessagesPerTurnMax && bytes < limits::kMessageBytesPerTurnMax) {
    std::unique_ptr<MessageOp> op(new MessageOp{*this});
    op->charge = messages_.front().charge();
    op->words = std::move(messages_.front().words);
    op->sequence = next_sequence_out_++;
    append(op->head, MessageHead{token_out_, op->sequence, op->words.size(),
                                 messages_.front().endpoint.size()});
    op->head += messages_.front().endpoint;
    messages_.pop_front();
    message_bytes_out_ += op->bytes();
    incomplete_.emplace(op->sequence, message_bytes_out_);
    ++counters_.messages_sent;
    counters_.bytes_sent += op->bytes();
    bytes += op->bytes();
    post(std::move(op), LaneKind::kMessage);
    ++sent;
  }
  return sent > 0;
}

bool Lanes::flush_results() {
  std::vector<PartResult>& results = receiver_.results();
  bool did_something = false;
  size_t next = 0;
  const size_t fit =
      (environment_.worker.head_bytes_max() - sizeof(ResultsHead)) / sizeof(PartResult);
  while (next < results.size() && broken_.ok() &&
         results_in_flight_ < limits::kMessagesInFlightMax) {
    const size_t count = std::min({results.size() - next, limits::kResultsPerMessageMax, fit});
    std::unique_ptr<MessageOp> op(new MessageOp{*this});
    op->is_result = true;
    append(op->head, ResultsHead{token_out_, count});
    for (size_t i = 0; i < count; ++i) append(op->head, results[next++]);
    ++results_in_flight_;
    post(std::move(op), LaneKind::kResults);
    did_something = true;
  }
  results.erase(results.begin(), results.begin() + static_cast<ptrdiff_t>(next));
  return did_something;
}

void Lanes::post(std::unique_ptr<MessageOp> op, LaneKind kind) {
  ucp_request_param_t how{};
  how.op_attr_mask = kCallbackAndData | UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = environment_.rendezvous ? 0 : UCP_AM_SEND_FLAG_EAGER;
  how.datatype = ucp_dt_make_contig(1);
  how.user_data = op.get();
  how.cb.send = [](void* request, ucs_status_t status, void* user_data) {
    const std::unique_ptr<MessageOp> ended(static_cast<MessageOp*>(user_data));
    ucp_request_free(request);
    ended->lanes.finish(*ended, status);
  };
  void* request = ucp_am_send_nbx(endpoint_, static_cast<unsigned>(kind), op->head.data(),
                                  op->head.size(), op->words.data(), op->bytes(), &how);
  if (UCS_PTR_IS_PTR(request)) {
    static_cast<void>(op.release());  // the callback's now
    return;
  }
  finish(*op, UCS_PTR_STATUS(request));
}

void Lanes::finish(MessageOp& op, ucs_status_t status) {
  if (status != UCS_OK) break_off(status_of(status, "send a message"));
  if (op.is_result) {
    --results_in_flight_;
    return;
  }
  incomplete_.erase(op.sequence);
  account_.message_bytes.fetch_sub(op.charge);
}

ucs_status_t Lanes::receive(LaneKind kind, std::string_view head, void* data, size_t bytes,
                            const ucp_am_recv_param_t& how) {
  if (!broken_.ok()) return UCS_OK;
  switch (kind) {
    case LaneKind::kMessage:
      return receive_message(head, data, bytes, how);
    case LaneKind::kResults:
      return receive_results(head);
    case LaneKind::kParts:
      break;
  }
  Status status;
  const ucs_status_t out = receiver_.receive(head, data, bytes, how, status);
  if (!status.ok()) break_off(status);
  return out;
}

ucs_status_t Lanes::receive_results(std::string_view head) {
  uint64_t count = 0;
  if (!take(head, count) || head.size() != count * sizeof(PartResult)) {
    break_off({StatusCode::kDataLoss, "a malformed message of results"});
    return UCS_OK;
  }
  for (PartResult result; take(head, result);) {
    if (Status status = sender_.on_result(result); !status.ok()) {
      break_off(status);
      return UCS_OK;
    }
  }
  return UCS_OK;
}

ucs_status_t Lanes::receive_message(std::string_view head, void* data, size_t bytes,
                                    const ucp_am_recv_param_t& how) {
  uint64_t sequence = 0, words = 0, endpoint_bytes = 0;
  if (!take(head, sequence) || !take(head, words) || !take(head, endpoint_bytes) ||
      endpoint_bytes != head.size() || endpoint_bytes > limits::kEndpointNameBytesMax ||
      words > limits::kMessageBytesMax / sizeof(uint64_t) || words * sizeof(uint64_t) != bytes ||
      sequence - next_sequence_in_ > limits::kMessagesAheadMax || inbound_.count(sequence) > 0 ||
      inbound_bytes_ + bytes > limits::kSendQueueBytesMax) {
    break_off({StatusCode::kDataLoss, "a malformed or oversized message"});
    return UCS_OK;
  }
  std::unique_ptr<Inbound> fresh(new Inbound{*this, std::string(head), MessageWords(words)});
  Inbound& inbound = *fresh;
  inbound_.emplace(sequence, std::move(fresh));
  inbound_bytes_ += bytes;
  if ((how.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    if (bytes > 0) std::memcpy(inbound.words.data(), data, bytes);
    inbound.whole = true;
    deliver_what_is_next();
    return UCS_OK;
  }
  ucp_request_param_t receive{};
  receive.op_attr_mask = kCallbackAndData;
  receive.datatype = ucp_dt_make_contig(1);
  receive.user_data = &inbound;
  receive.cb.recv_am = [](void* request, ucs_status_t status, size_t /*bytes*/, void* user_data) {
    ucp_request_free(request);
    auto& ended = *static_cast<Inbound*>(user_data);
    ended.lanes.finish(ended, status);
  };
  ++receives_in_flight_;
  void* request = ucp_am_recv_data_nbx(environment_.worker.handle(), data, inbound.words.data(),
                                       bytes, &receive);
  if (!UCS_PTR_IS_PTR(request)) finish(inbound, UCS_PTR_STATUS(request));
  return UCS_INPROGRESS;
}

void Lanes::finish(Inbound& inbound, ucs_status_t status) {
  TROUPE_ASSERT(receives_in_flight_ > 0);
  --receives_in_flight_;
  if (status != UCS_OK) return break_off(status_of(status, "receive a message"));
  inbound.whole = true;
  deliver_what_is_next();
}

void Lanes::deliver_what_is_next() {
  for (auto next = inbound_.find(next_sequence_in_);
       next != inbound_.end() && next->second->whole && broken_.ok();
       next = inbound_.find(next_sequence_in_)) {
    const std::unique_ptr<Inbound> inbound = std::move(next->second);
    inbound_.erase(next);
    ++next_sequence_in_;
    inbound_bytes_ -= inbound->bytes();
    ++counters_.messages_received;
    counters_.bytes_received += inbound->bytes();
    // A sender may not know yet that nobody is bound there; nothing was promised to it.
    static_cast<void>(environment_.endpoints.deliver(inbound->endpoint, std::move(inbound->words)));
  }
}

void Lanes::close(const Status& why, TimePoint close_at, TimePoint force_at) {
  break_off(why);
  size_t dropped = 0;
  for (const OutMessage& message : messages_) dropped += message.charge();
  messages_.clear();
  account_.message_bytes.fetch_sub(dropped);
  sender_.close(why);
  close_at_ = close_at;
  force_at_ = force_at;
}

void Lanes::force_close() {
  close_asked_ = true;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucp_ep_close_nbx(endpoint_, &how);
  if (UCS_PTR_IS_PTR(request)) closing_ = request;
}

bool Lanes::is_closed(TimePoint now) {
  const bool is_quiet = is_nothing_under_way();
  if (!close_asked_ && (has_failed_ || (is_quiet && now >= close_at_) || now >= force_at_)) {
    force_close();
  }
  if (closing_ != nullptr && ucp_request_check_status(closing_) != UCS_INPROGRESS) {
    ucp_request_free(closing_);
    closing_ = nullptr;
  }
  return close_asked_ && closing_ == nullptr && is_nothing_under_way();
}

bool Lanes::is_nothing_under_way() const {
  return incomplete_.empty() && results_in_flight_ == 0 && receives_in_flight_ == 0 &&
         sender_.is_idle() && receiver_.is_idle();
}

bool Lanes::is_idle() const {
  return messages_.empty() && incomplete_.empty() && sender_.is_idle() && receiver_.is_idle() &&
         !receiver_.has_results();
}

LaneCounters Lanes::counters() const {
  LaneCounters out = counters_;
  out.bytes_sent += sender_.bytes_sent();
  out.bytes_received += receiver_.bytes_received();
  out.parts_refused = receiver_.parts_refused();
  return out;
}

// UCX 1.13 tells which transport a lane uses only in what it prints for people.
std::string Lanes::describe() const {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return "?";
  ucp_ep_print_info(endpoint_, stream);
  std::fclose(stream);
  const std::string info(text, size);
  std::free(text);
  const size_t lane = info.find("lane[0]:");
  const size_t slash = lane == std::string::npos ? lane : info.find('/', lane);
  if (slash == std::string::npos) return "?";
  const size_t from = info.find_last_of(": ", slash) + 1;
  const size_t to = info.find_first_of(". \n", slash);
  return info.substr(from, slash - from) + " " + info.substr(slash + 1, to - slash - 1);
}

}  // namespace troupe::ucx
