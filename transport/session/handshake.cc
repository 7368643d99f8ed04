#include "transport/session/handshake.h"

#include "base/assert.h"
#include "transport/session/limits.h"

namespace troupe {
namespace {

constexpr std::string_view kSessionMagic = "troupe/session\n";

// Why a refusal was sent; numbers are for ever.
enum Reason : uint8_t {
  kOther = 0,
  kDuplicate = 1,  // the two are connected already, or about to be
  kSecret = 2,
  kVersion = 3,
  kRecord = 4,
};

std::string head(const NodeIdentity& self, const Nonce& nonce) {
  ByteWriter out;
  out.raw(kSessionMagic);
  out.u32(kProtocolVersion);
  for (const uint64_t word : nonce) out.u64(word);
  out.text(self.node);
  out.u64(self.incarnation);
  return out.take();
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out.push_back(c >= ' ' && c <= '~' ? c : '?');
  return out;
}

}  // namespace

Handshake::Handshake(Role role, const Secret& secret, const NodeIdentity& self, const Nonce& nonce)
    : role_(role), secret_(secret), self_(self), nonce_(nonce) {
  TROUPE_ASSERT(self.node.size() <= limits::kNodeNameBytesMax, self.node.size());
  TROUPE_ASSERT(self.lane_address.size() <= limits::kLaneAddressBytesMax, self.lane_address.size());
  expected_ = role == Role::kConnector ? FrameKind::kChallenge : FrameKind::kHello;
  if (role == Role::kConnector) said_ = encode_frame(hello());
}

Frame Handshake::hello() const {
  TROUPE_ASSERT(role_ == Role::kConnector);
  return {FrameKind::kHello, head(self_, nonce_)};
}

Handshake::State Handshake::on_frame(const Frame& frame, std::string& reply) {
  TROUPE_ASSERT(state_ == State::kRunning);
  if (frame.kind == FrameKind::kRefuse && role_ == Role::kConnector) return on_refuse(frame);
  if (frame.kind == FrameKind::kRefuse && expected_ == FrameKind::kProof) return on_refuse(frame);
  if (frame.kind != expected_) {
    return fail({StatusCode::kDataLoss,
                 "a frame of kind " + std::to_string(static_cast<int>(frame.kind)) + " where " +
                     std::to_string(static_cast<int>(expected_)) + " must come"},
                nullptr);
  }
  switch (expected_) {
    case FrameKind::kHello:
      return on_hello(frame, reply);
    case FrameKind::kChallenge:
      return on_challenge(frame, reply);
    case FrameKind::kProof:
      return on_proof(frame, reply);
    default:
      return on_accept(frame, reply);
  }
}

// Reads what hello and challenge have in common.
static Status read_head(ByteReader& in, NodeIdentity& partner) {
  if (in.raw(kSessionMagic.size()) != kSessionMagic) {
    return {StatusCode::kDataLoss, "these are not the bytes of a node"};
  }
  const uint32_t version = in.u32();
  if (in.good() && version != kProtocolVersion) {
    return {StatusCode::kUnsupported, "protocol version: this node has " +
                                          std::to_string(kProtocolVersion) + ", the other has " +
                                          std::to_string(version) + "; run the same build on both"};
  }
  for (size_t i = 0; i < Nonce{}.size(); ++i) static_cast<void>(in.u64());
  partner.node = in.text(limits::kNodeNameBytesMax);
  partner.incarnation = in.u64();
  if (!in.good() || partner.node.empty() || printable(partner.node) != partner.node) {
    return {StatusCode::kDataLoss, "a truncated or malformed greeting"};
  }
  return ok_status();
}

Handshake::State Handshake::on_hello(const Frame& frame, std::string& reply) {
  ByteReader in(frame.payload);
  if (Status status = read_head(in, partner_); !status.ok()) {
    return fail(status, status.code() == StatusCode::kUnsupported ? &reply : nullptr);
  }
  if (!in.complete()) return fail({StatusCode::kDataLoss, "a greeting of a wrong size"}, nullptr);
  said_ = encode_frame(frame);
  reply += encode_frame(sealed(FrameKind::kChallenge, head(self_, nonce_)));
  expected_ = FrameKind::kProof;
  return state_;
}

Handshake::State Handshake::on_challenge(const Frame& frame, std::string& reply) {
  std::string_view body;
  const bool genuine = open_sealed(frame, body);
  ByteReader in(body);
  if (Status status = read_head(in, partner_); !status.ok()) return fail(status, &reply);
  if (!genuine || !in.complete()) {
    return fail(
        {StatusCode::kInvalidArgument, "the secret of node " + partner_.node +
                                           " differs from this node's; give both the same secret"},
        &reply);
  }
  reply += encode_frame(sealed(FrameKind::kProof, terms()));
  expected_ = FrameKind::kAccept;
  return state_;
}

Handshake::State Handshake::on_proof(const Frame& frame, std::string& reply) {
  std::string_view body;
  if (!open_sealed(frame, body)) {
    return fail(
        {StatusCode::kInvalidArgument, "the secret of node " + partner_.node +
                                           " differs from this node's; give both the same secret"},
        &reply);
  }
  if (!read_terms(body)) return fail({StatusCode::kDataLoss, "malformed terms"}, &reply);
  if (Status status = compare_records(self_.record, partner_.record, partner_.node); !status.ok()) {
    return fail(status, &reply);
  }
  return state_ = State::kProved;
}

Handshake::State Handshake::on_accept(const Frame& frame, std::string& reply) {
  std::string_view body;
  if (!open_sealed(frame, body) || !read_terms(body)) {
    return fail({StatusCode::kDataLoss, "malformed or forged terms"}, &reply);
  }
  if (Status status = compare_records(self_.record, partner_.record, partner_.node); !status.ok()) {
    return fail(status, &reply);
  }
  return state_ = State::kJoined;
}

Handshake::State Handshake::on_refuse(const Frame& frame) {
  ByteReader in(frame.payload);
  const uint8_t reason = in.u8();
  const std::string text = printable(in.text(limits::kFrameBytesMax));
  CompatibilityRecord record = read_record(in);
  if (!in.complete()) return fail({StatusCode::kDataLoss, "a malformed refusal"}, nullptr);
  duplicate_ = reason == kDuplicate;
  const std::string who = partner_.node.empty() ? "the other node" : "node " + partner_.node;
  if (reason == kRecord) {
    // Told from this side, with both values.
    if (Status status = compare_records(self_.record, record, partner_.node); !status.ok()) {
      return fail(std::move(status), nullptr);
    }
  }
  const bool helps_to_wait = reason == kDuplicate || reason == kOther;
  return fail({helps_to_wait ? StatusCode::kUnavailable : StatusCode::kUnsupported,
               who + " refuses: " + text},
              nullptr);
}

Frame Handshake::accept() {
  TROUPE_ASSERT(state_ == State::kProved);
  state_ = State::kJoined;
  return sealed(FrameKind::kAccept, terms());
}

Frame Handshake::refuse(const Status& why) {
  TROUPE_ASSERT(state_ != State::kJoined);
  state_ = State::kFailed;
  failure_ = why;
  return refusal(kOther, why);
}

Frame Handshake::refuse_as_duplicate() {
  TROUPE_ASSERT(state_ != State::kJoined);
  state_ = State::kFailed;
  duplicate_ = true;
  failure_ = {StatusCode::kUnavailable, "the two nodes are connected already, or about to be"};
  return refusal(kDuplicate, failure_);
}

Frame Handshake::refusal(uint8_t reason, const Status& why) const {
  ByteWriter out;
  out.u8(reason);
  out.text(why.message());
  // The record is for who knows the secret.
  write_record(reason == kRecord ? self_.record : CompatibilityRecord{}, out);
  return {FrameKind::kRefuse, out.take()};
}

Handshake::State Handshake::fail(Status why, std::string* reply) {
  state_ = State::kFailed;
  failure_ = std::move(why);
  if (reply == nullptr) return state_;
  Reason reason = kOther;
  if (failure_.code() == StatusCode::kInvalidArgument) reason = kSecret;
  if (failure_.code() == StatusCode::kUnsupported) {
    reason = failure_.param().empty() ? kVersion : kRecord;
  }
  // Seen from the other side, "this node" is another.
  Status told = failure_;
  if (reason == kSecret) told = {StatusCode::kInvalidArgument, "the secrets differ"};
  if (reason == kVersion) {
    told = {StatusCode::kUnsupported,
            "it speaks protocol version " + std::to_string(kProtocolVersion) +
                " and not the one that it was greeted in; run the same build on both"};
  }
  *reply += encode_frame(refusal(reason, told));
  return state_;
}

Frame Handshake::sealed(FrameKind kind, std::string body) {
  const std::string_view name = kind == FrameKind::kChallenge ? "challenge"
                                : kind == FrameKind::kProof   ? "proof"
                                                              : "accept";
  const Mac mac = secret_.mac({name, said_, body});
  Frame frame{kind, std::move(body)};
  frame.payload += bytes_of(mac);
  said_ += encode_frame(frame);
  return frame;
}

bool Handshake::open_sealed(const Frame& frame, std::string_view& body) {
  const std::string_view name = frame.kind == FrameKind::kChallenge ? "challenge"
                                : frame.kind == FrameKind::kProof   ? "proof"
                                                                    : "accept";
  if (frame.payload.size() < sizeof(Mac)) return false;
  body = std::string_view(frame.payload).substr(0, frame.payload.size() - sizeof(Mac));
  const Mac mac = secret_.mac({name, said_, body});
  said_ += encode_frame(frame);
  return same_mac(mac, std::string_view(frame.payload).substr(body.size()));
}

std::string Handshake::terms() const {
  ByteWriter out;
  out.text(self_.lane_address);
  write_record(self_.record, out);
  return out.take();
}

bool Handshake::read_terms(std::string_view body) {
  ByteReader in(body);
  partner_.lane_address = in.text(limits::kLaneAddressBytesMax);
  partner_.record = read_record(in);
  return in.complete() && check_record(partner_.record).ok();
}

uint64_t Handshake::token(std::string_view direction) const {
  TROUPE_ASSERT(state_ == State::kJoined);
  const Mac mac = secret_.mac({"token", direction, said_});
  ByteReader in(bytes_of(mac));
  return in.u64();
}

uint64_t Handshake::token_to_partner() const {
  return token(role_ == Role::kConnector ? "to acceptor" : "to connector");
}

uint64_t Handshake::token_from_partner() const {
  return token(role_ == Role::kConnector ? "to connector" : "to acceptor");
}

}  // namespace troupe
