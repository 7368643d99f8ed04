#include "apps/node/worker.h"

#include <glog/logging.h>

#include "actors/device/device_actor.h"
#include "actors/kv_cache_manager/kv_cache_manager_actor.h"
#include "actors/wire/codec.h"
#include "base/assert.h"

namespace troupe {

class WorkerParts::ModelTeller final : public MessageReceiver {
 public:
  ModelTeller(wire::Outbox& outbox, const LoadedModel& loaded, std::vector<std::string> names)
      : outbox_(outbox) {
    described_.model = loaded.digest();
    described_.name = loaded.name();
    described_.served_names = std::move(names);
    described_.context_tokens = loaded.context_tokens();
    described_.header = {loaded.header().begin(), loaded.header().end()};
  }

  void on_message(MessageWords words) override {
    const auto message = wire::decode(words);
    if (!message.ok()) {
      LOG(WARNING) << "model: " << message.status().message();
      return;
    }
    const auto* describe = std::get_if<wire::Describe>(&message.value());
    if (describe == nullptr) {
      LOG(WARNING) << "model: dropped a message that asks for no model";
      return;
    }
    if (const Status sent = outbox_.send(describe->reply_to, described_); !sent.ok())
      LOG(WARNING) << "model: " << describe->reply_to << " asked and is gone: " << sent.message();
  }

 private:
  wire::Outbox& outbox_;
  wire::Described described_;
};

WorkerIdentity WorkerParts::identity(const Node& node, const WorkerOptions& options) const {
  WorkerIdentity identity;
  identity.endpoint = node.address() + "/" + kWorkerEndpoint;
  identity.worker = worker_id_of(identity.endpoint);
  identity.incarnation = node.incarnation();
  identity.role = options.role;
  identity.model = loaded_.digest();
  identity.model_name =
      options.served_names.empty() ? loaded_.name() : options.served_names.front();
  identity.context_tokens = loaded_.context_tokens();
  identity.kv_type = loaded_.kv_extent().type;
  identity.routers.clear();
  for (const std::string& router : options.routers)
    identity.routers.push_back(router + "/" + kRouterEndpoint);
  return identity;
}

caf::actor WorkerParts::spawn_decode_worker(Node& node, const WorkerOptions& options) {
  DecodeOptions decode;
  decode.identity = identity(node, options);
  decode.scheduler = loaded_.scheduler_options(options.engine);
  WorkerBulk bulk;
  bulk.kv = loaded_.kv_memory();
  decode.kv = loaded_.kv_extent();
  if (options.role == wire::Role::kDecode) bulk.transport = &node.transport();
  DecodeWorker worker = spawn_decode(
      node.system(), clock_, node.outbox(), metrics_, std::move(decode), bulk,
      [this] { return loaded_.make_grammar_vocabulary(); },
      spawn_device(node.system(), loaded_.executor()),
      spawn_kv_cache_manager(node.system(), loaded_.kv_cache_manager(), metrics_));
  landings_ = std::move(worker.landings);
  exporter_ = std::move(worker.exporter);
  loaded_.executor().set_layer_listener(exporter_.get());
  return worker.actor;
}

caf::actor WorkerParts::spawn_prefill_worker(Node& node, const WorkerOptions& options) {
  PrefillOptions prefill;
  prefill.identity = identity(node, options);
  prefill.scheduler = loaded_.scheduler_options(options.engine);
  prefill.kv = loaded_.kv_extent();
  PrefillWorker worker = spawn_prefill(
      node.system(), clock_, node.outbox(), metrics_, std::move(prefill), node.transport(),
      loaded_.kv_memory(), spawn_device(node.system(), loaded_.executor()),
      spawn_kv_cache_manager(node.system(), loaded_.kv_cache_manager(), metrics_));
  exporter_ = std::move(worker.exporter);
  loaded_.executor().set_layer_listener(exporter_.get());
  return worker.actor;
}

Result<caf::actor> WorkerParts::start(Node& node, const WorkerOptions& options) {
  TROUPE_ASSERT(!teller_, options.routers.size());
  if (options.role != wire::Role::kMixed) {
    const WorkerKv kv = loaded_.kv_memory();
    TROUPE_RETURN_IF_ERROR(node.transport().register_memory(kv.all.memory));
    if (kv.windowed.layers > 0)
      TROUPE_RETURN_IF_ERROR(node.transport().register_memory(kv.windowed.memory));
  }
  loaded_.describe_kv(metrics_);
  teller_ = std::make_shared<ModelTeller>(node.outbox(), loaded_, options.served_names);
  TROUPE_RETURN_IF_ERROR(node.bind(kModelEndpoint, *teller_));
  caf::actor actor = options.role == wire::Role::kPrefill ? spawn_prefill_worker(node, options)
                                                          : spawn_decode_worker(node, options);
  TROUPE_RETURN_IF_ERROR(node.bind(kWorkerEndpoint, actor));
  node.watch_peers();
  return actor;
}

}  // namespace troupe
