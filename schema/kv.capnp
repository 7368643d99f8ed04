@0xb0a1c5e2f7d94c38;
# What decode and prefill workers say to each other about the KV of one prompt.
#
#   decode worker --reserved--> prefill worker      the blocks are reserved, compute and move
#   prefill worker ==parts==> decode worker         bulk lane, layer by layer while it computes
#   prefill worker --prefilled--> decode worker     all parts have arrived, or why not
#   decode worker --released--> prefill worker      no longer wanted
#
# The decode worker owns the exchange. It holds the landing under a lease with a deadline: at the
# deadline, or when the prefill worker is lost, it retracts the landing, keeps what has arrived
# whole, and computes the rest itself. So none of these messages has to arrive, and each may arrive
# twice: `landing` names one exchange, and is never used again.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

enum ErrorCode {
  # The codes of include/troupe/status.h, in its order.
  ok @0;
  invalidArgument @1;
  notFound @2;
  contextLength @3;
  resourceExhausted @4;
  deadlineExceeded @5;
  cancelled @6;
  unavailable @7;
  dataLoss @8;
  unsupported @9;
  internal @10;
}

enum KvType {
  # How keys and values are stored: kernels/ops/kv_storage.h, in its order.
  f16 @0;
  int8 @1;
  f32 @2;
}

struct Error {
  code @0 :ErrorCode;
  message @1 :Text;   # one sentence for a person
  param @2 :Text;     # the offending field of the client's request, or empty
}

struct Ticket {
  # BulkTicket of include/troupe/transport.h. Its label is (request, attempt, epoch), so that a part
  # of another request, of an earlier attempt, or of an earlier lease of the same one is refused.
  landing @0 :UInt64;
  labelHigh @1 :UInt64;  # the request
  labelLow @2 :UInt64;   # attempt << 32 | epoch
}

struct Reserved {
  # decode -> prefill: compute KV of all `tokens` and move the blocks from `firstBlock` on.
  request @0 :UInt64;
  attempt @1 :UInt32;
  replyTo @2 :Text;         # endpoint of the decode worker; its node holds the landing
  ticket @3 :Ticket;
  tokens @4 :List(Int32);   # the prompt without its last token
  cacheSalt @5 :Text;
  firstBlock @6 :UInt32;    # blocks before it stand at the decode worker
  deadlineMs @7 :UInt32;    # from arrival: afterwards nobody wants it
  # The landing is `[layer][block]` with blocks firstBlock … ⌈tokens / 16⌉ - 1, each of `blockBytes`.
  layers @8 :UInt32;
  blockBytes @9 :UInt64;
  model @10 :Text;  # digest; a worker with another one refuses, for its KV means something else
  windowLayers @11 :UInt32;
  window @12 :UInt32;
  # Layers whose rows see only so many tokens, their own the last, and that have blocks of their own;
  # `layers` are the others. Behind the others the landing has those, in the same way, but only their
  # blocks from max(firstBlock, first) on, where `first` is the block of the first token that a row
  # behind the last full block of `tokens` sees. 0: there are none, and `layers` are all. A worker with other numbers
  # refuses.
  kvType @13 :KvType;  # of the landing's blocks; a worker that stores KV in another way refuses
}

struct Prefilled {
  # prefill -> decode: nothing more will be moved. On an error, what has landed is still good.
  landing @0 :UInt64;
  error @1 :Error;          # code ok: everything has landed
  cachedTokens @2 :UInt32;  # of the prompt, found in the prefill worker's cache
  computeStartedNs @3 :Int64;  # prefill worker's clock: its first and last step for it
  computeFinishedNs @4 :Int64;
  finishedNs @5 :Int64;        # when the last part had arrived
}

struct Released {
  # decode -> prefill: stop computing and moving for this landing. Unknown ones are ignored.
  landing @0 :UInt64;
}
