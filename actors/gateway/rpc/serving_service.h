#pragma once
// The methods of the Serving interface. schema/serving.capnp says what each promises.

#include <kj/async.h>

#include "actors/gateway/rpc/rpc_context.h"
#include "schema/serving.capnp.h"

namespace troupe {

// Holds nothing of a client: one object of each kind of access serves all connections. Loop thread
// only.
class ServingService final : public rpc::Serving::Server {
 public:
  // What a client may do: the bootstrap capability's methods, or all of them.
  enum class Access { kUntilKeyIsGiven, kGranted };
  // `context` outlives the service.
  ServingService(RpcContext& context, Access access) : context_(context), access_(access) {}

  kj::Promise<void> version(VersionContext context) override;
  kj::Promise<void> health(HealthContext context) override;
  kj::Promise<void> models(ModelsContext context) override;
  kj::Promise<void> tokenize(TokenizeContext context) override;
  kj::Promise<void> detokenize(DetokenizeContext context) override;
  kj::Promise<void> complete(CompleteContext context) override;
  kj::Promise<void> chat(ChatContext context) override;
  kj::Promise<void> authenticate(AuthenticateContext context) override;

 private:
  // complete() and chat(), which differ in their types only.
  template <class Context, class Check>
  [[nodiscard]] kj::Promise<void> generate(Context context, Check check);
  [[nodiscard]] Status check_size(capnp::MessageSize size) const;
  [[nodiscard]] Status check_access() const;

  RpcContext& context_;
  const Access access_;
};

}  // namespace troupe
