#pragma once
// One generating request on its connection: from the prepared request to the last byte sent.

#include <kj/async.h>
#include <kj/compat/http.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/gateway/http/disconnect_watch.h"
#include "actors/gateway/http/http_context.h"
#include "actors/gateway/running_answer.h"

namespace troupe {

// A request that passed its checks and is ready to run.
struct PreparedAnswer {
  bool stream = false;
  // Called once; the sink outlives what it returns.
  std::function<std::unique_ptr<RunningAnswer>(JsonSink&)> make;
};

// Loop thread only. Destroying it at any time, which is what a client's leaving does, cancels the
// generation. The status line is sent with the first event, so that a request that fails before it
// (a full queue, a dead worker) still gets a status code of its own.
class Exchange final : private JsonSink {
 public:
  // All references outlive the exchange.
  Exchange(HttpContext& context, HttpRequestFacts request, LoadTicket ticket,
           kj::HttpService::Response& response, DisconnectWatch& watch);
  ~Exchange() noexcept override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Resolves when the response is sent; rejects with DISCONNECTED when the client left or was cut.
  [[nodiscard]] kj::Promise<void> serve(const PreparedAnswer& prepared);
  // Ends the generation with an error to the client. For shutdown.
  void abort(const Status& status);

 private:
  void on_event(std::string_view json) override { on_named_event({}, json); }
  void on_named_event(std::string_view name, std::string_view json) override;
  void on_end(std::string body) override;
  void on_error(const Status& status) override;

  // Sends what there is and waits for more, until the end.
  [[nodiscard]] kj::Promise<void> pump();
  [[nodiscard]] kj::Promise<void> send_pending();
  [[nodiscard]] kj::Promise<void> wait_for_output();
  void begin_stream();
  void append_error_event(const Status& status);
  void wake();

  HttpContext& context_;
  const HttpRequestFacts request_;
  const LoadTicket ticket_;
  kj::HttpService::Response& response_;
  DisconnectWatch& watch_;
  bool stream_ = false;
  kj::Own<kj::AsyncOutputStream> out_;  // of a stream that has begun
  std::string pending_;                 // bytes to send: events, or the whole answer
  std::optional<Status> error_;         // instead of a response that has not begun
  bool ended_ = false;                  // nothing more comes
  bool cut_ = false;
  kj::Own<kj::PromiseFulfiller<void>> wake_;
  kj::PromiseFulfillerPair<void> cut_promise_;
  std::unique_ptr<RunningAnswer> answer_;  // last: its end may still call the sink
};

}  // namespace troupe
