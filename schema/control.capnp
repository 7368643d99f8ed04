@0xd3a6b1f0c4e85a17;
# How one request travels between the gateway, the router and the workers, and how these know of
# each other. What prefill and decode workers say about KV stands in kv.capnp.
#
#   gateway --accepted--> router --routed--> decode worker --emitted--> gateway
#                            |                |        ^
#                            |            reserved  prefilled     (kv.capnp)
#                            |                v        |
#                            |            prefill worker
#                            +--rejected--> gateway
#   gateway --cancelled--> router --cancelled--> decode worker --finished--> router
#   every worker --heartbeat--> its routers --health--> gateways, monitors
#
# Rules that hold for every message here:
#  - One message is one `Message`, whose union says which. A reader that does not know a member
#    ignores the message: field and member numbers are for ever, new ones go to the end.
#  - Messages between one pair of endpoints arrive in order, or not at all, or more than once. Each
#    receiver therefore treats a repeated or late message as harmless: what ends a request the second
#    time, or belongs to an attempt that is over, is dropped.
#  - (request, attempt) names one try at a request. The router makes attempt 1 when it admits the
#    request; emissions and endings carry the attempt they belong to.
#  - Endpoints are addresses of include/troupe/transport.h: `node/name`.
#  - Times are nanoseconds of the sender's monotonic clock; only differences of stamps by one sender
#    mean anything on another machine, unless both clocks are compared (the transport's peers do).
#  - Limits stand in base/limits.h; a message over a limit is refused by the receiver with a log line
#    and, where it starts a request, a `rejected`.

using Cxx = import "/capnp/c++.capnp";
using Kv = import "kv.capnp";
$Cxx.namespace("troupe::schema");

enum Stop {
  # The stops of a request on its way through the system. Trace events, handlers, log lines and
  # metrics use the same names; docs/walkthrough.md tells what happens at each.
  accepted @0;   # the gateway parsed and tokenised it
  routed @1;     # the router admitted it and chose its worker
  reserved @2;   # the worker's KV-cache manager found the cached prefix and reserved the rest
  prefilled @3;  # the last chunk of its prompt is computed
  moved @4;      # its KV stands where it is decoded (nothing to move where prefill and decode are one)
  joined @5;     # its first token is sampled; it decodes in the batch
  emitted @6;    # its first token reached the gateway
  finished @7;   # it ended; its blocks are free or cached
}

struct LogitBias {
  token @0 :Int32;
  bias @1 :Float32;
}

struct SamplingParams {
  # engine/sample/sampling_params.h states ranges and meaning of every field.
  temperature @0 :Float32 = 1;
  topK @1 :Int32;
  topP @2 :Float32 = 1;
  minP @3 :Float32;
  repetitionPenalty @4 :Float32 = 1;
  presencePenalty @5 :Float32;
  frequencyPenalty @6 :Float32;
  logitBias @7 :List(LogitBias);
  seed @8 :UInt64;
  stopTokenIds @9 :List(Int32);
  ignoreEos @10 :Bool;
  minTokens @11 :UInt32;
  maxTokens @12 :UInt32;
  logprobs @13 :Int32 = -1;
  promptLogprobs @14 :Int32 = -1;
  grammar @15 :Grammar;  # absent: free text
  pooling @16 :Pooling;
  scoreFrom @17 :UInt32 = 1;
  allowedTokens @18 :List(Int32);
  badWords @19 :List(List(Int32));
}

enum GrammarKind {
  none @0;
  jsonObject @1;
  jsonSchema @2;
  regex @3;
  choice @4;
  ebnf @5;
  structuralTag @6;
}

struct Grammar {
  # engine/grammar/grammar_spec.h tells what the text of each kind is. Checked by the gateway;
  # compiled by the decode worker, which ends the request if it cannot.
  kind @0 :GrammarKind;
  text @1 :Text;
}

enum Pooling {
  # The prompt's vector instead of output.
  none @0;
  mean @1;
  last @2;
}

struct Sequence {
  # One continuation to generate: choice i of its request is the i-th of the list.
  id @0 :UInt64;
  params @1 :SamplingParams;
}

struct Request {
  id @0 :UInt64;
  label @1 :Text;        # the client's name for it; for logs, never a key
  gateway @2 :Text;      # endpoint that gets the tokens
  prompt @3 :List(Int32);
  sequences @4 :List(Sequence);
  cacheSalt @5 :Text;    # prefixes are shared only within one salt
  acceptedNs @6 :Int64;  # gateway's clock
  model @7 :Text;
  # Digest of the model that shall answer, as in heartbeats. Empty, as from a gateway that knows one
  # model only: the cluster's, while it has one.
}

struct Accepted {
  # gateway -> router, once per request. Answered by `emitted` from the worker or by `rejected`.
  request @0 :Request;
}

struct Routed {
  # router -> decode worker, once per attempt. A worker that already has this (request, attempt)
  # ignores it; a higher attempt replaces a lower one.
  request @0 :Request;
  attempt @1 :UInt32;
  prefill @2 :Text;
  # Endpoint of the prefill worker that computes the prompt if too little of it is cached; empty:
  # compute it where it is decoded.
  prefillWaitMs @3 :UInt32;  # predicted time until the prefill worker can begin
  router @4 :Text;           # endpoint that gets `finished`
  prefillTokens @5 :UInt32;  # of the prompt, to have from there; 0: all but the last
}

struct Rejected {
  # router -> gateway: the request ends here with an error and has no other end.
  request @0 :UInt64;
  attempt @1 :UInt32;
  error @2 :Kv.Error;
  retryAfterMs @3 :UInt32;  # when trying again makes sense; 0: it does not
}

struct Cancelled {
  # gateway -> router -> decode worker: stop these sequences (all when empty). No answer; the worker
  # frees their blocks within one step. Unknown ids are ignored.
  request @0 :UInt64;
  sequences @1 :List(UInt64);
}

struct TokenLogprob {
  token @0 :Int32;
  logprob @1 :Float32;
}

struct SampledToken {
  token @0 :Int32;
  logprob @1 :Float32;
  top @2 :List(TokenLogprob);
}

enum FinishReason {
  stop @0;
  length @1;
}

struct StopTime {
  stop @0 :Stop;
  atNs @1 :Int64;  # the worker's clock
}

struct End {
  # How a sequence ended, with what the worker counted.
  union {
    finished @0 :FinishReason;
    failed @1 :Kv.Error;
  }
  stopToken @2 :Int32 = -1;
  promptTokens @3 :UInt32;
  cachedTokens @4 :UInt32;
  outputTokens @5 :UInt32;
}

struct Emission {
  request @0 :UInt64;
  sequence @1 :UInt64;
  attempt @2 :UInt32;
  firstIndex @3 :UInt32;  # index of tokens[0] among the sequence's output tokens: gaps and repeats show
  tokens @4 :List(SampledToken);
  promptScores @5 :List(SampledToken);
  firstScore @6 :UInt32;  # index of promptScores[0] among the prompt's scores
  end @7 :End;            # null while the sequence goes on
  cachedTokens @8 :UInt32;  # of the prompt, found in the prefix cache; known with the first token
  stops @9 :List(StopTime);  # that the sequence passed since its last emission, `routed` first
  computeNs @10 :Int64;      # of the devices' time, since its last emission, in steps that had a part
                             # in it; steps are shared, so the sum over sequences exceeds the time
  embedding @11 :List(Float32);  # the pooled prompt, together with the end; else empty
}

struct Emitted {
  # decode worker -> gateway, one per gateway and step.
  worker @0 :UInt32;
  step @1 :UInt64;
  deviceStartedNs @2 :Int64;   # stamps of the worker's clock: slow compute and slow network can be
  deviceFinishedNs @3 :Int64;  # told apart
  sentNs @4 :Int64;
  emissions @5 :List(Emission);
}

struct Finished {
  # decode worker -> router: this attempt has no sequence left at the worker.
  request @0 :UInt64;
  attempt @1 :UInt32;
  worker @2 :UInt32;
}

enum Role {
  mixed @0;    # decodes, and computes the prompts itself
  prefill @1;  # computes prompts for decode workers
  decode @2;   # decodes; has prompts computed by prefill workers where that is sooner
}

struct Heartbeat {
  # Every worker -> each of its routers, several times a second, also when idle. A router knows a
  # worker by its heartbeats alone: the first one makes it known, a missing one lost. A worker that
  # misses them, or says that its device is stalled, gets no new requests, and those it has are ended
  # or moved.
  worker @0 :UInt32;      # its name in messages; of one endpoint, the same in every life
  incarnation @1 :UInt64; # differs for each life of the worker; never 0
  stalled @2 :Bool;       # the step in flight is far over its predicted duration
  stepAgeMs @3 :UInt32;   # of the step in flight; 0 when idle
  endpoint @4 :Text;      # where it takes messages
  role @5 :Role;
  draining @6 :Bool;      # finishes what it has, takes nothing new
  left @7 :Bool;          # the last heartbeat of this life
  model @8 :Text;         # digest of the model file; requests for it, and no others, come here
  contextTokens @9 :UInt32;
  load @10 :Load;
  modelName @11 :Text;    # the first of its names, for people
  kvType @12 :Kv.KvType;  # all workers of a model store KV alike, or the same request would have
                          # other tokens at another one: a router refuses whoever differs
}

struct Load {
  # What a worker has to do, and how fast it does it (learned; 0 while unknown).
  running @0 :UInt32;        # sequences in the batch, or being prefilled
  waiting @1 :UInt32;        # sequences that wait for blocks or a place
  queuedTokens @2 :UInt64;   # prompt tokens still to be computed
  blocksTotal @3 :UInt32;
  blocksUsed @4 :UInt32;     # held by sequences or transfers; the others are free or cache
  secondsPerToken @5 :Float64;  # of prompt
  secondsPerStep @6 :Float64;   # that decodes
}

struct Refused {
  # router -> worker: its heartbeat does not fit this cluster, or its model's names are another's
  # there already. In the first case it is not used.
  reason @0 :Text;  # names both values
}

struct WorkerStatus {
  worker @0 :UInt32;
  endpoint @1 :Text;
  role @2 :Role;
  accepting @3 :Bool;
  state @4 :Text;          # "ready", "draining", "stalled", "left", "lost: …": a word, then for people
  incarnation @5 :UInt64;
  requests @6 :UInt32;     # that this router has in flight there
  heardMs @7 :UInt32;      # since its last heartbeat
  load @8 :Load;
  model @9 :Text;          # digest
  modelName @10 :Text;     # for people
}

struct Health {
  # router -> gateways and observers, when the answer to "can this cluster serve" changes, and every
  # heartbeat interval.
  healthy @0 :Bool;
  reason @1 :Text;        # why not
  workers @2 :List(WorkerStatus);  # by id
  requests @3 :UInt32;    # that this router has in flight
}

struct Observe {
  # monitor -> router, every heartbeat interval: send `health` to this endpoint, too.
  endpoint @0 :Text;
}

struct Describe {
  # router's process -> worker: what model is it? Answered by `described`. A gateway needs the
  # tokenizer and the chat template, and has no model file.
  replyTo @0 :Text;
}

struct Described {
  # worker -> who asked.
  model @0 :Text;          # digest, as in heartbeats
  name @1 :Text;           # of the model file, without folder and ending
  contextTokens @2 :UInt32;
  header @3 :Data;         # the GGUF file up to its tensors' data: metadata and tensor list
  servedNames @4 :List(Text);
  # What requests may call it, the first as its name in lists; empty: `name`.
}

struct Message {
  union {
    accepted @0 :Accepted;
    routed @1 :Routed;
    rejected @2 :Rejected;
    cancelled @3 :Cancelled;
    emitted @4 :Emitted;
    finished @5 :Finished;
    heartbeat @6 :Heartbeat;
    health @7 :Health;
    reserved @8 :Kv.Reserved;
    prefilled @9 :Kv.Prefilled;
    released @10 :Kv.Released;
    refused @11 :Refused;
    observe @12 :Observe;
    describe @13 :Describe;
    described @14 :Described;
  }
}
