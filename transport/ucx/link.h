#pragma once
// One TCP connection between two nodes: the handshake, and then keepalives. Progress thread only.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "transport/session/frames.h"
#include "transport/session/handshake.h"
#include "transport/ucx/address.h"

namespace troupe::ucx {

class Link final {
 public:
  // `name` is for logs: whom it leads to, as far as is known.
  Link(Socket socket, std::string name, TimePoint deadline)
      : socket_(std::move(socket)), name_(std::move(name)), deadline_(deadline) {}

  [[nodiscard]] int fd() const { return socket_.fd(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  // Until when it must have joined, or ended.
  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  void set_deadline(TimePoint deadline) { deadline_ = deadline; }
  [[nodiscard]] const Socket& socket() const { return socket_; }

  // kUnavailable: the connection ended, or takes nothing any more.
  [[nodiscard]] Status send(const std::string& encoded);
  [[nodiscard]] Status flush();
  [[nodiscard]] bool wants_to_write() const { return !out_.empty() || connecting_; }
  void set_connecting(bool connecting) { connecting_ = connecting; }
  [[nodiscard]] bool is_connecting() const { return connecting_; }

  // Appends what has arrived. kUnavailable: the other side ended the connection (the frames before
  // that count). kDataLoss: it does not send frames.
  [[nodiscard]] Status read(std::vector<Frame>& frames);
  // Nothing more will be sent; what comes is dropped until the other side ends as well.
  void end_after_reply();
  [[nodiscard]] bool is_ending() const { return ending_; }

  std::optional<Handshake> handshake;

 private:
  Socket socket_;
  std::string name_;
  TimePoint deadline_;
  std::string out_;
  FrameReader reader_;
  bool connecting_ = false;
  bool ending_ = false;
};

}  // namespace troupe::ucx
