#include "transport/ucx/bulk_receiver.h"

#include <memory>

#include "base/assert.h"
#include "base/limits.h"
#include "transport/ucx/limits.h"
#include "transport/ucx/ucx_worker.h"

namespace troupe::ucx {

// One rendezvous under way. The landing is a writer's meanwhile, and so keeps its memory.
struct BulkReceiver::Op {
  BulkReceiver& receiver;
  ChunkHead chunk;
  ByteRanges ranges;
  std::vector<ucp_dt_iov_t> iov;
};

BulkReceiver::~BulkReceiver() {
  TROUPE_ASSERT(is_idle(), in_flight_);
}

Status BulkReceiver::check(const ChunkHead& chunk) {
  if (chunk.part_bytes == 0 || chunk.chunk_offset > chunk.part_bytes ||
      chunk.chunk_bytes > chunk.part_bytes - chunk.chunk_offset) {
    return {StatusCode::kDataLoss, "a chunk that lies outside its part"};
  }
  return ok_status();
}

ucs_status_t BulkReceiver::receive(std::string_view head, void* data, size_t bytes,
                                   const ucp_am_recv_param_t& how, Status& status) {
  uint64_t count = 0;
  const bool rendezvous = (how.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (!take(head, count) || count == 0 || count > limits::kFrameChunksMax ||
      head.size() != count * sizeof(ChunkHead) || (rendezvous && count != 1)) {
    status = {StatusCode::kDataLoss, "a malformed frame of parts"};
    return UCS_OK;
  }
  bytes_received_ += bytes;
  std::span<const std::byte> rest;
  if (!rendezvous) rest = {static_cast<const std::byte*>(data), bytes};
  for (ChunkHead chunk; take(head, chunk);) {
    status = check(chunk);
    if (status.ok() && arriving_.size() > limits::kMovesMax) {
      status = {StatusCode::kDataLoss, "more parts under way than the limit"};
    }
    if (!status.ok()) return UCS_OK;
    if (rendezvous) return receive_rendezvous(chunk, data, bytes, status);
    if (chunk.chunk_bytes > rest.size()) {
      status = {StatusCode::kDataLoss, "a truncated frame of parts"};
      return UCS_OK;
    }
    if (chunk.chunk_bytes == 0) {
      on_given_up(chunk);
    } else {
      copy_in(chunk, rest.first(chunk.chunk_bytes));
      rest = rest.subspan(chunk.chunk_bytes);
    }
  }
  if (!rest.empty()) status = {StatusCode::kDataLoss, "a frame of parts with bytes left over"};
  return UCS_OK;
}

bool BulkReceiver::is_failed(const ChunkHead& chunk) const {
  const auto found = arriving_.find(chunk.move);
  return found != arriving_.end() && found->second.failed;
}

Result<ByteRanges> BulkReceiver::begin(const ChunkHead& chunk) {
  const BulkTicket ticket{chunk.landing, chunk.label_high, chunk.label_low};
  // The whole part, before the first of its bytes is written.
  TROUPE_RETURN_IF_ERROR(landings_.check(ticket, chunk.part_offset, chunk.part_bytes));
  return landings_.begin_write(ticket, chunk.part_offset + chunk.chunk_offset, chunk.chunk_bytes);
}

static ResultCode code_of(const Status& status) {
  return status.code() == StatusCode::kNotFound ? kNoLanding : kDoesNotFit;
}

// The checksum is verified before anything is written.
void BulkReceiver::copy_in(const ChunkHead& chunk, std::span<const std::byte> bytes) {
  if (is_failed(chunk)) return static_cast<void>(count(chunk));
  if (checksum_of({&bytes, 1}) != chunk.checksum) return refuse(chunk, kDamaged);
  const auto ranges = begin(chunk);
  if (!ranges.ok()) return refuse(chunk, code_of(ranges.status()));
  copy_pieces({&bytes, 1}, ranges.value());
  end(chunk, true);
}

ucs_status_t BulkReceiver::receive_rendezvous(const ChunkHead& chunk, void* data, size_t bytes,
                                              Status& status) {
  if (chunk.chunk_bytes != bytes) {
    status = {StatusCode::kDataLoss, "a chunk whose size is not that of its data"};
    return UCS_OK;
  }
  // Ok without having received tells UCX to drop the data.
  if (is_failed(chunk)) return static_cast<void>(count(chunk)), UCS_OK;
  auto ranges = begin(chunk);
  if (!ranges.ok()) return refuse(chunk, code_of(ranges.status())), UCS_OK;
  std::unique_ptr<Op> op(new Op{*this, chunk, std::move(ranges).value(), {}});

  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE;
  how.user_data = op.get();
  how.cb.recv_am = [](void* request, ucs_status_t result, size_t /*bytes*/, void* user_data) {
    const std::unique_ptr<Op> ended(static_cast<Op*>(user_data));
    ucp_request_free(request);
    ended->receiver.finish(*ended, result);
  };
  void* buffer = op->ranges.front().data();
  size_t count = op->ranges.front().size();
  how.datatype = ucp_dt_make_contig(1);
  if (op->ranges.size() > 1) {
    for (const std::span<std::byte>& range : op->ranges) {
      op->iov.push_back({range.data(), range.size()});
    }
    how.datatype = ucp_dt_make_iov();
    buffer = op->iov.data();
    count = op->iov.size();
  }
  ++in_flight_;
  void* request = ucp_am_recv_data_nbx(worker_, data, buffer, count, &how);
  if (UCS_PTR_IS_PTR(request)) {
    static_cast<void>(op.release());  // the callback's now
    return UCS_INPROGRESS;
  }
  finish(*op, UCS_PTR_STATUS(request));
  if (UCS_PTR_IS_ERR(request)) status = status_of(UCS_PTR_STATUS(request), "receive a part");
  return UCS_INPROGRESS;
}

void BulkReceiver::finish(Op& op, ucs_status_t status) {
  TROUPE_ASSERT(in_flight_ > 0);
  --in_flight_;
  if (status != UCS_OK) {
    // The peer is lost; nobody waits for a result.
    landings_.end_write(op.chunk.landing, op.chunk.part_offset, op.chunk.part_bytes, false);
    return;
  }
  end(op.chunk, checksum_of(std::span<const std::span<std::byte>>(op.ranges)) == op.chunk.checksum);
}

// Ends the write of a chunk whose bytes are in the landing.
void BulkReceiver::end(const ChunkHead& chunk, bool verified) {
  if (!verified) {
    landings_.end_write(chunk.landing, chunk.part_offset, chunk.part_bytes, false);
    return refuse(chunk, kDamaged);
  }
  const bool complete = count(chunk);
  if (complete) results_.push_back({chunk.move, kLanded});
  landings_.end_write(chunk.landing, chunk.part_offset, chunk.part_bytes, complete);
}

// Tells the sender once.
void BulkReceiver::refuse(const ChunkHead& chunk, ResultCode code) {
  Arriving& arriving = arriving_[chunk.move];
  if (!arriving.failed) {
    arriving.failed = true;
    ++parts_refused_;
    results_.push_back({chunk.move, code});
  }
  static_cast<void>(count(chunk));
}

// Counts a chunk as come, used or not. True: it was the last, and none was refused.
bool BulkReceiver::count(const ChunkHead& chunk) {
  Arriving& arriving = arriving_[chunk.move];
  arriving.received += chunk.chunk_bytes;
  const bool whole = arriving.received >= chunk.part_bytes;
  const bool complete = whole && !arriving.failed;
  if (whole || arriving.received >= arriving.given_up_after) arriving_.erase(chunk.move);
  return complete;
}

// The sender counts what it sent, so that it does not matter whether this overtakes a chunk.
void BulkReceiver::on_given_up(const ChunkHead& chunk) {
  const auto found = arriving_.find(chunk.move);
  if (found == arriving_.end()) return;
  found->second.given_up_after = chunk.chunk_offset;
  found->second.failed = true;
  if (found->second.received >= chunk.chunk_offset) arriving_.erase(found);
}

}  // namespace troupe::ucx
