#pragma once
// What the KV exporter tells its worker, as mail.

#include <caf/allowed_unsafe_message_type.hpp>

#include <memory>
#include <utility>

#include "actors/worker/kv_exporter.h"
#include "actors/worker/ports_actor.h"

namespace troupe {

// The transport's thread -> prefill or decode.
struct ExportDone {
  uint64_t landing = 0;
  Status status;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ExportDone)

namespace troupe {

// An exporter whose reports go to the target.
[[nodiscard]] inline std::shared_ptr<KvExporter> make_exporter(
    Transport& transport, const WorkerKv& kv, const std::shared_ptr<MailTarget>& target) {
  return std::make_shared<KvExporter>(transport, kv, [target](uint64_t landing, Status status) {
    target->send(ExportDone{landing, std::move(status)});
  });
}

}  // namespace troupe
