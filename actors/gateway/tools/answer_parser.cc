#include "actors/gateway/tools/answer_parser.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "actors/gateway/tools/limits.h"
#include "base/assert.h"

namespace troupe {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

// Where the longest ending of `text` begins that is a proper beginning of `marker`.
size_t possible_start(std::string_view text, std::string_view marker) {
  size_t begin = text.size() - std::min(text.size(), marker.size() - 1);
  while (begin < text.size() && !marker.starts_with(text.substr(begin))) ++begin;
  return begin;
}

std::string_view marker_of(ToolFormat format) {
  switch (format) {
    case ToolFormat::kHermes:
      return kHermesOpen;
    case ToolFormat::kLlama3:
      return kLlamaTag;
    case ToolFormat::kMistral:
    case ToolFormat::kMistralArgs:
      return kMistralOpen;
    case ToolFormat::kNone:
      break;
  }
  return {};
}

bool may_begin_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

StopMatcher matcher_of(const AnswerParserOptions& options) {
  return {options.stops, options.stop_text};
}

}  // namespace

AnswerParser::AnswerParser(AnswerParserOptions options)
    : options_(std::move(options)),
      state_(State::kText),
      text_stops_(matcher_of(options_)),
      reasoning_stops_(options_.stop_in_reasoning ? matcher_of(options_)
                                                  : StopMatcher({}, options_.stop_text)) {
  if (options_.format.reasoning == ReasoningFormat::kNone) return;
  if (options_.prompt_end == PromptEnd::kBeforeAnswer) state_ = State::kStart;
  if (options_.prompt_end == PromptEnd::kBehindReasoning) skip_space_ = true;
  if (options_.prompt_end == PromptEnd::kInsideReasoning) {
    state_ = State::kReasoning;
    reasoning_ = Reasoning::kOpen;
  }
}

void AnswerParser::push(std::string_view piece, std::vector<AnswerPart>& out) {
  TROUPE_ASSERT(!stopped_, piece.size());
  out_ = &out;
  held_ += piece;
  while (!stopped_ && step()) {
  }
  out_ = nullptr;
}

void AnswerParser::finish(std::vector<AnswerPart>& out) {
  TROUPE_ASSERT(!stopped_, calls_);
  out_ = &out;
  const std::string rest = std::exchange(held_, {});
  const bool marked = options_.format.tools != ToolFormat::kLlama3;
  if (state_ == State::kReasoning) {
    add_reasoning(rest);
    const std::string shown = reasoning_stops_.flush();
    if (!shown.empty()) add_part(AnswerPartKind::kReasoning, shown);
    if (reasoning_stops_.matched()) stop(reasoning_stops_.found());
  } else if (state_ == State::kStart || state_ == State::kText) {
    if (!options_.calls_only) add_text(rest);
  } else if (state_ == State::kInCall && !call_open_) {
    // An unguided one was nothing but text so far.
    if (!options_.calls_only && !(options_.guided && marked)) malformed();
  }
  if (!stopped_) {
    const std::string shown = text_stops_.flush();
    if (!shown.empty()) show_text(shown);
    if (text_stops_.matched()) stop(text_stops_.found());
  }
  if (!text_space_.empty()) add_part(AnswerPartKind::kText, std::exchange(text_space_, {}));
  out_ = nullptr;
}

bool AnswerParser::step() {
  switch (state_) {
    case State::kStart:
      return step_start();
    case State::kReasoning:
      return step_reasoning();
    case State::kText:
      return step_text();
    case State::kBeforeCall:
      return step_before_call();
    case State::kInCall:
      return step_in_call();
    case State::kBehindCall:
      return step_behind_call();
    case State::kDeaf:
      held_.clear();
      return false;
  }
  TROUPE_ASSERT(false, static_cast<int>(state_));
  return false;
}

bool AnswerParser::step_start() {
  const size_t begin = held_.find_first_not_of(kSpace);
  if (begin == std::string::npos) return false;
  const std::string_view text = std::string_view(held_).substr(begin);
  if (text.starts_with(kThinkOpen)) {
    held_.erase(0, begin + kThinkOpen.size());
    state_ = State::kReasoning;
    reasoning_ = Reasoning::kOpen;
    return true;
  }
  if (kThinkOpen.starts_with(text)) return false;
  state_ = State::kText;
  return true;
}

bool AnswerParser::step_reasoning() {
  const size_t end = held_.find(kThinkClose);
  if (end == std::string::npos) {
    const size_t keep = possible_start(held_, kThinkClose);
    add_reasoning(std::string_view(held_).substr(0, keep));
    held_.erase(0, keep);
    return false;
  }
  add_reasoning(std::string_view(held_).substr(0, end));
  if (stopped_) return false;
  const std::string shown = reasoning_stops_.flush();
  if (!shown.empty()) add_part(AnswerPartKind::kReasoning, shown);
  if (reasoning_stops_.matched()) {
    stop(reasoning_stops_.found());
    return false;
  }
  held_.erase(0, end + kThinkClose.size());
  state_ = State::kText;
  reasoning_ = Reasoning::kClosed;
  skip_space_ = true;
  return true;
}

void AnswerParser::add_reasoning(std::string_view text) {
  if (!reasoning_begun_) text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  if (text.empty()) return;
  reasoning_begun_ = true;
  const size_t last = text.find_last_not_of(kSpace);
  if (last == std::string_view::npos) {
    reasoning_space_ += text;
    return;
  }
  std::string certain = std::exchange(reasoning_space_, std::string(text.substr(last + 1)));
  certain += text.substr(0, last + 1);
  const std::string shown = reasoning_stops_.push(certain);
  if (!shown.empty()) add_part(AnswerPartKind::kReasoning, shown);
  if (reasoning_stops_.matched()) stop(reasoning_stops_.found());
}

AnswerParser::Found AnswerParser::find_call() const {
  const std::string_view marker = marker_of(options_.format.tools);
  if (marker.empty() || calls_ >= kCallsMax) return {};
  return {held_.find(marker), marker.size()};
}

bool AnswerParser::step_text() {
  const std::string_view marker = marker_of(options_.format.tools);
  if (options_.format.tools == ToolFormat::kLlama3 && !text_begun_ && calls_ == 0) {
    const size_t begin = held_.find_first_not_of(kSpace);
    if (begin == std::string::npos) return false;
    if (held_[begin] == '{') {
      take_raw(begin);
      state_ = State::kBeforeCall;
      return true;
    }
  }
  const Found found = find_call();
  if (found.at != std::string::npos) {
    add_text(std::string_view(held_).substr(0, found.at));
    if (stopped_) return false;
    held_.erase(0, found.at);
    take_raw(found.size);
    state_ = State::kBeforeCall;
    return true;
  }
  const size_t keep = marker.empty() ? held_.size() : possible_start(held_, marker);
  add_text(std::string_view(held_).substr(0, keep));
  held_.erase(0, keep);
  return false;
}

void AnswerParser::take_raw(size_t size) {
  raw_.append(held_, 0, size);
  held_.erase(0, size);
}

bool AnswerParser::step_before_call() {
  take_raw(std::min(held_.find_first_not_of(kSpace), held_.size()));
  if (held_.empty()) return false;
  const char c = held_[0];
  const bool mistral = marker_of(options_.format.tools) == kMistralOpen;
  if (c == '{') {
    begin_call(CallForm::kObject);
  } else if (mistral && !in_list_ && may_begin_name(c)) {
    begin_call(CallForm::kNamed);
  } else if (mistral && !in_list_ && c == '[') {
    in_list_ = true;
    take_raw(1);
  } else if (in_list_ && !list_begun_ && c == ']') {  // a list of no calls
    take_raw(1);
    raw_.clear();
    in_list_ = false;
    state_ = State::kText;
  } else {
    malformed();
  }
  return true;
}

void AnswerParser::begin_call(CallForm form) {
  reader_.emplace(form);
  state_ = State::kInCall;
}

bool AnswerParser::step_in_call() {
  const auto is_offered = [this](const std::string& name) {
    return std::find(options_.tool_names.begin(), options_.tool_names.end(), name) !=
           options_.tool_names.end();
  };
  size_t used = 0;
  CallReader::Step step = CallReader::Step::kMore;
  while (used < held_.size() && step == CallReader::Step::kMore) {
    const char c = held_[used];
    step = reader_->push(c);
    if (step == CallReader::Step::kBad) break;
    ++used;
    if (!call_open_) raw_ += c;
    if (!call_open_ && reader_->name() && !is_offered(*reader_->name())) {
      step = CallReader::Step::kBad;
      break;
    }
    const bool may_show = options_.guided && !call_open_ && reader_->in_arguments();
    if (may_show && reader_->name() &&
        raw_.ends_with(call_begin(options_.format.tools, *reader_->name()) + "{")) {
      show_call();
      if (stopped_) return false;
    }
  }
  held_.erase(0, used);
  if (call_open_) {
    std::string arguments = reader_->take_arguments();
    if (!arguments.empty()) add_part(AnswerPartKind::kCallArguments, std::move(arguments));
  }
  if (step == CallReader::Step::kBad) {
    malformed();
    return true;
  }
  if (step == CallReader::Step::kMore) return false;
  finish_call();
  return true;
}

void AnswerParser::show_call() {
  close_text();
  if (stopped_) return;
  raw_.clear();
  call_open_ = true;
  ++calls_;
  add_part(AnswerPartKind::kCallStarted, *reader_->name(),
           call_id(options_.format.tools, options_.response_id, options_.choice, calls_ - 1));
}

void AnswerParser::finish_call() {
  if (!call_open_) {
    show_call();
    if (stopped_) return;
    add_part(AnswerPartKind::kCallArguments, reader_->take_arguments());
  }
  add_part(AnswerPartKind::kCallFinished, {});
  call_open_ = false;
  reader_.reset();
  state_ = State::kBehindCall;
  if (options_.one_call || calls_ >= kCallsMax) stop({});
}

bool AnswerParser::step_behind_call() {
  held_.erase(0, std::min(held_.find_first_not_of(kSpace), held_.size()));
  if (held_.empty()) return false;
  const char c = held_[0];
  state_ = State::kText;
  if (options_.format.tools == ToolFormat::kHermes) {
    if (held_.starts_with(kHermesClose)) {
      held_.erase(0, kHermesClose.size());
    } else if (kHermesClose.starts_with(held_)) {
      state_ = State::kBehindCall;
      return false;
    }
    return true;
  }
  const bool separator =
      options_.format.tools == ToolFormat::kLlama3 ? c == ';' || c == ',' : in_list_ && c == ',';
  if (separator) {
    list_begun_ = in_list_;
    take_raw(1);
    state_ = State::kBeforeCall;
    return true;
  }
  if (in_list_ && c == ']') held_.erase(0, 1);
  in_list_ = false;
  list_begun_ = false;
  return true;
}

// What was read is no call: text, unless a part of it has been shown as a call, which no grammar
// lets happen.
void AnswerParser::malformed() {
  const std::string text = std::exchange(raw_, {});
  reader_.reset();
  in_list_ = false;
  list_begun_ = false;
  state_ = call_open_ ? State::kDeaf : State::kText;
  if (!call_open_) add_text(text);
}

void AnswerParser::add_text(std::string_view text) {
  if (text.empty()) return;
  text_begun_ = text_begun_ || text.find_first_not_of(kSpace) != std::string_view::npos;
  const std::string shown = text_stops_.push(text);
  if (!shown.empty()) show_text(shown);
  if (text_stops_.matched()) stop(text_stops_.found());
}

void AnswerParser::show_text(std::string_view text) {
  if (skip_space_) text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  if (text.empty()) return;
  skip_space_ = false;
  size_t certain = text.size();
  if (options_.format.tools != ToolFormat::kNone) certain = text.find_last_not_of(kSpace) + 1;
  std::string rest(text.substr(certain));
  if (certain == 0) {
    text_space_ += rest;
    return;
  }
  std::string piece = std::exchange(text_space_, std::move(rest));
  piece += text.substr(0, certain);
  add_part(AnswerPartKind::kText, std::move(piece));
}

// The text before a call is complete: a stop string cannot go on behind it.
void AnswerParser::close_text() {
  const std::string shown = text_stops_.flush();
  if (!shown.empty()) show_text(shown);
  if (text_stops_.matched()) return stop(text_stops_.found());
  text_stops_ = matcher_of(options_);
  text_space_.clear();
  skip_space_ = true;
}

void AnswerParser::stop(const std::string& by) {
  stopped_ = true;
  stop_string_ = by;
  held_.clear();
  if (!by.empty() && !text_space_.empty()) {
    add_part(AnswerPartKind::kText, std::exchange(text_space_, {}));
  }
}

void AnswerParser::add_part(AnswerPartKind kind, std::string text, std::string id) {
  TROUPE_ASSERT(out_ != nullptr, static_cast<int>(kind));
  const bool of_call = kind != AnswerPartKind::kText && kind != AnswerPartKind::kReasoning;
  const uint32_t call = of_call ? calls_ - 1 : 0;
  const bool joins = kind != AnswerPartKind::kCallStarted && kind != AnswerPartKind::kCallFinished;
  if (joins && !out_->empty() && out_->back().kind == kind && out_->back().call == call) {
    out_->back().text += text;
    return;
  }
  out_->push_back({kind, call, std::move(text), std::move(id)});
}

std::string call_id(ToolFormat format, std::string_view response_id, uint32_t choice,
                    uint32_t call) {
  const std::string place = "_" + std::to_string(choice) + "_" + std::to_string(call);
  const std::string_view number = response_id.substr(response_id.find_last_of("-_") + 1);
  if (marker_of(format) != kMistralOpen) return "call_" + std::string(number) + place;
  // FNV-1a (Fowler, Noll, Vo 1991), written with 62 digits: 53 bits of it.
  uint64_t hash = 14695981039346656037U;
  for (const char c : std::string(response_id) + place) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211U;
  }
  constexpr std::string_view kDigits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string id;
  for (int i = 0; i < 9; ++i, hash /= kDigits.size()) id += kDigits[hash % kDigits.size()];
  return id;
}

}  // namespace troupe
