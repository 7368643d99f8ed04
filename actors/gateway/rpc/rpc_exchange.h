#pragma once
// One generating request of an RPC client: from the prepared request to the answer.

#include <kj/async.h>
#include <kj/memory.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/gateway/openai/generation_run.h"
#include "actors/gateway/rpc/rpc_context.h"
#include "schema/serving.capnp.h"

namespace troupe {

// Loop thread only. Destroying it at any time, which is what a client's cancelling does, cancels
// the generation.
class RpcExchange final : private RunSink {
 public:
  enum class Delivery { kChunks, kWhole };
  // `context` outlives the exchange. An answer that is delivered whole gathers here, and the sink,
  // if there is one, hears of errors only.
  RpcExchange(RpcContext& context, LoadTicket ticket, kj::Maybe<rpc::ResponseSink::Client> sink,
              Delivery delivery);
  ~RpcExchange() noexcept override;
  RpcExchange(const RpcExchange&) = delete;
  RpcExchange& operator=(const RpcExchange&) = delete;

  // Resolves when everything is generated and, with a sink, given. Rejects with the client's error.
  // `number` is FrontendLoad's; `label` the client's name for the request, possibly unusable.
  [[nodiscard]] kj::Promise<void> serve(PreparedRequest prepared, uint64_t number,
                                        const std::string& label);
  // After serve() has resolved.
  void fill_answer(rpc::Answer::Builder out) const;
  // Ends the generation with an error to the client. For shutdown.
  void abort(const Status& status);
  // Cancels the generation and forgets the context, which is about to go. The RPC system destroys
  // the calls of a connection that is gone only when the loop turns the next time.
  void orphan();

 private:
  // A call, or in chunks what is new of it: id and name only where it begins.
  struct PendingCall {
    uint32_t index = 0;
    std::string id, name, arguments;
  };
  // What is new of one choice and not given yet.
  struct Pending {
    std::string text, reasoning;
    std::vector<PendingCall> calls;
    std::vector<ChoiceToken> prompt, tokens;
    std::optional<AnswerEnd> finish;
  };

  // Returns the bytes that a message will need for the part.
  static size_t add_part(const AnswerPart& part, Pending& pending);
  static void fill_calls(const std::vector<PendingCall>& calls,
                         capnp::List<rpc::ToolCall>::Builder out);

  void on_delta(const ChoiceDelta& delta, const GenerationRun& run) override;
  void on_end(const UsageTotals& totals) override;
  void on_error(const Status& status) override;

  // Gives what there is and waits for more, until the end or an error.
  [[nodiscard]] kj::Promise<void> pump();
  [[nodiscard]] kj::Promise<void> give_chunk(rpc::ResponseSink::Client& sink);
  [[nodiscard]] kj::Promise<void> give_end(rpc::ResponseSink::Client& sink);
  [[nodiscard]] kj::Promise<void> wait_for_output();
  void fill_choices(capnp::List<rpc::Choice>::Builder out) const;
  // The promise, or after the write timeout a failure of this request.
  [[nodiscard]] kj::Promise<void> in_time(kj::Promise<void> given);
  void cut(Status status);
  void wake();

  RpcContext* context_;  // null: orphaned
  std::optional<LoadTicket> ticket_;
  kj::Maybe<rpc::ResponseSink::Client> sink_;
  const bool chunks_;  // then there is a sink
  RunIdentity identity_;
  int32_t logprobs_ = -1;
  std::map<uint32_t, Pending> pending_;  // by index
  size_t pending_bytes_ = 0;
  UsageTotals totals_;
  std::optional<Status> error_;
  bool ended_ = false;  // nothing more is generated
  kj::Own<kj::PromiseFulfiller<void>> wake_;
  kj::PromiseFulfillerPair<void> cut_;
  std::unique_ptr<GenerationRun> run_;  // last: its end may still call the sink
};

// Tells the sink, if there is one, and then rejects. A sink that does not answer is not waited for
// longer than FrontendLimits::abort_flush.
[[nodiscard]] kj::Promise<void> refuse(RpcContext& context, const Status& status,
                                       kj::Maybe<rpc::ResponseSink::Client>& sink);

}  // namespace troupe
