#include "actors/gateway/responses/responses_answer.h"

#include <algorithm>
#include <utility>

#include "actors/gateway/openai/api_error.h"
#include "actors/gateway/responses/input_items.h"
#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {
namespace {

std::string member(const char* name, std::string_view text) {
  std::string out = ",\"";
  out += name;
  out += "\":";
  append_json_string(out, text);
  return out;
}

std::string usage_text(const UsageTotals& totals) {
  const uint64_t all = totals.prompt_tokens + totals.completion_tokens;
  return "{\"input_tokens\":" + std::to_string(totals.prompt_tokens) +
         ",\"input_tokens_details\":{\"cached_tokens\":" +
         std::to_string(totals.cached_tokens.value_or(0)) +
         "},\"output_tokens\":" + std::to_string(totals.completion_tokens) +
         ",\"output_tokens_details\":{\"reasoning_tokens\":" +
         std::to_string(totals.reasoning_tokens.value_or(0)) +
         "},\"total_tokens\":" + std::to_string(all) + "}";
}

bool has_kind(std::span<const AnswerPart> parts, AnswerPartKind kind) {
  return std::any_of(parts.begin(), parts.end(), [kind](auto& part) { return part.kind == kind; });
}

std::string_view event_prefix(OutputKind kind) {
  switch (kind) {
    case OutputKind::kMessage:
      return "response.output_text";
    case OutputKind::kReasoning:
      return "response.reasoning_text";
    case OutputKind::kCall:
      return "response.function_call_arguments";
  }
  TROUPE_ASSERT(false, static_cast<int>(kind));
  return {};
}

}  // namespace

ResponsesAnswer::ResponsesAnswer(ResponsesRequest request, const RunIdentity& identity, bool stream,
                                 bool wants_logprobs, const Tokenizer& tokenizer,
                                 const Clock& clock, ResponseStore& store, JsonSink& sink)
    : request_(std::move(request)),
      identity_(identity),
      stream_(stream),
      wants_logprobs_(wants_logprobs),
      tokenizer_(tokenizer),
      clock_(clock),
      store_(store),
      sink_(sink),
      id_tail_(identity.response_id.substr(identity.response_id.find('_') + 1)) {}

void ResponsesAnswer::send(std::string_view type, const std::string& members) {
  if (!stream_) return;
  std::string json = "{\"type\":\"";
  json += type;
  json += "\",\"sequence_number\":" + std::to_string(sequence_++) + members + "}";
  sink_.on_named_event(type, json);
}

// The two first events come with the first token, so that a request which fails before it has a
// status code of its own.
void ResponsesAnswer::begin() {
  if (std::exchange(begun_, true) || !stream_) return;
  const std::string members = ",\"response\":" + object("in_progress", "null", "null");
  send("response.created", members);
  send("response.in_progress", members);
}

std::string ResponsesAnswer::new_logprobs(const ChoiceDelta& delta) const {
  if (!wants_logprobs_) return {};
  LogprobsFormat format(tokenizer_, Api::kChat);
  for (const ChoiceToken& token : delta.tokens) format.append(token.sampled, token.offset);
  return format.take_entries();
}

void ResponsesAnswer::on_delta(const ChoiceDelta& delta, const GenerationRun& /*run*/) {
  TROUPE_ASSERT(delta.index == 0, delta.index);
  begin();
  const bool has_text = has_kind(delta.parts, AnswerPartKind::kText);
  // Those of tokens that are no text (calls, reasoning, an end token before any) are not shown.
  const bool in_message = is_open_ && items_.back().kind == OutputKind::kMessage;
  std::string logprobs = has_text || in_message ? new_logprobs(delta) : std::string();
  for (const AnswerPart& part : delta.parts) {
    const bool is_text = part.kind == AnswerPartKind::kText;
    take(part, is_text ? std::exchange(logprobs, {}) : std::string_view());
  }
  if (!logprobs.empty() && is_open_ && items_.back().kind == OutputKind::kMessage) {
    append({}, logprobs);
  }
  if (delta.finish) finish(*delta.finish);
}

void ResponsesAnswer::take(const AnswerPart& part, std::string_view logprobs) {
  const auto grow = [&](OutputKind kind) {
    if (!is_open_ || items_.back().kind != kind) open(kind);
    append(part.text, logprobs);
  };
  switch (part.kind) {
    case AnswerPartKind::kText:
      return grow(OutputKind::kMessage);
    case AnswerPartKind::kReasoning:
      return grow(OutputKind::kReasoning);
    case AnswerPartKind::kCallStarted: {
      if (is_open_) close(true);
      OutputItem& item = items_.emplace_back();
      item.kind = OutputKind::kCall;
      item.name = part.text;
      item.call_id = part.id;
      return open(OutputKind::kCall);
    }
    case AnswerPartKind::kCallArguments:
      return append(part.text, {});
    case AnswerPartKind::kCallFinished:
      return close(true);
  }
}

// A call's item is there already; the others are made here.
void ResponsesAnswer::open(OutputKind kind) {
  if (is_open_) close(true);
  if (kind != OutputKind::kCall) items_.emplace_back().kind = kind;
  is_open_ = true;
  OutputItem& item = items_.back();
  const char* prefix = kind == OutputKind::kMessage     ? "msg_"
                       : kind == OutputKind::kReasoning ? "rs_"
                                                        : "fc_";
  item.id = prefix + id_tail_ + "_" + std::to_string(items_.size() - 1);
  send("response.output_item.added", ",\"output_index\":" + std::to_string(items_.size() - 1) +
                                         ",\"item\":" + format_item(item, "in_progress"));
  if (kind == OutputKind::kCall) return;
  send("response.content_part.added", place() + ",\"part\":" + format_part(item, {}, {}));
}

std::string ResponsesAnswer::place() const {
  const OutputItem& item = items_.back();
  std::string out =
      member("item_id", item.id) + ",\"output_index\":" + std::to_string(items_.size() - 1);
  if (item.kind != OutputKind::kCall) out += ",\"content_index\":0";
  return out;
}

void ResponsesAnswer::append(std::string_view text, std::string_view logprobs) {
  TROUPE_ASSERT(is_open_, items_.size());
  OutputItem& item = items_.back();
  item.text += text;
  if (!logprobs.empty()) {
    if (!item.logprobs.empty()) item.logprobs += ',';
    item.logprobs += logprobs;
  }
  if (!stream_) return;
  std::string members = place() + member("delta", text);
  if (item.kind == OutputKind::kMessage) {
    members += ",\"logprobs\":[" + std::string(logprobs) + "]";
  }
  send(std::string(event_prefix(item.kind)) + ".delta", members);
}

void ResponsesAnswer::close(bool complete) {
  TROUPE_ASSERT(is_open_, items_.size());
  const OutputItem& item = items_.back();
  const std::string whole = format_item(item, complete ? "completed" : "incomplete");
  if (stream_) {
    const bool is_call = item.kind == OutputKind::kCall;
    std::string members = place() + member(is_call ? "arguments" : "text", item.text);
    if (is_call) members += member("name", item.name);
    if (item.kind == OutputKind::kMessage) members += ",\"logprobs\":[" + item.logprobs + "]";
    send(std::string(event_prefix(item.kind)) + ".done", members);
    if (!is_call) {
      send("response.content_part.done",
           place() + ",\"part\":" + format_part(item, item.text, item.logprobs));
    }
    send("response.output_item.done",
         ",\"output_index\":" + std::to_string(items_.size() - 1) + ",\"item\":" + whole);
  }
  is_open_ = false;
  if (!done_.empty()) done_ += ',';
  done_ += whole;
}

void ResponsesAnswer::finish(AnswerEnd end) {
  incomplete_ = end == AnswerEnd::kLength;
  // Clients expect something to read, also where the model ended at once.
  if (items_.empty()) open(OutputKind::kMessage);
  if (is_open_) close(!incomplete_);
}

std::string ResponsesAnswer::object(std::string_view status, std::string_view error,
                                    std::string_view usage) const {
  std::string out = "{\"id\":";
  append_json_string(out, identity_.response_id);
  out += ",\"object\":\"response\",\"created_at\":" + std::to_string(identity_.created_unix_s);
  out += ",\"completed_at\":";
  out += status == "completed" ? std::to_string(clock_.unix_seconds()) : "null";
  out += member("status", status);
  out += ",\"error\":";
  out += error;
  out += ",\"incomplete_details\":";
  out += status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null";
  out += member("model", identity_.model);
  out += ",\"output\":[" + done_ + "]" + request_.echo + ",\"usage\":";
  out += usage;
  return out + '}';
}

void ResponsesAnswer::on_end(const UsageTotals& totals) {
  TROUPE_ASSERT(begun_ && !is_open_, items_.size());
  const char* status = incomplete_ ? "incomplete" : "completed";
  std::string body = object(status, "null", usage_text(totals));
  send(std::string("response.") + status, ",\"response\":" + body);
  keep(body);
  sink_.on_end(stream_ ? std::string() : std::move(body));
}

void ResponsesAnswer::keep(const std::string& body) {
  if (!request_.store) return;
  request_.conversation.push_back(to_chat_message(items_));
  const auto dump = [](const nlohmann::ordered_json& json) { return json.dump(); };
  store_.put(identity_.response_id,
             {body, dump(listed_input(request_.input, id_tail_)), dump(request_.conversation)});
}

void ResponsesAnswer::on_error(const Status& status) {
  if (!stream_ || !begun_) return sink_.on_error(status);
  const ApiError error = to_api_error(status);
  const std::string text = "{\"code\":\"server_error\"" + member("message", error.message) + "}";
  send("response.failed", ",\"response\":" + object("failed", text, "null"));
  sink_.on_end({});
}

}  // namespace troupe
