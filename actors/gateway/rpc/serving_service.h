#pragma once
// The methods of the Serving interface. schema/serving.capnp says what each promises.

#include <kj/async.h>

#include "actors/gateway/rpc/rpc_context.h"
#include "schema/serving.capnp.h"

namespace troupe {

// Holds nothing of a client: one object serves all connections. Loop thread only.
class ServingService final : public rpc::Serving::Server {
 public:
  // `context` outlives the service.
  explicit ServingService(RpcContext& context) : context_(context) {}

  kj::Promise<void> version(VersionContext context) override;
  kj::Promise<void> health(HealthContext context) override;
  kj::Promise<void> models(ModelsContext context) override;
  kj::Promise<void> tokenize(TokenizeContext context) override;
  kj::Promise<void> detokenize(DetokenizeContext context) override;
  kj::Promise<void> complete(CompleteContext context) override;
  kj::Promise<void> chat(ChatContext context) override;

 private:
  // complete() and chat(), which differ in their types only.
  template <class Context, class Check>
  [[nodiscard]] kj::Promise<void> generate(Context context, Check check);
  [[nodiscard]] Status check_size(capnp::MessageSize size) const;

  RpcContext& context_;
};

}  // namespace troupe
