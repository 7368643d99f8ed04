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

KvExporter::KvExporter(Transport& transport, const WorkerKv& kv, Exported exported)
    : transport_(transport), kv_(kv), exported_(std::move(exported)) {}

void KvExporter::on_layer_stored(const StepPlan& plan, uint32_t layer) {
  TROUPE_ASSERT(layer < kv_.layers(), layer);
  if (layer == 0) {
    flights_.clear();
    for (const KvExport& exported : plan.exports) {
      flights_.push_back(std::make_shared<Flight>());
      flights_.back()->layers_left =
          kv_.all.layers + (exported.window_blocks.empty() ? 0 : kv_.windowed.layers);
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
  const bool windowed = kv_.in_windowed(layer);
  const KvMemory& pool = windowed ? kv_.windowed : kv_.all;
  const uint32_t place = kv_.place(layer);
  const std::vector<BlockIndex>& blocks = windowed ? exported.window_blocks : exported.blocks;
  if (blocks.empty()) return;
  const uint32_t first = windowed ? exported.window_first : exported.first;
  TROUPE_ASSERT(to.layers == kv_.all.layers && to.window_layers == kv_.windowed.layers, to.layers);
  TROUPE_ASSERT(to.block_bytes == pool.block_bytes, to.block_bytes, pool.block_bytes);
  TROUPE_ASSERT(first + blocks.size() <= to.blocks && (!windowed || first >= to.window_first),
                first, to.blocks, to.window_first);
  BulkPart part;
  part.offset = windowed ? to.window_offset(place, first) : to.offset(place, first);
  part.pieces.reserve(blocks.size());
  for (const BlockIndex block : blocks) part.pieces.emplace_back(pool.at(place, block));
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
