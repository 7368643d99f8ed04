#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/wire/outbox.h"

namespace troupe {

// Keeps what a core sends; endpoints can be made unreachable.
class FakeOutbox final : public wire::Outbox {
 public:
  [[nodiscard]] Status send(std::string_view endpoint, const wire::Message& message) override {
    if (unreachable.contains(std::string(endpoint))) {
      return {StatusCode::kUnavailable, "nobody is there"};
    }
    sent.emplace_back(endpoint, message);
    return ok_status();
  }

  // The messages of one kind to one endpoint, in order; forgets nothing.
  template <class T>
  [[nodiscard]] std::vector<T> take(std::string_view endpoint) const {
    std::vector<T> out;
    for (const auto& [to, message] : sent) {
      if (to == endpoint && std::holds_alternative<T>(message)) out.push_back(std::get<T>(message));
    }
    return out;
  }

  std::vector<std::pair<std::string, wire::Message>> sent;
  std::set<std::string> unreachable;
};

}  // namespace troupe
