#include "actors/gateway/tools/call_reader.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "actors/gateway/tools/limits.h"
#include "actors/gateway/tools/tool_format.h"
#include "base/assert.h"

namespace troupe {

namespace {

using Json = nlohmann::json;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

std::optional<std::string> decoded_string(const std::string& json) {
  Json value = Json::parse(json, nullptr, false);
  if (!value.is_string()) return std::nullopt;
  return std::move(value.get_ref<std::string&>());
}

}  // namespace

std::string CallReader::take_arguments() {
  return std::exchange(arguments_, {});
}

CallReader::Step CallReader::push(char c) {
  return form_ == CallForm::kObject ? push_object(c) : push_named(c);
}

CallReader::Step CallReader::push_object(char c) {
  switch (place_) {
    case Place::kInKey:
      return push_key(c);
    case Place::kInValue:
      return push_value(c);
    case Place::kBehindValue:
      return push_behind_value(c);
    case Place::kBeforeValue:
      if (is_space(c)) return Step::kMore;
      return begin_value(c) ? push_value(c) : Step::kBad;
    default:
      break;
  }
  if (is_space(c)) return Step::kMore;
  switch (place_) {
    case Place::kOpen:
      place_ = Place::kFirstKey;
      return c == '{' ? Step::kMore : Step::kBad;
    case Place::kColon:
      place_ = Place::kBeforeValue;
      return c == ':' ? Step::kMore : Step::kBad;
    default:
      break;
  }
  TROUPE_ASSERT(place_ == Place::kFirstKey || place_ == Place::kKey, static_cast<int>(place_));
  if (c != '"') return Step::kBad;  // also {}, a call of nothing
  place_ = Place::kInKey;
  scanner_ = {};
  text_.clear();
  return push_key(c);
}

CallReader::Step CallReader::push_key(char c) {
  text_ += c;
  const JsonScanner::Step step = scanner_.push(c);
  if (step == JsonScanner::Step::kMore) return Step::kMore;
  if (step != JsonScanner::Step::kLast || !key_ended()) return Step::kBad;
  place_ = Place::kColon;
  return Step::kMore;
}

bool CallReader::key_ended() {
  const std::optional<std::string> key = decoded_string(text_);
  if (!key) return false;
  if (*key == "name") {
    member_ = Member::kName;
    return !name_;  // given twice, nobody knows which one counts
  }
  if (*key == "arguments" || *key == "parameters") {
    member_ = Member::kArguments;
    return !std::exchange(has_arguments_, true);
  }
  member_ = Member::kOther;
  return true;
}

bool CallReader::begin_value(char c) {
  place_ = Place::kInValue;
  scanner_ = {};
  text_.clear();
  if (member_ == Member::kName) return c == '"';
  if (member_ == Member::kOther) return true;
  in_arguments_ = c == '{';
  return c == '{' || c == '"' || c == 'n';
}

CallReader::Step CallReader::push_value(char c) {
  const JsonScanner::Step step = scanner_.push(c);
  if (step == JsonScanner::Step::kBad) return Step::kBad;
  if (step != JsonScanner::Step::kOutside && member_ != Member::kOther) {
    (in_arguments_ && member_ == Member::kArguments ? arguments_ : text_) += c;
  }
  if (step == JsonScanner::Step::kMore) return Step::kMore;
  place_ = Place::kBehindValue;
  if (!value_ended()) return Step::kBad;
  return step == JsonScanner::Step::kLast ? Step::kMore : push_behind_value(c);
}

bool CallReader::value_ended() {
  if (member_ == Member::kName) {
    name_ = decoded_string(text_);
    return name_.has_value();
  }
  if (member_ != Member::kArguments || in_arguments_) return true;
  if (text_ == "null") {
    arguments_ = "{}";
    return true;
  }
  std::optional<std::string> inner = decoded_string(text_);
  if (!inner || !Json::parse(*inner, nullptr, false).is_object()) return false;
  arguments_ = std::move(*inner);
  return true;
}

CallReader::Step CallReader::push_behind_value(char c) {
  if (is_space(c)) return Step::kMore;
  if (c == ',') {
    place_ = Place::kKey;
    return Step::kMore;
  }
  if (c != '}' || !name_) return Step::kBad;
  if (!has_arguments_) arguments_ = "{}";
  return Step::kDone;
}

CallReader::Step CallReader::push_named(char c) {
  switch (place_) {
    case Place::kName:
    case Place::kCallId:
      if (is_name(c) && text_.size() <= kToolNameBytesMax) {
        text_ += c;
        return Step::kMore;
      }
      if (is_space(c)) return Step::kMore;
      if (place_ == Place::kName) name_ = std::exchange(text_, {});
      if (c == '{' && place_ == Place::kName) return begin_arguments(c);
      place_ = Place::kMark;
      text_ = c;
      return c == '[' ? Step::kMore : Step::kBad;
    case Place::kMark:
      text_ += c;
      if (text_ == kMistralArgsMark) {
        place_ = Place::kBeforeArguments;
      } else if (text_ == kMistralCallId) {
        place_ = Place::kCallId;
        text_.clear();
      } else if (!kMistralArgsMark.starts_with(text_) && !kMistralCallId.starts_with(text_)) {
        return Step::kBad;
      }
      return Step::kMore;
    case Place::kBeforeArguments:
      return is_space(c) ? Step::kMore : begin_arguments(c);
    default:
      break;
  }
  TROUPE_ASSERT(place_ == Place::kInValue, static_cast<int>(place_));
  const JsonScanner::Step step = scanner_.push(c);
  if (step == JsonScanner::Step::kBad) return Step::kBad;
  arguments_ += c;
  return step == JsonScanner::Step::kLast ? Step::kDone : Step::kMore;
}

CallReader::Step CallReader::begin_arguments(char c) {
  if (c != '{') return Step::kBad;
  place_ = Place::kInValue;
  member_ = Member::kArguments;
  in_arguments_ = true;
  has_arguments_ = true;
  return push_named(c);
}

}  // namespace troupe
