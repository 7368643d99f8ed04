#pragma once
// One request while it is being answered over HTTP, whatever its API: what a connection needs to
// know of it. Everything here runs on the gateway's event-loop thread.

#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

// Where an answer's JSON goes. Called from inside the answer's work, so it must not destroy the
// answer from inside a call. After on_end or on_error nothing more comes.
class JsonSink {
 public:
  virtual ~JsonSink() = default;
  // The payload of one server-sent event; only for a streamed request.
  virtual void on_event(std::string_view json) = 0;
  // The same with the event's name, for APIs that name their events; without line breaks.
  virtual void on_named_event(std::string_view /*name*/, std::string_view json) { on_event(json); }
  // `body` is the whole answer, or empty for a streamed request, whose events have all been given.
  virtual void on_end(std::string body) = 0;
  virtual void on_error(const Status& status) = 0;
};

// Destroying it at any time cancels what still runs for it.
class RunningAnswer {
 public:
  virtual ~RunningAnswer() = default;
  // Call once. Not ok: nothing is left running and the sink hears nothing.
  [[nodiscard]] virtual Status start() = 0;
  // Ends it from outside, e.g. at shutdown: cancels, and tells the sink unless it has ended.
  virtual void abort(const Status& status) = 0;
};

}  // namespace troupe
