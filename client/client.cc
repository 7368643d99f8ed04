#include "troupe/client/client.h"

#include <kj/debug.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "client/client_loop.h"
#include "client/convert.h"
#include "client/limits.h"
#include "client/stream.h"

namespace troupe::client {

namespace {

const char* const kDestroyed = "the client is being destroyed";

// One outcome, from the loop's thread to the thread that waits for it. The first one counts.
template <class T>
class Handoff final {
 public:
  void set(Result<T> outcome) {
    const std::lock_guard lock(mutex_);
    if (outcome_) return;
    outcome_ = std::move(outcome);
    changed_.notify_one();
  }
  // The deadline is the loop's, which sets an outcome in any case.
  [[nodiscard]] Result<T> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return outcome_.has_value(); });
    return *std::move(outcome_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<T>> outcome_;
};

// Takes what the server says of an error, and nothing else.
class ErrorSink final : public rpc::ResponseSink::Server {
 public:
  explicit ErrorSink(std::shared_ptr<std::optional<Status>> error) : error_(std::move(error)) {}
  kj::Promise<void> failed(FailedContext context) override {
    *error_ = to_status(context.getParams().getError());
    return kj::READY_NOW;
  }

 private:
  std::shared_ptr<std::optional<Status>> error_;  // the loop's until the call has ended
};

auto begin(rpc::Serving::Client& serving, const CompletionRequest&) {
  return serving.completeRequest();
}
auto begin(rpc::Serving::Client& serving, const ChatRequest&) {
  return serving.chatRequest();
}

// The call, ready but for its sink.
template <class Request>
auto prepare(rpc::Serving::Client& serving, const Request& request) {
  auto call = begin(serving, request);
  fill(request, call);
  if (call.totalSize().wordCount > kRequestBytesMax / sizeof(capnp::word)) {
    kj::throwFatalException(kj::Exception(
        kj::Exception::Type::FAILED, __FILE__, __LINE__,
        kj::str("the request has more than ", kRequestBytesMax, " bytes; send less")));
  }
  return call;
}

}  // namespace

class Client::Impl final {
 public:
  Impl(std::shared_ptr<ClientLoop> loop, ClientOptions options)
      : loop_(std::move(loop)), options_(options) {}
  ~Impl() { loop_->stop(); }

  [[nodiscard]] const ClientOptions& options() const { return options_; }

  // Asks over the connection and waits for the answer, at most `timeout`.
  template <class T>
  Result<T> call(std::chrono::milliseconds timeout,
                 const std::function<kj::Promise<T>(rpc::Serving::Client)>& ask) {
    const auto handoff = std::make_shared<Handoff<T>>();
    const Status begun = loop_->run([&](LoopSide& side) {
      auto late =
          side.timer().afterDelay(timeout.count() * kj::MILLISECONDS).then([handoff, timeout] {
            handoff->set(Status(
                StatusCode::kDeadlineExceeded,
                "the server did not answer within " + std::to_string(timeout.count()) + " ms"));
          });
      side.keep(side.connected()
                    .then([&side, ask] { return ask(side.serving()); })
                    .then([handoff](T&& value) { handoff->set(std::move(value)); })
                    .exclusiveJoin(kj::mv(late))
                    .catch_([handoff](kj::Exception&& e) { handoff->set(to_status(e)); })
                    .attach(kj::defer(
                        [handoff] { handoff->set(Status(StatusCode::kCancelled, kDestroyed)); })));
    });
    if (!begun.ok()) return begun;
    return handoff->take();
  }

  template <class Request>
  Result<Answer> answer(const Request& request) {
    const auto error = std::make_shared<std::optional<Status>>();
    Result<Answer> answer =
        call<Answer>(options_.answer_timeout, [request, error](rpc::Serving::Client serving) {
          auto call = prepare(serving, request);
          call.getParameters().setWhole(true);
          call.setSink(kj::heap<ErrorSink>(error));
          return call.send().then([](auto&& response) { return to_answer(response.getAnswer()); });
        });
    const bool late = answer.status().code() == StatusCode::kDeadlineExceeded;
    if (!answer.ok() && !late && *error) return **error;
    return answer;
  }

  template <class Request>
  Result<Stream> stream(const Request& request) {
    const auto stream = std::make_shared<Stream::Impl>(loop_, options_.chunk_timeout,
                                                       loop_->next_id(), loop_->next_id());
    TROUPE_RETURN_IF_ERROR(loop_->run([&](LoopSide& side) {
      auto cancelled = side.waiting_for(stream->cancel_id());
      side.keep(side.connected()
                    .then([&side, stream, request] {
                      auto serving = side.serving();
                      auto call = prepare(serving, request);
                      call.setSink(kj::heap<StreamSink>(side, stream));
                      return call.send().then(
                          [](auto&& response) { return to_answer(response.getAnswer()); });
                    })
                    .then([stream](Answer&& answer) { stream->end(std::move(answer)); })
                    .exclusiveJoin(kj::mv(cancelled))
                    .catch_([stream](kj::Exception&& e) { stream->end(to_status(e)); })
                    .attach(kj::defer([&side, stream] {
                      side.forget(stream->cancel_id());
                      side.forget(stream->room_id());
                      stream->end(Status(StatusCode::kCancelled, kDestroyed));
                    })));
    }));
    return Stream(stream);
  }

 private:
  const std::shared_ptr<ClientLoop> loop_;
  const ClientOptions options_;
};

Client::Client(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::connect(const std::string& host, uint16_t port,
                                                ClientOptions options) {
  std::shared_ptr<ClientLoop> loop;
  try {
    loop = std::make_shared<ClientLoop>(host, port, options);
  } catch (const kj::Exception& e) {
    return Status(StatusCode::kResourceExhausted,
                  std::string("no event loop for the client: ") + e.getDescription().cStr());
  } catch (const std::exception& e) {
    return Status(StatusCode::kResourceExhausted,
                  std::string("no thread for the client: ") + e.what());
  }
  std::unique_ptr<Client> client(new Client(std::make_shared<Impl>(std::move(loop), options)));
  // A wrong address is better known now than at the first request.
  if (const auto version = client->server_version(); !version.ok()) return version.status();
  return client;
}

Result<std::string> Client::server_version() {
  return impl_->call<std::string>(impl_->options().call_timeout, [](rpc::Serving::Client serving) {
    return serving.versionRequest().send().then(
        [](auto&& response) { return to_string(response.getVersion()); });
  });
}

Status Client::health() {
  using Reason = std::optional<std::string>;  // none: it would serve
  const auto reason =
      impl_->call<Reason>(impl_->options().call_timeout, [](rpc::Serving::Client serving) {
        return serving.healthRequest().send().then([](auto&& response) -> Reason {
          if (response.getReady()) return std::nullopt;
          return to_string(response.getReason());
        });
      });
  if (!reason.ok()) return reason.status();
  return reason.value() ? Status(StatusCode::kUnavailable, *reason.value()) : ok_status();
}

Result<std::vector<Model>> Client::models() {
  return impl_->call<std::vector<Model>>(
      impl_->options().call_timeout, [](rpc::Serving::Client serving) {
        return serving.modelsRequest().send().then([](auto&& response) {
          std::vector<Model> models;
          for (const auto model : response.getModels()) models.push_back(to_model(model));
          return models;
        });
      });
}

Result<std::vector<Token>> Client::tokenize(const std::string& model, const std::string& text) {
  return impl_->call<std::vector<Token>>(impl_->options().call_timeout,
                                         [model, text](rpc::Serving::Client serving) {
                                           auto call = serving.tokenizeRequest();
                                           call.setModel({model.c_str(), model.size()});
                                           call.setPrompt({text.c_str(), text.size()});
                                           return call.send().then([](auto&& response) {
                                             std::vector<Token> tokens;
                                             for (const uint32_t token : response.getTokens())
                                               tokens.push_back(token);
                                             return tokens;
                                           });
                                         });
}

Result<std::string> Client::detokenize(const std::string& model, const std::vector<Token>& tokens) {
  return impl_->call<std::string>(
      impl_->options().call_timeout, [model, tokens](rpc::Serving::Client serving) {
        auto call = serving.detokenizeRequest();
        call.setModel({model.c_str(), model.size()});
        auto list = call.initTokens(static_cast<uint32_t>(tokens.size()));
        for (uint32_t i = 0; i < list.size(); ++i) list.set(i, tokens[i]);
        return call.send().then([](auto&& response) { return to_string(response.getText()); });
      });
}

Result<Answer> Client::complete(const CompletionRequest& request) {
  return impl_->answer(request);
}

Result<Answer> Client::chat(const ChatRequest& request) {
  return impl_->answer(request);
}

Result<Stream> Client::stream(const CompletionRequest& request) {
  return impl_->stream(request);
}

Result<Stream> Client::stream(const ChatRequest& request) {
  return impl_->stream(request);
}

}  // namespace troupe::client
