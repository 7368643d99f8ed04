#pragma once
// Which receiver owns which endpoint of a node, and the fence that unbind() promises.

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "troupe/transport.h"

namespace troupe {

// Thread-safe.
class EndpointTable final {
 public:
  EndpointTable() = default;
  // Asserts that every endpoint has been unbound.
  ~EndpointTable();
  EndpointTable(const EndpointTable&) = delete;
  EndpointTable& operator=(const EndpointTable&) = delete;

  // The contracts of Transport::bind() and Transport::unbind().
  [[nodiscard]] Status bind(std::string_view endpoint, MessageReceiver& receiver);
  void unbind(std::string_view endpoint);
  // Calls the receiver on this thread. kUnavailable: nobody is bound there.
  [[nodiscard]] Status deliver(std::string_view endpoint, MessageWords words);

 private:
  struct Binding;

  std::shared_mutex mutex_;  // guards the map only; never held while a receiver runs
  std::map<std::string, std::shared_ptr<Binding>, std::less<>> bindings_;
};

// kInvalidArgument where the message is larger than limits::kMessageBytesMax.
[[nodiscard]] Status check_message_size(const MessageWords& words);

}  // namespace troupe
