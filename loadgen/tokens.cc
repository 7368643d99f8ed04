#include "loadgen/tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "loadgen/chunk.h"
#include "loadgen/limits.h"

namespace troupe::loadgen {
namespace {

using Json = nlohmann::json;

constexpr size_t kGroup = 32;         // words of one question
constexpr size_t kWordsEnough = 128;  // no two prompts of some length are the same
constexpr uint32_t kOk = 200;

std::optional<uint32_t> count_in(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  if (const auto count = json.find("count"); count != json.end() && count->is_number_unsigned()) {
    return static_cast<uint32_t>(std::min<uint64_t>(count->get<uint64_t>(), UINT32_MAX));
  }
  const auto tokens = json.find("tokens");
  if (tokens == json.end() || !tokens->is_array()) return std::nullopt;
  return static_cast<uint32_t>(tokens->size());
}

}  // namespace

Result<HttpAnswer> ask(HttpPeer& peer, kj::Timer& timer, kj::WaitScope& scope,
                       kj::HttpMethod method, const std::string& path, const std::string& body) {
  std::optional<HttpAnswer> answer;
  std::string why = "no answer within " + std::to_string(kQuestionDeadline.count()) + " s";
  auto asked = peer.fetch(method, path, body)
                   .then([&answer](HttpAnswer&& got) { answer = std::move(got); },
                         [&why](kj::Exception&& e) { why = e.getDescription().cStr(); });
  asked.exclusiveJoin(timer.afterDelay(kQuestionDeadline.count() * kj::SECONDS)).wait(scope);
  if (!answer) return Status(StatusCode::kUnavailable, why);
  return *answer;
}

Result<std::string> find_model(HttpPeer& peer, kj::Timer& timer, kj::WaitScope& scope) {
  const std::string where = (peer.url().is_tls ? "https://" : "http://") + peer.url().address();
  const auto answer = ask(peer, timer, scope, kj::HttpMethod::GET, "/v1/models", "");
  if (!answer.ok()) {
    return Status(StatusCode::kUnavailable, "cannot reach " + where + " (" +
                                                answer.status().message() +
                                                "); start a server there, or give --url");
  }
  if (answer->status == kOk) {
    const Json json = Json::parse(answer->body, nullptr, false);
    const auto data = json.is_object() ? json.find("data") : json.end();
    if (json.is_object() && data != json.end() && data->is_array() && !data->empty() &&
        data->front().is_object() && data->front().contains("id") &&
        data->front()["id"].is_string()) {
      return data->front()["id"].get<std::string>();
    }
  }
  const bool is_refused = answer->status == 401 || answer->status == 403;
  return Status(StatusCode::kNotFound, where + " answers " + std::to_string(answer->status) +
                                           " to /v1/models (" +
                                           error_message_of(answer->body).substr(0, 100) + "); " +
                                           (is_refused ? "give --api-key" : "give --model NAME"));
}

std::optional<uint32_t> Tokens::ask(const std::string& text, Form form, kj::WaitScope& scope) {
  Json body = {{form == Form::kPrompt ? "prompt" : "content", text}};
  if (form == Form::kPrompt) {
    body["model"] = model_;
    body["add_special_tokens"] = false;
  }
  const auto answer = loadgen::ask(peer_, timer_, scope, kj::HttpMethod::POST, "/tokenize",
                                   body.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!answer.ok() || answer->status != kOk) return std::nullopt;
  return count_in(answer->body);
}

std::optional<uint32_t> Tokens::count(const std::string& text, kj::WaitScope& scope) {
  if (form_ != Form::kUnknown) {
    return form_ == Form::kNone ? std::nullopt : ask(text, form_, scope);
  }
  for (const Form form : {Form::kPrompt, Form::kContent}) {
    if (const auto found = ask(text, form, scope)) {
      form_ = form;
      return found;
    }
  }
  form_ = Form::kNone;
  return std::nullopt;
}

bool Tokens::are_single(const std::vector<std::string>& words, size_t begin, size_t end,
                        kj::WaitScope& scope) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += (i > begin ? " " : "") + words[i];
  // A word at the beginning has no blank before it: each of a pair is there once.
  return count(text, scope) == end - begin &&
         (end - begin > 1 || count(words[begin] + " " + words[begin], scope) == 2U);
}

void Tokens::sift(const std::vector<std::string>& words, size_t begin, size_t end,
                  std::vector<std::string>& out, kj::WaitScope& scope) {
  if (are_single(words, begin, end, scope)) {
    out.insert(out.end(), words.begin() + static_cast<ptrdiff_t>(begin),
               words.begin() + static_cast<ptrdiff_t>(end));
    return;
  }
  if (end - begin == 1 || form_ == Form::kNone) return;
  const size_t middle = begin + (end - begin) / 2;
  sift(words, begin, middle, out, scope);
  sift(words, middle, end, out, scope);
}

std::vector<std::string> Tokens::single_token_words(const std::vector<std::string>& candidates,
                                                    kj::WaitScope& scope) {
  std::vector<std::string> out;
  for (size_t begin = 0;
       begin < candidates.size() && form_ != Form::kNone && out.size() < 2 * kWordsEnough;
       begin += kGroup) {
    sift(candidates, begin, std::min(begin + kGroup, candidates.size()), out, scope);
  }
  // What is good after a blank may be two tokens at the beginning of a text: such words go.
  std::vector<std::string> whole;
  for (const std::string& word : out) {
    if (whole.size() == kWordsEnough) break;
    if (count(word, scope) == 1U) whole.push_back(word);
  }
  return whole;
}

}  // namespace troupe::loadgen
