#include "actors/gateway/openai/logprobs_format.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "actors/gateway/text/escape.h"
#include "base/assert.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/utf8.h"

namespace troupe {

namespace {

void append_float(std::string& out, float value) {
  if (!std::isfinite(value) || value < kLogprobMin) value = kLogprobMin;
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  TROUPE_ASSERT(result.ec == std::errc(), value);
  out.append(buffer, result.ptr);
}

// "token":...,"logprob":...,"bytes":[...]
void append_chat_fields(std::string& out, std::string_view bytes, float logprob) {
  out += "\"token\":";
  append_json_string(out, to_valid_utf8(bytes));
  out += ",\"logprob\":";
  append_float(out, logprob);
  out += ",\"bytes\":[";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(static_cast<uint8_t>(bytes[i]));
  }
  out += ']';
}

}  // namespace

void LogprobsFormat::append(const SampledToken& token, size_t offset) {
  if (api_ == Api::kChat) return append_chat(token);
  append_completion_token(token.token, offset);
  append_float(logprobs_, token.logprob);
  top_ += '{';
  // An object has each key once; of two tokens with one spelling the more probable one is shown.
  std::unordered_set<std::string> names;
  for (const TokenLogprob& alternative : token.top) {
    std::string name = completion_name(alternative.token);
    const bool first = names.empty();
    if (!names.insert(name).second) continue;
    if (!first) top_ += ',';
    append_json_string(top_, name);
    top_ += ':';
    append_float(top_, alternative.logprob);
  }
  top_ += '}';
}

void LogprobsFormat::append_first(TokenId token, size_t offset) {
  TROUPE_ASSERT(api_ == Api::kCompletions && count_ == 0, count_, token);
  append_completion_token(token, offset);
  logprobs_ += "null";
  top_ += "null";
}

std::string LogprobsFormat::take() {
  count_ = 0;
  const std::string tokens = std::exchange(tokens_, {});
  if (api_ == Api::kChat) return "{\"content\":[" + tokens + "],\"refusal\":null}";
  return "{\"tokens\":[" + tokens + "],\"token_logprobs\":[" + std::exchange(logprobs_, {}) +
         "],\"top_logprobs\":[" + std::exchange(top_, {}) + "],\"text_offset\":[" +
         std::exchange(offsets_, {}) + "]}";
}

std::string LogprobsFormat::take_entries() {
  TROUPE_ASSERT(api_ == Api::kChat, count_);
  count_ = 0;
  return std::exchange(tokens_, {});
}

void LogprobsFormat::append_chat(const SampledToken& token) {
  if (count_++ > 0) tokens_ += ',';
  tokens_ += '{';
  append_chat_fields(tokens_, tokenizer_->token_bytes(token.token), token.logprob);
  tokens_ += ",\"top_logprobs\":[";
  for (size_t i = 0; i < token.top.size(); ++i) {
    tokens_ += i > 0 ? ",{" : "{";
    append_chat_fields(tokens_, tokenizer_->token_bytes(token.top[i].token), token.top[i].logprob);
    tokens_ += '}';
  }
  tokens_ += "]}";
}

void LogprobsFormat::append_completion_token(TokenId token, size_t offset) {
  if (count_++ > 0) {
    for (std::string* array : {&tokens_, &logprobs_, &top_, &offsets_}) *array += ',';
  }
  append_json_string(tokens_, completion_name(token));
  offsets_ += std::to_string(offset);
}

std::string LogprobsFormat::completion_name(TokenId token) const {
  const std::string_view bytes = tokenizer_->token_bytes(token);
  if (!find_invalid_utf8(bytes)) return std::string(bytes);
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string name = "bytes:";
  for (const char c : bytes) {
    name += "\\x";
    name += kHexDigits[static_cast<uint8_t>(c) >> 4];
    name += kHexDigits[static_cast<uint8_t>(c) & 15];
  }
  return name;
}

}  // namespace troupe
