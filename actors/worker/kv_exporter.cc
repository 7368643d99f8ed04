#include "actors/worker/kv_exporter.h"

#include <mutex>
#include <utility>

#include "base/assert.h"

namespace troupe {

// One KvExport on its way: its layers leave one by one and arrive in any order.
struct KvExporter::Flight {
  std::mutex mutex;
  uint32_t layers_left = 0;
  Status failed;
};

KvExporter::KvExporter(Transport& transport, const KvMemory& kv, Exported exported)
    : transport_(transport), kv_(kv), exported_(std::move(exported)) {}

void KvExporter::on_layer_stored(const StepPlan& plan, uint32_t layer) {
  TROUPE_ASSERT(layer < kv_.layers, layer);
  if (layer == 0) {
    flights_.clear();
    for (size_t i = 0; i < plan.exports.size(); ++i) {
      flights_.push_back(std::make_shared<Flight>());
      flights_.back()->layers_left = kv_.layers;
    }
  }
  TROUPE_ASSERT(flights_.size() == plan.exports.size(), plan.number, layer);
  for (size_t i = 0; i < plan.exports.size(); ++i) {
    move_layer(plan.exports[i], layer, flights_[i]);
  }
}

void KvExporter::move_layer(const KvExport& exported, uint32_t layer,
                            const std::shared_ptr<Flight>& flight) {
  const KvDestination& to = *exported.to;
  TROUPE_ASSERT(to.layers == kv_.layers && to.block_bytes == kv_.block_bytes, to.layers);
  TROUPE_ASSERT(exported.first + exported.blocks.size() <= to.blocks, exported.first, to.blocks);
  BulkPart part;
  part.offset = (uint64_t{layer} * to.blocks + exported.first) * to.block_bytes;
  part.pieces.reserve(exported.blocks.size());
  for (const BlockIndex block : exported.blocks) part.pieces.emplace_back(kv_.at(layer, block));
  transport_.move(to.node, to.ticket, TrafficClass::kBulk, std::move(part),
                  [this, flight, landing = to.ticket.landing](Status status) {
                    {
                      const std::lock_guard lock(flight->mutex);
                      if (flight->failed.ok()) flight->failed = std::move(status);
                      TROUPE_ASSERT(flight->layers_left > 0, landing);
                      if (--flight->layers_left > 0) return;
                    }
                    exported_(landing, flight->failed);
                  });
}

}  // namespace troupe
