#pragma once
// How two nodes prove to each other that they know the cluster secret, and find out whether they
// fit together. Plain state: frames in, frames out; the owner moves the bytes and keeps deadlines.
//
//   connector                                acceptor
//   hello(nonce, node, incarnation)    →
//                                      ←     challenge(nonce, node, incarnation, mac)
//   proof(mac, record, lane address)   →
//                                      ←     accept(mac, record, lane address)  or  refuse
//
// Each mac is HMAC-SHA256, keyed by the secret, over its frame's name, everything said before on
// this connection, and the frame itself. So it proves the secret to this partner in this
// conversation, cannot be replayed or reflected, and covers names, record and lane address.

#include <array>
#include <cstdint>
#include <string>

#include "transport/session/compatibility.h"
#include "transport/session/frames.h"
#include "transport/session/secret.h"

namespace troupe {

// Raised with every change of frames or of what the lanes carry.
inline constexpr uint32_t kProtocolVersion = 1;

using Nonce = std::array<uint64_t, 4>;  // unpredictable, never used twice

// What one node tells another about itself.
struct NodeIdentity {
  std::string node;  // the address at which it listens
  uint64_t incarnation = 0;
  CompatibilityRecord record;
  std::string lane_address;
};

class Handshake final {
 public:
  enum class Role { kConnector, kAcceptor };
  enum class State {
    kRunning,  // waits for the partner's next frame
    kProved,   // acceptor only: the partner knows the secret and fits; accept() or refuse() it
    kJoined,
    kFailed,  // failure() says why; the connection must end, after `reply` was sent
  };

  // `secret` and `self` must outlive the handshake.
  Handshake(Role role, const Secret& secret, const NodeIdentity& self, const Nonce& nonce);

  // The connector's first frame.
  [[nodiscard]] Frame hello() const;
  // Takes the partner's next frame. What is to be sent in answer, if anything, is appended to
  // `reply`, encoded.
  State on_frame(const Frame& frame, std::string& reply);
  // Only when kProved.
  [[nodiscard]] Frame accept();
  // At any time before kJoined; makes it kFailed. The partner is told the status' message.
  [[nodiscard]] Frame refuse(const Status& why);
  // The same, for the one reason that is no error: the two are connected, or are being so by
  // another connection.
  [[nodiscard]] Frame refuse_as_duplicate();

  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] State state() const { return state_; }
  // kUnavailable where waiting helps, kUnsupported, kInvalidArgument or kDataLoss where not.
  [[nodiscard]] const Status& failure() const { return failure_; }
  [[nodiscard]] bool is_duplicate() const { return duplicate_; }
  // Of what the partner claimed until kProved or kJoined; complete then.
  [[nodiscard]] const NodeIdentity& partner() const { return partner_; }
  // Names the session in what this node sends to the partner, and in what it receives from it.
  // Known to both, and to nobody else.
  [[nodiscard]] uint64_t token_to_partner() const;
  [[nodiscard]] uint64_t token_from_partner() const;

 private:
  State fail(Status why, std::string* reply);
  State on_hello(const Frame& frame, std::string& reply);
  State on_challenge(const Frame& frame, std::string& reply);
  State on_proof(const Frame& frame, std::string& reply);
  State on_accept(const Frame& frame, std::string& reply);
  State on_refuse(const Frame& frame);
  [[nodiscard]] Frame sealed(FrameKind kind, std::string body);
  [[nodiscard]] bool open_sealed(const Frame& frame, std::string_view& body);
  [[nodiscard]] std::string terms() const;
  [[nodiscard]] bool read_terms(std::string_view body);
  [[nodiscard]] uint64_t token(std::string_view direction) const;
  [[nodiscard]] Frame refusal(uint8_t reason, const Status& why) const;

  const Role role_;
  const Secret& secret_;
  const NodeIdentity& self_;
  const Nonce nonce_;
  State state_ = State::kRunning;
  FrameKind expected_;
  std::string said_;  // every frame of the conversation so far
  NodeIdentity partner_;
  Status failure_;
  bool duplicate_ = false;
};

}  // namespace troupe
