#pragma once
// Each schema struct <-> its value, one pair of functions each: a request's way in convert.cc, what
// workers say of themselves in convert_workers.cc, orders for KV in convert_kv.cc. Reading throws
// kj::Exception for what does not fit; codec.cc turns that into a Status.

#include "schema/control.capnp.h"

#include "actors/wire/messages.h"

namespace troupe::wire::convert {

void write(const Request& in, schema::Request::Builder out);
void write(const Routed& in, schema::Routed::Builder out);
void write(const Rejected& in, schema::Rejected::Builder out);
void write(const Cancelled& in, schema::Cancelled::Builder out);
void write(const Emitted& in, schema::Emitted::Builder out);
void write(const Finished& in, schema::Finished::Builder out);
void write(const Heartbeat& in, schema::Heartbeat::Builder out);
void write(const Health& in, schema::Health::Builder out);
void write(const Described& in, schema::Described::Builder out);
void write(const Reserved& in, schema::Reserved::Builder out);
void write(const Prefilled& in, schema::Prefilled::Builder out);

[[nodiscard]] Request read(schema::Request::Reader in);
[[nodiscard]] Routed read(schema::Routed::Reader in);
[[nodiscard]] Rejected read(schema::Rejected::Reader in);
[[nodiscard]] Cancelled read(schema::Cancelled::Reader in);
[[nodiscard]] Emitted read(schema::Emitted::Reader in);
[[nodiscard]] Finished read(schema::Finished::Reader in);
[[nodiscard]] Heartbeat read(schema::Heartbeat::Reader in);
[[nodiscard]] Health read(schema::Health::Reader in);
[[nodiscard]] Described read(schema::Described::Reader in);
[[nodiscard]] Reserved read(schema::Reserved::Reader in);
[[nodiscard]] Prefilled read(schema::Prefilled::Reader in);

}  // namespace troupe::wire::convert
