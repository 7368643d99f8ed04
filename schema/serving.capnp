@0xc4b126a4b4af74a7;
# What a client asks of a Troupe gateway by Cap'n Proto RPC, beside the OpenAI-compatible HTTP API. A
# gateway answers both on one event loop, with one set of limits, and the same request gives the same
# tokens by either. docs/rpc.md has examples in Python and C++.
#
#   client --connect (TCP, two-party protocol)--> gateway      bootstrap capability: Serving
#   client --complete / chat (parameters, sink)--> gateway
#          <--chunk, chunk, ... end-- (calls of the client's ResponseSink)
#          <--answer--
#
# Names. A field has the name of its HTTP counterpart in camel case (top_p is topP), its default is
# the default there, and every range and every error text is the same: the gateway checks both by the
# same code, so an error names the HTTP spelling.
#
# Errors are exceptions of the call, with the text that HTTP has in error.message:
#   FAILED         the request breaks a rule, or names what does not exist: do not repeat it as it is.
#                  Also a fault of the server ("internal_error" there).
#   OVERLOADED     a queue or limit is full, no worker is ready, the request waited too long, or the
#                  server is ending: repeat it later, or elsewhere.
#   DISCONNECTED   the connection is gone. A request that was running is cancelled.
#   UNIMPLEMENTED  this server cannot do that: an older version, or a model without a chat template.
# A ResponseSink hears the same as a structure, by failed(), before the exception.
#
# Cancelling. Drop the promise of complete() or chat() (in Python: cancel the task), or the
# connection. What runs ends within one step and its KV blocks are free; nothing more is called.
#
# Flow control. chunk() is `-> stream`: the gateway keeps at most 64 KiB of them unanswered per
# request, and what is generated meanwhile is joined into the next chunk. So a slow reader slows only
# itself, gets fewer and larger chunks, and never less than everything. Generation does not pause for
# it: a paused request would keep its KV blocks from others. What a request can make the gateway hold
# is therefore bounded by its own max_tokens, and by pending_bytes_max (1 MiB; of HTTP as well),
# beyond which the request is cancelled and fails with OVERLOADED. So is one whose chunk() is not
# answered for write_timeout (60 s).
#
# Limits. A message of more than 8 MiB, or one that is no Cap'n Proto message, ends the connection; a
# request of more than 4 MiB (HTTP's limit of a body) is FAILED. Connections and running requests are
# counted together with those of HTTP.
#
# Versions. Field, method and enumerator numbers are for ever; new ones go to the end. A new
# parameter's default means "as before". A client that sends a field that the server does not know is
# not told so: ask version() first where it matters. A method that the server does not know is
# UNIMPLEMENTED. Meaning never changes under a number; a field that is given up is marked so.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::rpc");

interface Serving {
  # All methods may be called at any time and at once; each answers for itself.

  version @0 () -> (version :Text);
  # Of the server, "0.1.0".

  health @1 () -> (ready :Bool, reason :Text);
  # Whether requests would be served now; if not, why, in a sentence.

  models @2 () -> (models :List(Model));
  # Empty until a worker has joined.

  tokenize @3 (model :Text, prompt :Text, messages :List(Message), addSpecialTokens :Bool = true,
               addGenerationPrompt :Bool = true) -> (tokens :List(UInt32));
  # The tokens that a request with this prompt, or (when the list is not empty) these messages, would
  # have. `model` may be empty where the server has one model.

  detokenize @4 (model :Text, tokens :List(UInt32)) -> (text :Text);
  # Special tokens are spelled; what is no UTF-8 becomes U+FFFD.

  complete @5 (model :Text, prompt :Prompt, parameters :Parameters, sink :ResponseSink)
           -> (answer :Answer);
  # Continues a text. Without a sink the answer comes whole. With one the choices come by chunks, and
  # the answer has no choices: only id, model, time and usage.

  chat @6 (model :Text, messages :List(Message), parameters :Parameters, sink :ResponseSink)
       -> (answer :Answer);
  # Answers a conversation. The gateway applies the model's chat template.

  authenticate @7 (key :Text) -> (serving :Serving);
  # Where the server wants API keys, the bootstrap capability answers version() and health() alone;
  # the one from here answers everything, until its connection ends. An unknown key is FAILED. Where
  # the server wants none, every key is good.
}

interface ResponseSink {
  # The client's side of a streamed request. The gateway calls chunk() any number of times and then
  # either end() or failed() once; all in order, each after the chunks before it were answered.
  # Afterwards the call of complete() or chat() returns. After cancelling, nothing is called.

  chunk @0 (chunk :Chunk) -> stream;
  # An exception from here cancels the request.

  end @1 (answer :Answer) -> ();
  # Everything has been given; what complete() or chat() returns next.

  failed @2 (error :Error) -> ();
  # The request failed, possibly before any chunk. Optional: may be left unimplemented.
}

struct Model {
  name @0 :Text;
  contextTokens @1 :UInt32;  # prompt and output together
  vocabSize @2 :UInt32;
  created @3 :Int64;         # Unix seconds: when the gateway got to know it
  chat @4 :Bool;             # has a chat template: chat() works
}

struct Prompt {
  union {
    text @0 :Text;
    # Spellings of special tokens in it are these tokens.
    tokens @1 :List(UInt32);
    # As they are; nothing is added.
  }
}

struct Message {
  role @0 :Text;        # system, developer, user, assistant or tool
  content @1 :Text;     # UTF-8; special tokens spelled in it stay text
  name @2 :Text;        # empty: not given
  toolCallId @3 :Text;  # of a tool message; empty: not given
  toolCalls @4 :List(ToolCall);
}

struct ToolCall {
  # Of an assistant message in the conversation so far, or of an answer.
  id @0 :Text;
  name @1 :Text;
  arguments @2 :Text;  # JSON
  index @3 :UInt32;
  # Of an answer: 0, 1, ... within its choice. In a chunk: which call it goes on with; the chunk in
  # which a call begins has its id and name, and `arguments` is the piece that is new.
}

struct Tool {
  # A function that the model may ask the client to call.
  name @0 :Text;         # 1 to 64 of A-Z, a-z, 0-9, _ and -
  description @1 :Text;
  parameters @2 :Text;   # JSON text: the JSON Schema of an object. Empty: it takes nothing
  strict @3 :Bool;       # with an automatic choice, too, arguments follow `parameters`
}

struct LogitBias {
  token @0 :UInt32;
  bias @1 :Float64;  # [-100, 100]
}

struct Parameters {
  # docs/http-api.md tells what each one does.
  temperature @0 :Float64 = 1;        # [0, 2]
  topP @1 :Float64 = 1;               # (0, 1]
  topK @2 :Int64 = -1;                # -1 and 0: off
  minP @3 :Float64;                   # [0, 1]
  repetitionPenalty @4 :Float64 = 1;  # (0, 10]
  presencePenalty @5 :Float64;        # [-2, 2]
  frequencyPenalty @6 :Float64;       # [-2, 2]
  logitBias @7 :List(LogitBias);      # each token at most once
  seed :union {
    random @8 :Void;
    value @9 :UInt64;
  }
  n @10 :UInt32 = 1;                  # choices, [1, 16]
  maxTokens @11 :Int64 = -1;          # -1: 16 for complete(), the rest of the context for chat()
  minTokens @12 :Int64;
  stop @13 :List(Text);               # at most 4, each of 1 to 1024 bytes
  stopTokenIds @14 :List(UInt32);
  includeStopText @15 :Bool;          # include_stop_str_in_output
  ignoreEos @16 :Bool;
  logprobs @17 :Int64 = -1;
  # -1: none; k in [0, 20]: of each token and of the k most probable ones (top_logprobs of a chat).
  echo @18 :Bool;                     # complete() only: the prompt stands before each choice's text
  cacheSalt @19 :Text;                # cached prefixes are shared within one salt only
  whole @21 :Bool;                    # with a sink: the answer comes whole nevertheless, and the
                                      # sink hears nothing but failed()
  structuredOutputs @22 :Text;
  # What the answer has to look like: JSON text, an object as structured_outputs of a body. Empty:
  # free text.
  label @20 :Text;                    # for the server's log, as X-Request-Id; at most 128 visible
                                      # ASCII characters, else the server makes its own
  tools @23 :List(Tool);              # chat() only; at most 128
  toolChoice :union {
    standard @24 :Void;               # automatic with tools, none without
    none @25 :Void;                   # the tools are not shown to the model
    automatic @26 :Void;              # text, calls or both
    required @27 :Void;               # at least one call, and nothing else
    named @28 :Text;                  # a call of the tool of this name, and nothing else
  }
  parallelToolCalls @29 :Bool = true; # more than one call in an answer
  allowedTokenIds @30 :List(UInt32);  # none: all are allowed
  badWords @31 :List(Text);
}

enum FinishReason {
  unfinished @0;  # in a chunk: more comes
  stop @1;        # the model ended, or a stop string or stop token came
  length @2;      # max_tokens, or the end of the context; also in the middle of a call
  toolCalls @3;   # it ended by itself, has a call, and all its calls are whole
}

struct TokenLogprob {
  token @0 :UInt32;
  logprob @1 :Float32;
}

struct Token {
  id @0 :UInt32;
  logprob @1 :Float32;            # where logprobs were asked for; 0 for a prompt's first token
  top @2 :List(TokenLogprob);     # most probable first
}

struct Choice {
  # In an answer: the whole. In a chunk: what is new since the chunk before.
  index @0 :UInt32;               # in [0, n)
  text @1 :Text;                  # UTF-8, whole characters; held back while a stop string may begin
  tokens @2 :List(Token);         # all that were sampled, also those whose text is held back or cut
  promptTokens @3 :List(Token);   # with echo and logprobs: the prompt, scored; in the first chunk
  finishReason @4 :FinishReason;
  reasoning @5 :Text;             # what a model that reasons thought before `text`
  toolCalls @6 :List(ToolCall);   # in a chunk: each index at most once, in order
}

struct Chunk {
  choices @0 :List(Choice);       # at least one; each index at most once
}

struct Usage {
  promptTokens @0 :UInt64;
  completionTokens @1 :UInt64;    # of all choices
  cachedTokens @2 :Int64 = -1;    # of the prompt, found in the prefix cache; -1: unknown
}

struct Answer {
  id @0 :Text;                    # of the response; unique over HTTP and RPC
  model @1 :Text;
  created @2 :Int64;              # Unix seconds
  choices @3 :List(Choice);       # by index; none where they came as chunks
  usage @4 :Usage;
}

enum ErrorCode {
  # What the caller may do about it; include/troupe/status.h says more.
  internal @0;            # a fault of the server; report it
  invalidArgument @1;     # breaks a rule; repeating cannot help
  notFound @2;            # no such model
  contextLength @3;       # the prompt does not fit the model's context
  resourceExhausted @4;   # a limit or queue is full; retry later
  deadlineExceeded @5;    # not done in time; retry
  cancelled @6;
  unavailable @7;         # no worker, or it was lost; retry
  dataLoss @8;
  unsupported @9;         # well-formed, but this server cannot do it
}

struct Error {
  code @0 :ErrorCode;
  message @1 :Text;
  param @2 :Text;          # the field, as HTTP spells it ("messages[0].role"); empty: none
  retryAfterS @3 :UInt32;  # 0: repeating cannot help
}
