#include "actors/gateway/openai/cluster_body.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "actors/gateway/text/escape.h"
#include "engine/tokenizer/detokenizer.h"

namespace troupe {
namespace {

void append_text(std::string& out, const char* key, const std::string& value) {
  out += std::string("\"") + key + "\":";
  append_json_string(out, to_valid_utf8(value));
}

void append_count(std::string& out, const char* key, uint64_t value) {
  out += std::string(",\"") + key + "\":" + std::to_string(value);
}

void append_flag(std::string& out, const char* key, bool value) {
  out += std::string(",\"") + key + "\":" + (value ? "true" : "false");
}

void append_number(std::string& out, const char* key, double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out += std::string(",\"") + key + "\":";
  out += std::isfinite(value) ? std::string(digits, end) : "null";
}

// Zero stands for a time that nobody has measured yet.
void append_learned(std::string& out, const char* key, double seconds) {
  append_number(out, key, seconds > 0.0 ? seconds : std::nan(""));
}

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

void append_worker(std::string& out, const wire::WorkerStatus& worker) {
  const wire::Load& load = worker.load;
  out += "{\"worker\":" + std::to_string(worker.worker.value) + ",";
  append_text(out, "endpoint", worker.endpoint);
  out += ',';
  append_text(out, "model", worker.model_name);
  out += ',';
  append_text(out, "model_digest", worker.model);
  out += std::string(",\"role\":\"") + wire::to_string(worker.role) + "\",";
  append_text(out, "state", worker.state);
  append_flag(out, "accepting", worker.accepting);
  out += ",\"incarnation\":\"" + incarnation_text(worker.incarnation) + '"';
  append_count(out, "requests", worker.requests);
  append_count(out, "heard_ms", static_cast<uint64_t>(std::max<int64_t>(0, worker.heard.count())));
  out += ",\"load\":{\"running\":" + std::to_string(load.running);
  append_count(out, "waiting", load.waiting);
  append_count(out, "queued_tokens", load.queued_tokens);
  append_count(out, "kv_blocks_total", load.blocks_total);
  append_count(out, "kv_blocks_used", load.blocks_used);
  append_learned(out, "seconds_per_token", load.seconds_per_token);
  append_learned(out, "seconds_per_step", load.seconds_per_step);
  out += "}}";
}

void append_peer(std::string& out, const PeerState& peer) {
  out += '{';
  append_text(out, "node", peer.node);
  append_flag(out, "connected", peer.connected);
  out += ",\"incarnation\":\"" + incarnation_text(peer.incarnation) + "\",";
  append_text(out, "transport", peer.transport);
  const bool measured = peer.round_trip.count() > 0;
  append_learned(out, "round_trip_seconds", seconds(peer.round_trip));
  append_number(out, "clock_offset_seconds", measured ? seconds(peer.clock_offset) : std::nan(""));
  append_learned(out, "clock_uncertainty_seconds", seconds(peer.clock_uncertainty));
  append_count(out, "messages_sent", peer.messages_sent);
  append_count(out, "messages_received", peer.messages_received);
  append_count(out, "bytes_sent", peer.bytes_sent);
  append_count(out, "bytes_received", peer.bytes_received);
  append_count(out, "parts_refused", peer.parts_refused);
  out += '}';
}

}  // namespace

std::string incarnation_text(uint64_t incarnation) {
  char digits[17];
  const auto end = std::to_chars(digits, digits + sizeof(digits), incarnation, 16).ptr;
  const std::string text(digits, end);
  return std::string(16 - text.size(), '0') + text;
}

std::string cluster_members(const wire::Health& health, std::span<const PeerState> peers) {
  std::string out = std::string("\"healthy\":") + (health.healthy ? "true," : "false,");
  append_text(out, "reason", health.reason);
  append_count(out, "requests", health.requests);
  out += ",\"workers\":[";
  for (size_t i = 0; i < health.workers.size(); ++i) {
    if (i > 0) out += ',';
    append_worker(out, health.workers[i]);
  }
  out += "],\"peers\":[";
  for (size_t i = 0; i < peers.size(); ++i) {
    if (i > 0) out += ',';
    append_peer(out, peers[i]);
  }
  return out + "]";
}

std::string cluster_body(const wire::Health& health, std::span<const PeerState> peers) {
  return "{" + cluster_members(health, peers) + "}";
}

}  // namespace troupe
