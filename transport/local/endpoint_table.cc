#include "transport/local/endpoint_table.h"

#include <mutex>

#include "base/assert.h"
#include "base/limits.h"

namespace troupe {

// Calls of the receiver hold the gate shared; unbind() closes it exclusively, and so waits for
// them.
struct EndpointTable::Binding {
  explicit Binding(MessageReceiver& r) : receiver(&r) {}
  std::shared_mutex gate;
  MessageReceiver* receiver;  // null once unbound
};

EndpointTable::~EndpointTable() {
  TROUPE_ASSERT(bindings_.empty(), bindings_.size());
}

Status EndpointTable::bind(std::string_view endpoint, MessageReceiver& receiver) {
  if (endpoint.empty()) return invalid_argument("an endpoint's name is empty; give it one");
  if (endpoint.find('/') != std::string_view::npos) {
    return invalid_argument("endpoint '" + std::string(endpoint) +
                            "' has a slash, which separates node and endpoint; leave it out");
  }
  const std::unique_lock lock(mutex_);
  const auto [position, inserted] =
      bindings_.emplace(std::string(endpoint), std::make_shared<Binding>(receiver));
  if (!inserted) {
    return invalid_argument("endpoint '" + position->first +
                            "' is taken; unbind it first or choose another name");
  }
  return ok_status();
}

void EndpointTable::unbind(std::string_view endpoint) {
  std::shared_ptr<Binding> binding;
  {
    const std::unique_lock lock(mutex_);
    const auto found = bindings_.find(endpoint);
    if (found == bindings_.end()) return;
    binding = std::move(found->second);
    bindings_.erase(found);
  }
  const std::unique_lock wait_for_calls(binding->gate);
  binding->receiver = nullptr;
}

Status EndpointTable::deliver(std::string_view endpoint, MessageWords words) {
  std::shared_ptr<Binding> binding;
  {
    const std::shared_lock lock(mutex_);
    const auto found = bindings_.find(endpoint);
    if (found != bindings_.end()) binding = found->second;
  }
  if (binding) {
    const std::shared_lock call(binding->gate);
    if (binding->receiver != nullptr) {
      binding->receiver->on_message(std::move(words));
      return ok_status();
    }
  }
  return {StatusCode::kUnavailable, "nobody is bound to endpoint '" + std::string(endpoint) + "'"};
}

Status check_message_size(const MessageWords& words) {
  const size_t bytes = words.size() * sizeof(uint64_t);
  if (bytes <= limits::kMessageBytesMax) return ok_status();
  return invalid_argument("a message of " + std::to_string(bytes) + " bytes exceeds the limit of " +
                          std::to_string(limits::kMessageBytesMax) + "; send less at once");
}

}  // namespace troupe
