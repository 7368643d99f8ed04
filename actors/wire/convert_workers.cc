#include "actors/wire/convert.h"
#include "actors/wire/convert_common.h"

namespace troupe::wire {

const char* to_string(Role role) {
  switch (role) {
    case Role::kMixed:
      return "mixed";
    case Role::kPrefill:
      return "prefill";
    case Role::kDecode:
      return "decode";
  }
  return "unknown";
}

namespace convert {
namespace {

static_assert(static_cast<int>(schema::Role::DECODE) == static_cast<int>(Role::kDecode));

Role read_role(schema::Role in) {
  const auto role = static_cast<uint16_t>(in);
  KJ_REQUIRE(role <= static_cast<uint16_t>(Role::kDecode), "unknown role", role);
  return static_cast<Role>(role);
}

void write(const Load& in, schema::Load::Builder out) {
  out.setRunning(in.running);
  out.setWaiting(in.waiting);
  out.setQueuedTokens(in.queued_tokens);
  out.setBlocksTotal(in.blocks_total);
  out.setBlocksUsed(in.blocks_used);
  out.setSecondsPerToken(in.seconds_per_token);
  out.setSecondsPerStep(in.seconds_per_step);
}

Load read(schema::Load::Reader in) {
  return {in.getRunning(),    in.getWaiting(),         in.getQueuedTokens(),  in.getBlocksTotal(),
          in.getBlocksUsed(), in.getSecondsPerToken(), in.getSecondsPerStep()};
}

void write(const WorkerStatus& in, schema::WorkerStatus::Builder out) {
  out.setWorker(in.worker.value);
  out.setEndpoint(in.endpoint);
  out.setRole(static_cast<schema::Role>(in.role));
  out.setAccepting(in.accepting);
  out.setState(in.state);
  out.setIncarnation(in.incarnation);
  out.setRequests(in.requests);
  out.setHeardMs(static_cast<uint32_t>(in.heard.count()));
  write(in.load, out.initLoad());
  out.setModel(in.model);
  out.setModelName(in.model_name);
}

WorkerStatus read(schema::WorkerStatus::Reader in) {
  WorkerStatus out;
  out.worker = WorkerId(in.getWorker());
  out.endpoint = in.getEndpoint().cStr();
  out.role = read_role(in.getRole());
  out.accepting = in.getAccepting();
  out.state = in.getState().cStr();
  out.incarnation = in.getIncarnation();
  out.requests = in.getRequests();
  out.heard = std::chrono::milliseconds(in.getHeardMs());
  out.load = read(in.getLoad());
  out.model = in.getModel().cStr();
  out.model_name = in.getModelName().cStr();
  return out;
}

}  // namespace

void write(const Heartbeat& in, schema::Heartbeat::Builder out) {
  out.setWorker(in.worker.value);
  out.setIncarnation(in.incarnation);
  out.setStalled(in.stalled);
  out.setStepAgeMs(static_cast<uint32_t>(in.step_age.count()));
  out.setEndpoint(in.endpoint);
  out.setRole(static_cast<schema::Role>(in.role));
  out.setDraining(in.draining);
  out.setLeft(in.left);
  out.setModel(in.model);
  out.setContextTokens(in.context_tokens);
  write(in.load, out.initLoad());
  out.setModelName(in.model_name);
  out.setKvType(static_cast<schema::KvType>(in.kv_type));
}

Heartbeat read(schema::Heartbeat::Reader in) {
  Heartbeat out;
  out.worker = WorkerId(in.getWorker());
  out.incarnation = in.getIncarnation();
  out.stalled = in.getStalled();
  out.step_age = std::chrono::milliseconds(in.getStepAgeMs());
  out.endpoint = in.getEndpoint().cStr();
  out.role = read_role(in.getRole());
  out.draining = in.getDraining();
  out.left = in.getLeft();
  out.model = in.getModel().cStr();
  out.context_tokens = in.getContextTokens();
  out.load = read(in.getLoad());
  out.model_name = in.getModelName().cStr();
  out.kv_type = read_kv_type(in.getKvType());
  return out;
}

void write(const Health& in, schema::Health::Builder out) {
  out.setHealthy(in.healthy);
  out.setReason(in.reason);
  auto workers = out.initWorkers(static_cast<uint32_t>(in.workers.size()));
  for (uint32_t i = 0; i < workers.size(); ++i) write(in.workers[i], workers[i]);
  out.setRequests(in.requests);
}

Health read(schema::Health::Reader in) {
  Health out{in.getHealthy(), in.getReason().cStr(), {}, in.getRequests()};
  for (const auto worker : in.getWorkers()) out.workers.push_back(read(worker));
  return out;
}

void write(const Described& in, schema::Described::Builder out) {
  out.setModel(in.model);
  out.setName(in.name);
  out.setContextTokens(in.context_tokens);
  out.setHeader(
      kj::arrayPtr(reinterpret_cast<const kj::byte*>(in.header.data()), in.header.size()));
  auto names = out.initServedNames(static_cast<uint32_t>(in.served_names.size()));
  for (uint32_t i = 0; i < names.size(); ++i) names.set(i, in.served_names[i]);
}

Described read(schema::Described::Reader in) {
  Described out{in.getModel().cStr(), in.getName().cStr(), in.getContextTokens(), {}, {}};
  const auto* bytes = reinterpret_cast<const std::byte*>(in.getHeader().begin());
  out.header.assign(bytes, bytes + in.getHeader().size());
  for (const auto name : in.getServedNames()) out.served_names.emplace_back(name.cStr());
  return out;
}

}  // namespace convert
}  // namespace troupe::wire
