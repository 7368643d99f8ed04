#pragma once
// The client library: talks to a Troupe server by the RPC of schema/serving.capnp. Needs nothing
// but the standard library in the application's code; link troupe_client. docs/rpc.md shows a whole
// program.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/client/types.h"
#include "troupe/status.h"

namespace troupe::client {

// No wait of this library is without a deadline; when one passes, the call returns
// kDeadlineExceeded and what it asked of the server is cancelled.
struct ClientOptions {
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  // Of models(), health() and the other calls that generate nothing.
  std::chrono::milliseconds call_timeout = std::chrono::seconds(10);
  // Of a whole complete() or chat().
  std::chrono::milliseconds answer_timeout = std::chrono::minutes(10);
  // Of one Stream::next().
  std::chrono::milliseconds chunk_timeout = std::chrono::minutes(2);
  // For servers that want one; empty: none is given. An unknown one fails every call.
  std::string api_key = {};
};

// One streamed request. One thread at a time; cancel() from any. May outlive its Client, which then
// has cancelled it.
class Stream final {
 public:
  // Cancels what still runs: the server frees its blocks within a step.
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  // Waits for what is new. Several tokens come in one chunk when the caller is slower than the
  // server. No value: the stream has ended, and answer() says how much it was. An error ends the
  // stream; further calls return the same. A caller that does not call next() makes the server keep
  // what it generates, within the limits that schema/serving.capnp names.
  [[nodiscard]] Result<std::optional<std::vector<Choice>>> next();
  // Ends the request; a next() that waits, and each later one, returns kCancelled. Harmless after
  // the end.
  void cancel();
  // Id, model and usage; only after next() returned no value.
  [[nodiscard]] const Answer& answer() const;

 private:
  friend class Client;
  friend class StreamSink;
  class Impl;
  explicit Stream(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// A connection to one server, with a thread of its own. All functions may be called from any
// thread, and at once; each blocks its caller until there is an answer. A connection that was lost
// is made anew by the next call.
//
// Errors, beside those of the server in its own words (kInvalidArgument, kNotFound, kContextLength
// and kUnsupported: do not repeat; kResourceExhausted and kUnavailable: retry later or elsewhere):
//   kUnavailable        no connection, or it was lost; a request that was running is cancelled
//   kDeadlineExceeded   a time of ClientOptions has passed
//   kCancelled          Stream::cancel(), or the client is being destroyed
class Client final {
 public:
  // Connects. `host` is a name or an address.
  [[nodiscard]] static Result<std::unique_ptr<Client>> connect(const std::string& host,
                                                               uint16_t port,
                                                               ClientOptions options = {});
  // Cancels everything that runs; calls in other threads return kCancelled. No call may begin any
  // more.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] Result<std::string> server_version();
  // Ok: requests would be served now. kUnavailable with the server's reason: not now.
  [[nodiscard]] Status health();
  [[nodiscard]] Result<std::vector<Model>> models();

  // The tokens that a completion of this text would have. `model` may be empty where there is one.
  [[nodiscard]] Result<std::vector<Token>> tokenize(const std::string& model,
                                                    const std::string& text);
  [[nodiscard]] Result<std::string> detokenize(const std::string& model,
                                               const std::vector<Token>& tokens);

  // The whole answer at once.
  [[nodiscard]] Result<Answer> complete(const CompletionRequest& request);
  [[nodiscard]] Result<Answer> chat(const ChatRequest& request);

  // Return as soon as the request is on its way; what is wrong with it comes from next().
  [[nodiscard]] Result<Stream> stream(const CompletionRequest& request);
  [[nodiscard]] Result<Stream> stream(const ChatRequest& request);

 private:
  friend class Stream;
  class Impl;
  explicit Client(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace troupe::client
