#pragma once
// What the conversions of all message groups share.

#include <kj/debug.h>

#include "schema/kv.capnp.h"

#include "actors/wire/messages.h"

namespace troupe::wire::convert {

[[nodiscard]] inline int64_t to_ns(TimePoint t) {
  return t.time_since_epoch().count();
}

[[nodiscard]] inline TimePoint from_ns(int64_t ns) {
  return TimePoint(Duration(ns));
}

inline void write_tokens(const std::vector<TokenId>& in, capnp::List<int32_t>::Builder out) {
  for (uint32_t i = 0; i < out.size(); ++i) out.set(i, in[i]);
}

[[nodiscard]] inline std::vector<TokenId> read_tokens(capnp::List<int32_t>::Reader list) {
  std::vector<TokenId> out;
  out.reserve(list.size());
  for (const TokenId token : list) out.push_back(token);
  return out;
}

// The enums on both sides have one order; the casts rest on it.
static_assert(static_cast<int>(schema::ErrorCode::INTERNAL) ==
              static_cast<int>(StatusCode::kInternal));

inline void write(const Status& in, schema::Error::Builder out) {
  out.setCode(static_cast<schema::ErrorCode>(in.code()));
  out.setMessage(in.message());
  out.setParam(in.param());
}

[[nodiscard]] inline Status read(schema::Error::Reader in) {
  const auto code = static_cast<uint16_t>(in.getCode());
  KJ_REQUIRE(code <= static_cast<uint16_t>(StatusCode::kInternal), "unknown error code", code);
  return {static_cast<StatusCode>(code), in.getMessage().cStr(), in.getParam().cStr()};
}

static_assert(static_cast<int>(schema::KvType::F32) == static_cast<int>(KvType::kF32));

[[nodiscard]] inline KvType read_kv_type(schema::KvType in) {
  const auto type = static_cast<uint16_t>(in);
  KJ_REQUIRE(type <= static_cast<uint16_t>(KvType::kF32), "unknown way to store KV", type);
  return static_cast<KvType>(type);
}

}  // namespace troupe::wire::convert
