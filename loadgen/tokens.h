#pragma once
// What the server itself can say about tokens.

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loadgen/http_peer.h"
#include "troupe/status.h"

namespace troupe::loadgen {

// Asks /tokenize, in the form of vLLM ({"prompt"}) or of llama-server ({"content"}). Lives on its
// peer's thread. The waiting functions turn the event loop until they know, at most
// kQuestionDeadline for each question.
class Tokens final {
 public:
  // Both references outlive this object.
  Tokens(HttpPeer& peer, kj::Timer& timer, std::string model)
      : peer_(peer), timer_(timer), model_(std::move(model)) {}

  // Nothing where the server has no such endpoint, or it did not answer.
  [[nodiscard]] std::optional<uint32_t> count(const std::string& text, kj::WaitScope& scope);

  // Those of `candidates` that are one token each, at a text's beginning and after a blank. Asks in
  // groups, and halves those that do not come out even. Empty where the server cannot say.
  [[nodiscard]] std::vector<std::string> single_token_words(
      const std::vector<std::string>& candidates, kj::WaitScope& scope);

 private:
  enum class Form { kUnknown, kPrompt, kContent, kNone };
  [[nodiscard]] std::optional<uint32_t> ask(const std::string& text, Form form,
                                            kj::WaitScope& scope);
  // Adds the good ones among words [begin, end) to `out`.
  void sift(const std::vector<std::string>& words, size_t begin, size_t end,
            std::vector<std::string>& out, kj::WaitScope& scope);
  [[nodiscard]] bool are_single(const std::vector<std::string>& words, size_t begin, size_t end,
                                kj::WaitScope& scope);

  HttpPeer& peer_;
  kj::Timer& timer_;
  const std::string model_;
  Form form_ = Form::kUnknown;
};

// What a question that is not part of the load is answered: with the deadline, and with the
// exceptions of the network as Status. kUnavailable: no answer.
[[nodiscard]] Result<HttpAnswer> ask(HttpPeer& peer, kj::Timer& timer, kj::WaitScope& scope,
                                     kj::HttpMethod method, const std::string& path,
                                     const std::string& body);

// The name of the only or first model of /v1/models. kUnavailable, kNotFound: there is none; the
// message names the URL and the fix.
[[nodiscard]] Result<std::string> find_model(HttpPeer& peer, kj::Timer& timer,
                                             kj::WaitScope& scope);

}  // namespace troupe::loadgen
