#pragma once
// Transport inside one process: a message is handed to its receiver on the sender's thread.

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>

#include "troupe/transport.h"

namespace troupe {

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport() = default;
  // Asserts that every endpoint has been unbound.
  ~LoopbackTransport() override;
  LoopbackTransport(const LoopbackTransport&) = delete;
  LoopbackTransport& operator=(const LoopbackTransport&) = delete;

  [[nodiscard]] Status bind(std::string_view endpoint, MessageReceiver& receiver) override;
  void unbind(std::string_view endpoint) override;
  [[nodiscard]] Status send(std::string_view endpoint, TrafficClass traffic,
                            MessageWords words) override;

 private:
  struct Binding;

  std::shared_mutex mutex_;  // guards the map only; never held while a receiver runs
  std::map<std::string, std::shared_ptr<Binding>, std::less<>> bindings_;
};

}  // namespace troupe
