#include "actors/gateway/openai/response_format.h"

#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {

namespace {

std::string make_head(std::string_view id, std::string_view object, int64_t created_unix_s,
                      std::string_view model) {
  std::string head = "{\"id\":";
  append_json_string(head, id);
  head += ",\"object\":";
  append_json_string(head, object);
  head += ",\"created\":" + std::to_string(created_unix_s) + ",\"model\":";
  append_json_string(head, model);
  head += ",\"choices\":[";
  return head;
}

void append_or_null(std::string& out, std::string_view json) {
  out += json.empty() ? "null" : json;
}

// The end of each choice: ,"logprobs":...,"finish_reason":...}
void append_tail(std::string& out, std::string_view logprobs, std::string_view finish_reason) {
  out += ",\"logprobs\":";
  append_or_null(out, logprobs);
  out += ",\"finish_reason\":";
  if (finish_reason.empty()) {
    out += "null}";
  } else {
    append_json_string(out, finish_reason);
    out += '}';
  }
}

// Under both names that clients look for.
void append_reasoning(std::string& out, std::string_view text) {
  out += "\"reasoning_content\":";
  append_json_string(out, text);
  out += ",\"reasoning\":";
  append_json_string(out, text);
}

void append_call(std::string& out, const CallView& call) {
  out += "{\"id\":";
  append_json_string(out, call.id);
  out += ",\"type\":\"function\",\"function\":{\"name\":";
  append_json_string(out, call.name);
  out += ",\"arguments\":";
  append_json_string(out, call.arguments);
  out += "}}";
}

std::string delta_of(const AnswerPart& part) {
  std::string out = "{";
  switch (part.kind) {
    case AnswerPartKind::kText:
      out += "\"content\":";
      append_json_string(out, part.text);
      return out + "}";
    case AnswerPartKind::kReasoning:
      append_reasoning(out, part.text);
      return out + "}";
    case AnswerPartKind::kCallStarted:
    case AnswerPartKind::kCallArguments:
      break;
    case AnswerPartKind::kCallFinished:
      TROUPE_ASSERT(false, part.call);
  }
  out += "\"tool_calls\":[{\"index\":" + std::to_string(part.call);
  if (part.kind == AnswerPartKind::kCallStarted) {
    out += ",\"id\":";
    append_json_string(out, part.id);
    out += ",\"type\":\"function\",\"function\":{\"name\":";
    append_json_string(out, part.text);
    out += ",\"arguments\":\"\"}}]}";
  } else {
    out += ",\"function\":{\"arguments\":";
    append_json_string(out, part.text);
    out += "}}]}";
  }
  return out;
}

std::string index_head(uint32_t index) {
  return "{\"index\":" + std::to_string(index);
}

}  // namespace

ResponseFormat::ResponseFormat(Api api, std::string_view id, int64_t created_unix_s,
                               std::string_view model)
    : api_(api),
      event_head_(make_head(id, api == Api::kChat ? "chat.completion.chunk" : "text_completion",
                            created_unix_s, model)),
      body_head_(make_head(id, api == Api::kChat ? "chat.completion" : "text_completion",
                           created_unix_s, model)) {}

std::string ResponseFormat::role_event(uint32_t index, std::string_view usage) const {
  std::string choice = index_head(index) + ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}";
  append_tail(choice, {}, {});
  return event(choice, usage);
}

std::string ResponseFormat::text_event(const ChoiceView& view, std::string_view usage) const {
  std::string choice = index_head(view.index);
  choice += api_ == Api::kChat ? ",\"delta\":{\"content\":" : ",\"text\":";
  append_json_string(choice, view.text);
  if (api_ == Api::kChat) choice += '}';
  append_tail(choice, view.logprobs, view.finish_reason);
  return event(choice, usage);
}

std::string ResponseFormat::part_event(uint32_t index, const AnswerPart& part,
                                       std::string_view logprobs, std::string_view usage) const {
  TROUPE_ASSERT(api_ == Api::kChat, index);
  std::string choice = index_head(index) + ",\"delta\":" + delta_of(part);
  append_tail(choice, logprobs, {});
  return event(choice, usage);
}

std::string ResponseFormat::finish_event(uint32_t index, std::string_view finish_reason,
                                         std::string_view usage) const {
  std::string choice = index_head(index);
  choice += api_ == Api::kChat ? ",\"delta\":{}" : ",\"text\":\"\"";
  append_tail(choice, {}, finish_reason);
  return event(choice, usage);
}

std::string ResponseFormat::usage_event(std::string_view usage) const {
  return event({}, usage);
}

std::string ResponseFormat::body(std::string_view choices, std::string_view usage) const {
  std::string out = body_head_;
  out += choices;
  out += "],\"usage\":";
  out += usage;
  out += '}';
  return out;
}

std::string ResponseFormat::choice(const ChoiceView& view) const {
  std::string out = index_head(view.index);
  if (api_ == Api::kChat) {
    out += ",\"message\":{\"role\":\"assistant\",\"content\":";
    // Beside a call or reasoning, no text is null: clients show "" as an answer.
    if (view.text.empty() && !(view.calls.empty() && view.reasoning.empty())) {
      out += "null";
    } else {
      append_json_string(out, view.text);
    }
    if (!view.reasoning.empty()) append_reasoning(out += ',', view.reasoning);
    for (size_t i = 0; i < view.calls.size(); ++i) {
      append_call(out += i == 0 ? ",\"tool_calls\":[" : ",", view.calls[i]);
    }
    if (!view.calls.empty()) out += ']';
    out += ",\"refusal\":null}";
  } else {
    out += ",\"text\":";
    append_json_string(out, view.text);
  }
  append_tail(out, view.logprobs, view.finish_reason);
  return out;
}

std::string ResponseFormat::usage(const UsageTotals& totals) {
  std::string out = "{\"prompt_tokens\":" + std::to_string(totals.prompt_tokens);
  out += ",\"completion_tokens\":" + std::to_string(totals.completion_tokens);
  out += ",\"total_tokens\":" + std::to_string(totals.prompt_tokens + totals.completion_tokens);
  if (totals.reasoning_tokens) {
    out += ",\"completion_tokens_details\":{\"reasoning_tokens\":" +
           std::to_string(*totals.reasoning_tokens) + "}";
  }
  out += ",\"prompt_tokens_details\":";
  if (totals.cached_tokens) {
    out += "{\"cached_tokens\":" + std::to_string(*totals.cached_tokens) + "}}";
  } else {
    out += "null}";
  }
  return out;
}

std::string ResponseFormat::event(std::string_view choice, std::string_view usage) const {
  std::string out = event_head_;
  out += choice;
  out += ']';
  if (!usage.empty()) {
    out += ",\"usage\":";
    out += usage;
  }
  out += '}';
  return out;
}

}  // namespace troupe
