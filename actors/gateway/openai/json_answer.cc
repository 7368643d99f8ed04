#include "actors/gateway/openai/json_answer.h"

#include <utility>

#include "base/assert.h"

namespace troupe {

namespace {

std::string_view to_text(AnswerEnd end) {
  switch (end) {
    case AnswerEnd::kStop:
      return "stop";
    case AnswerEnd::kLength:
      return "length";
    case AnswerEnd::kToolCalls:
      return "tool_calls";
  }
  TROUPE_ASSERT(false, static_cast<int>(end));
  return {};
}

}  // namespace

JsonAnswer::JsonAnswer(const GenerationBody& body, const RunIdentity& identity,
                       const Tokenizer& tokenizer, JsonSink& sink)
    : api_(body.api),
      stream_(body.stream),
      wants_logprobs_(body.sampling.logprobs >= 0),
      include_usage_(body.include_usage),
      continuous_usage_(body.continuous_usage),
      tokenizer_(tokenizer),
      sink_(sink),
      format_(body.api, identity.response_id, identity.created_unix_s, identity.model) {}

void JsonAnswer::on_delta(const ChoiceDelta& delta, const GenerationRun& run) {
  if (!stream_) return gather(delta);
  const std::string usage = event_usage(run);
  if (delta.first && api_ == Api::kChat) sink_.on_event(format_.role_event(delta.index, usage));
  stream(delta, usage);
  if (delta.finish) {
    sink_.on_event(format_.finish_event(delta.index, to_text(*delta.finish), usage));
  }
}

void JsonAnswer::stream(const ChoiceDelta& delta, const std::string& usage) {
  LogprobsFormat logprobs(tokenizer_, api_);
  append_logprobs(delta, logprobs);
  // The scores stand in the first event of what their tokens have brought.
  std::string scores = logprobs.empty() ? "" : logprobs.take();
  for (const AnswerPart& part : delta.parts) {
    if (part.kind == AnswerPartKind::kCallFinished) continue;
    sink_.on_event(api_ == Api::kChat
                       ? format_.part_event(delta.index, part, scores, usage)
                       : format_.text_event({delta.index, part.text, scores, {}}, usage));
    scores.clear();
  }
  if (!scores.empty()) sink_.on_event(format_.text_event({delta.index, {}, scores, {}}, usage));
}

void JsonAnswer::gather(const ChoiceDelta& delta) {
  while (parts_.size() <= delta.index) parts_.push_back({{}, {}, {}, {tokenizer_, api_}, {}});
  Part& part = parts_[delta.index];
  for (const AnswerPart& piece : delta.parts) {
    switch (piece.kind) {
      case AnswerPartKind::kText:
        part.text += piece.text;
        break;
      case AnswerPartKind::kReasoning:
        part.reasoning += piece.text;
        break;
      case AnswerPartKind::kCallStarted:
        part.calls.push_back({piece.id, piece.text, {}});
        break;
      case AnswerPartKind::kCallArguments:
        TROUPE_ASSERT(piece.call + 1 == part.calls.size(), piece.call, part.calls.size());
        part.calls.back().arguments += piece.text;
        break;
      case AnswerPartKind::kCallFinished:
        break;
    }
  }
  append_logprobs(delta, part.logprobs);
  if (delta.finish) part.finish = delta.finish;
}

std::string JsonAnswer::format_choice(uint32_t index, Part& part) const {
  TROUPE_ASSERT(part.finish.has_value(), index);
  const std::string logprobs = part.logprobs.empty() ? "" : part.logprobs.take();
  std::vector<CallView> calls;
  for (const Part::Call& call : part.calls) calls.push_back({call.id, call.name, call.arguments});
  return format_.choice({index, part.text, logprobs, to_text(*part.finish), part.reasoning, calls});
}

void JsonAnswer::append_logprobs(const ChoiceDelta& delta, LogprobsFormat& out) const {
  for (const ChoiceToken& token : delta.prompt) {
    if (token.scored) {
      out.append(token.sampled, token.offset);
    } else {
      out.append_first(token.sampled.token, token.offset);
    }
  }
  if (!wants_logprobs_) return;
  for (const ChoiceToken& token : delta.tokens) out.append(token.sampled, token.offset);
}

std::string JsonAnswer::event_usage(const GenerationRun& run) const {
  if (continuous_usage_) return ResponseFormat::usage(run.totals());
  return include_usage_ ? "null" : "";
}

void JsonAnswer::on_end(const UsageTotals& totals) {
  const std::string usage = ResponseFormat::usage(totals);
  if (stream_) {
    if (include_usage_) sink_.on_event(format_.usage_event(usage));
    return sink_.on_end({});
  }
  std::string choices;
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    if (i > 0) choices += ',';
    choices += format_choice(i, parts_[i]);
  }
  sink_.on_end(format_.body(choices, usage));
}

void JsonAnswer::on_error(const Status& status) {
  sink_.on_error(status);
}

}  // namespace troupe
