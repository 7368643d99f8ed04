#pragma once
// A JsonSink that keeps what it hears, and asserts that nothing comes after the end.

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/gateway/running_answer.h"

namespace troupe::test {

struct RecordedEvent {
  std::string name;
  nlohmann::json json;  // strict, or parsing has thrown
};

struct EventSink final : JsonSink {
  std::vector<RecordedEvent> events;
  std::optional<std::string> body;
  std::optional<Status> error;

  void on_event(std::string_view json) override { on_named_event({}, json); }
  void on_named_event(std::string_view name, std::string_view json) override {
    BOOST_REQUIRE(!body && !error);
    events.push_back({std::string(name), nlohmann::json::parse(json)});
  }
  void on_end(std::string answer) override {
    BOOST_REQUIRE(!body && !error);
    body = std::move(answer);
  }
  void on_error(const Status& status) override {
    BOOST_REQUIRE(!body && !error);
    error = status;
  }
  [[nodiscard]] nlohmann::json answer() const { return nlohmann::json::parse(body.value()); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const RecordedEvent& event : events) out.push_back(event.name);
    return out;
  }
};

}  // namespace troupe::test
