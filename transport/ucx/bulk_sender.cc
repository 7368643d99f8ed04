#include "transport/ucx/bulk_sender.h"

#include <algorithm>
#include <optional>

#include "base/assert.h"
#include "base/limits.h"
#include "transport/local/landing_table.h"
#include "transport/ucx/limits.h"
#include "transport/ucx/ucx_worker.h"

namespace troupe::ucx {

struct BulkSender::Move {
  uint64_t id = 0;
  OutMove out;
  uint64_t bytes = 0;
  uint64_t sent = 0;               // handed to UCX, from the part's start
  size_t piece = 0, consumed = 0;  // where that is: in this piece, after so many of its bytes
  size_t chunks_in_flight = 0;
  std::optional<Status> result;

  // What lies in one run of memory from here.
  [[nodiscard]] std::span<const std::byte> run() const {
    return out.part.pieces[piece].subspan(consumed);
  }
  void advance(size_t count) {
    sent += count;
    consumed += count;
    if (consumed < out.part.pieces[piece].size()) return;
    ++piece;
    consumed = 0;
  }
};

// One active message of kParts: its memory must stay until UCX has completed it.
struct BulkSender::Op {
  explicit Op(BulkSender& s) : sender(s) {}
  BulkSender& sender;
  std::vector<ChunkHead> chunks;
  std::string head;
  std::vector<std::span<const std::byte>> pieces;
  std::vector<ucp_dt_iov_t> iov;
  size_t bytes = 0;
  bool rendezvous = false;
  bool background = false;
};

namespace {

// Without empty pieces, and those that touch in memory as one.
void join_pieces(BulkPart& part) {
  std::vector<std::span<const std::byte>> joined;
  joined.reserve(part.pieces.size());
  for (const std::span<const std::byte>& piece : part.pieces) {
    if (piece.empty()) continue;
    if (!joined.empty() && joined.back().data() + joined.back().size() == piece.data()) {
      joined.back() = {joined.back().data(), joined.back().size() + piece.size()};
    } else {
      joined.push_back(piece);
    }
  }
  part.pieces = std::move(joined);
}

}  // namespace

BulkSender::BulkSender(Options options, std::function<void()> on_ended)
    : options_(options), on_ended_(std::move(on_ended)) {
  TROUPE_ASSERT(options.head_bytes_max >= sizeof(PartsHead) + sizeof(ChunkHead),
                options.head_bytes_max);
  chunks_max_ = std::min(limits::kFrameChunksMax,
                         (options.head_bytes_max - sizeof(PartsHead)) / sizeof(ChunkHead));
}

BulkSender::~BulkSender() {
  TROUPE_ASSERT(is_idle(), moves_.size(), in_flight_);
}

void BulkSender::queue(OutMove move) {
  TROUPE_ASSERT(!closed_);
  auto entry = std::make_unique<Move>();
  entry->id = next_move_++;
  entry->bytes = bytes_of(move.part.pieces);
  TROUPE_ASSERT(entry->bytes > 0);
  join_pieces(move.part);
  const bool background = move.traffic == TrafficClass::kBulkBackground;
  entry->out = std::move(move);
  queued_[background ? 1 : 0].push_back(entry->id);
  moves_.emplace(entry->id, std::move(entry));
}

bool BulkSender::has_queued() const {
  return !queued_[0].empty() || !queued_[1].empty() || !given_up_.empty();
}

bool BulkSender::goes_by_rendezvous(size_t run_bytes) const {
  return options_.rendezvous && run_bytes >= limits::kRendezvousBytesMin;
}

// The next part to send something of, as the classes and limits allow.
BulkSender::Move* BulkSender::next_move() {
  for (auto& queue : queued_) {
    while (!queue.empty()) {
      const auto found = moves_.find(queue.front());
      // Ended or refused while it waited.
      if (found == moves_.end() || found->second->result ||
          found->second->sent == found->second->bytes) {
        queue.pop_front();
        continue;
      }
      const bool background = &queue == &queued_[1];
      if (background && background_in_flight_ >= limits::kBackgroundInFlightMax) return nullptr;
      return found->second.get();
    }
  }
  return nullptr;
}

std::unique_ptr<BulkSender::Op> BulkSender::next_op() {
  auto op = std::make_unique<Op>(*this);
  while (!given_up_.empty() && op->chunks.size() < chunks_max_) {
    op->chunks.push_back(given_up_.back());
    given_up_.pop_back();
  }
  Move* move = next_move();
  if (!op->chunks.empty()) return op;
  if (move == nullptr) return nullptr;
  op->background = move->out.traffic == TrafficClass::kBulkBackground;
  if (goes_by_rendezvous(move->run().size())) {
    if (rendezvous_in_flight_ >= limits::kRendezvousInFlightMax) return nullptr;
    op->rendezvous = true;
    add_chunk(*op, *move);
    return op;
  }
  if (in_flight_ - rendezvous_in_flight_ >= limits::kFramesInFlightMax) return nullptr;
  while (move != nullptr && add_chunk(*op, *move)) {
    move = next_move();
    if (move == nullptr || goes_by_rendezvous(move->run().size())) break;
    if (op->background != (move->out.traffic == TrafficClass::kBulkBackground)) break;
  }
  return op;
}

// Adds what fits of the part from where it stands. False: the frame is full.
bool BulkSender::add_chunk(Op& op, Move& move) {
  const size_t first = op.pieces.size();
  ChunkHead chunk;
  chunk.move = move.id;
  chunk.landing = move.out.ticket.landing;
  chunk.label_high = move.out.ticket.label_high;
  chunk.label_low = move.out.ticket.label_low;
  chunk.part_offset = move.out.part.offset;
  chunk.part_bytes = move.bytes;
  chunk.chunk_offset = move.sent;
  const size_t bytes_max = op.rendezvous ? limits::kRendezvousBytesMax : limits::kFrameDataBytesMax;
  while (move.sent < move.bytes && op.bytes < bytes_max &&
         op.pieces.size() < (op.rendezvous ? first + 1 : limits::kFramePiecesMax)) {
    const std::span<const std::byte> run = move.run();
    if (!op.rendezvous && goes_by_rendezvous(run.size())) break;
    const size_t count = std::min(run.size(), bytes_max - op.bytes);
    op.pieces.push_back(run.first(count));
    op.bytes += count;
    chunk.chunk_bytes += count;
    move.advance(count);
  }
  TROUPE_ASSERT(chunk.chunk_bytes > 0, move.id, op.bytes);
  chunk.checksum =
      checksum_of(std::span<const std::span<const std::byte>>(op.pieces).subspan(first));
  if (options_.checksum_fault) chunk.checksum = options_.checksum_fault(chunk.checksum);
  ++move.chunks_in_flight;
  op.chunks.push_back(chunk);
  return op.bytes < bytes_max && op.chunks.size() < chunks_max_ &&
         op.pieces.size() < limits::kFramePiecesMax && !op.rendezvous;
}

Status BulkSender::flush(ucp_ep_h endpoint, bool& did_something) {
  // A send that fits the socket's buffer completes at once, so that the limits of what is in flight
  // do not end this while the peer keeps up.
  for (size_t sent = 0; sent < limits::kFramesPerTurnMax; ++sent) {
    std::unique_ptr<Op> op = next_op();
    if (!op) break;
    did_something = true;
    TROUPE_RETURN_IF_ERROR(post(std::move(op), endpoint));
  }
  return ok_status();
}

Status BulkSender::post(std::unique_ptr<Op> op, ucp_ep_h endpoint) {
  append(op->head, PartsHead{options_.token, op->chunks.size()});
  for (const ChunkHead& chunk : op->chunks) append(op->head, chunk);
  for (const std::span<const std::byte>& piece : op->pieces) {
    // UCX's type has no const; it only reads.
    op->iov.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  }
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                     UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = op->rendezvous ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
  how.user_data = op.get();
  how.cb.send = [](void* request, ucs_status_t status, void* user_data) {
    const std::unique_ptr<Op> ended(static_cast<Op*>(user_data));
    ucp_request_free(request);
    ended->sender.finish(*ended, status);
  };
  const void* buffer = op->iov.empty() ? nullptr : op->iov.front().buffer;
  size_t count = op->bytes;
  how.datatype = ucp_dt_make_contig(1);
  if (op->iov.size() > 1) {
    how.datatype = ucp_dt_make_iov();
    buffer = op->iov.data();
    count = op->iov.size();
  }
  ++in_flight_;
  rendezvous_in_flight_ += op->rendezvous ? 1 : 0;
  background_in_flight_ += op->background ? 1 : 0;
  bytes_sent_ += op->bytes;
  void* request = ucp_am_send_nbx(endpoint, static_cast<unsigned>(LaneKind::kParts),
                                  op->head.data(), op->head.size(), buffer, count, &how);
  if (UCS_PTR_IS_PTR(request)) {
    static_cast<void>(op.release());  // the callback's now
    return ok_status();
  }
  const ucs_status_t status = UCS_PTR_STATUS(request);
  finish(*op, status);
  return status_of(status, "send a part");
}

void BulkSender::finish(Op& op, ucs_status_t /*status*/) {
  // A failure is the endpoint's, whose handler has said so or will; close() then ends the parts.
  --in_flight_;
  rendezvous_in_flight_ -= op.rendezvous ? 1 : 0;
  background_in_flight_ -= op.background ? 1 : 0;
  for (const ChunkHead& chunk : op.chunks) {
    if (chunk.chunk_bytes == 0) continue;
    Move& move = *moves_.at(chunk.move);
    TROUPE_ASSERT(move.chunks_in_flight > 0, move.id);
    --move.chunks_in_flight;
    end_if_done(move);
  }
}

Status BulkSender::on_result(const PartResult& result) {
  const auto found = moves_.find(result.move);
  if (found == moves_.end() || found->second->result) {
    return {StatusCode::kDataLoss, "a result for a part that is not under way"};
  }
  Move& move = *found->second;
  switch (result.code) {
    case kLanded:
      if (move.sent != move.bytes) {
        return {StatusCode::kDataLoss, "a result for a part that was not sent whole"};
      }
      take_result(move, ok_status());
      break;
    case kNoLanding:
      take_result(
          move, {StatusCode::kNotFound, "the peer has no landing open for this ticket (any more)"});
      break;
    case kDoesNotFit:
      take_result(move, invalid_argument("the part does not fit the landing"));
      break;
    case kDamaged:
      take_result(move, {StatusCode::kDataLoss, "the part was damaged on the way; move it again"});
      break;
    default:
      return {StatusCode::kDataLoss, "a result that there is not"};
  }
  return ok_status();
}

void BulkSender::take_result(Move& move, Status status) {
  move.result = std::move(status);
  if (!closed_ && move.sent > 0 && move.sent < move.bytes) {
    ChunkHead chunk;
    chunk.move = move.id;
    chunk.part_bytes = move.bytes;
    chunk.chunk_offset = move.sent;
    given_up_.push_back(chunk);
  }
  end_if_done(move);
}

void BulkSender::end_if_done(Move& move) {
  if (!move.result || move.chunks_in_flight > 0) return;
  const auto found = moves_.find(move.id);
  const std::unique_ptr<Move> ended = std::move(found->second);
  moves_.erase(found);
  on_ended_();
  ended->out.done(std::move(*ended->result));
}

void BulkSender::close(const Status& why) {
  closed_ = true;
  for (auto& queue : queued_) queue.clear();
  given_up_.clear();
  std::vector<uint64_t> open;
  for (const auto& [id, move] : moves_) {
    if (!move->result) open.push_back(id);
  }
  std::sort(open.begin(), open.end());
  for (const uint64_t id : open) take_result(*moves_.at(id), why);
}

}  // namespace troupe::ucx
