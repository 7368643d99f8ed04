#include "actors/gateway/openai/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/text/escape.h"
#include "engine/sample/validate.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kLogitBiasMax = 100.0;

struct RealField {
  std::string_view name;
  double low;
  double high;
  FieldReader::Bound low_rule;
  float SamplingParams::*member;
};

constexpr RealField kRealFields[] = {
    {"temperature", 0, 2, FieldReader::Bound::kClosed, &SamplingParams::temperature},
    {"top_p", 0, 1, FieldReader::Bound::kOpen, &SamplingParams::top_p},
    {"min_p", 0, 1, FieldReader::Bound::kClosed, &SamplingParams::min_p},
    {"repetition_penalty", 0, 10, FieldReader::Bound::kOpen, &SamplingParams::repetition_penalty},
    {"presence_penalty", -2, 2, FieldReader::Bound::kClosed, &SamplingParams::presence_penalty},
    {"frequency_penalty", -2, 2, FieldReader::Bound::kClosed, &SamplingParams::frequency_penalty},
};

Status bad_bias_key(const std::string& key, uint32_t vocab_size) {
  return invalid_argument("logit_bias keys must be token ids in [0, " +
                              std::to_string(vocab_size - 1) + "]; got \"" +
                              printable_excerpt(key, kExcerptBytesMax) + "\"",
                          "logit_bias");
}

Status parse_logit_bias(const FieldReader& fields, uint32_t vocab_size, SamplingParams& out) {
  const Json* value = fields.find("logit_bias");
  if (value == nullptr) return ok_status();
  if (!value->is_object()) {
    return bad_value("logit_bias", "must be an object of token ids and biases", *value);
  }
  for (const auto& [key, bias] : value->items()) {
    uint32_t token = 0;
    const char* end = key.data() + key.size();
    const auto parsed = std::from_chars(key.data(), end, token);
    // The canonical spelling only, so that no token can be named twice.
    const bool canonical =
        parsed.ec == std::errc() && parsed.ptr == end && (key.size() == 1 || key[0] != '0');
    if (!canonical || token >= vocab_size) return bad_bias_key(key, vocab_size);
    const double number = bias.is_number() ? bias.get<double>() : 2 * kLogitBiasMax;
    if (!(number >= -kLogitBiasMax && number <= kLogitBiasMax)) {
      Status status =
          bad_value("logit_bias[\"" + key + "\"]", "must be a number in [-100, 100]", bias);
      return {status.code(), status.message(), "logit_bias"};
    }
    out.logit_bias.emplace_back(static_cast<TokenId>(token), static_cast<float>(number));
  }
  std::sort(out.logit_bias.begin(), out.logit_bias.end());
  return ok_status();
}

Status parse_token_ids(const FieldReader& fields, const char* name, size_t count_max,
                       uint32_t vocab_size, std::vector<TokenId>& out) {
  const Json* value = fields.find(name);
  if (value == nullptr) return ok_status();
  if (!value->is_array() || value->size() > count_max) {
    return bad_value(
        name, "must be an array of at most " + std::to_string(count_max) + " token ids", *value);
  }
  for (size_t i = 0; i < value->size(); ++i) {
    const Json& id = (*value)[i];
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab_size) {
      return bad_value(std::string(name) + "[" + std::to_string(i) + "]",
                       "must be a token id in [0, " + std::to_string(vocab_size - 1) + "]", id);
    }
    out.push_back(static_cast<TokenId>(id.get<uint64_t>()));
  }
  return ok_status();
}

Status parse_allowed_tokens(const FieldReader& fields, uint32_t vocab_size, SamplingParams& out) {
  std::vector<TokenId>& tokens = out.allowed_tokens;
  TROUPE_RETURN_IF_ERROR(
      parse_token_ids(fields, "allowed_token_ids", vocab_size, vocab_size, tokens));
  if (fields.find("allowed_token_ids") != nullptr && tokens.empty()) {
    return invalid_argument("allowed_token_ids must name at least one token, or be left out",
                            "allowed_token_ids");
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return ok_status();
}

}  // namespace

Status parse_sampling_fields(const FieldReader& fields, uint32_t vocab_size, SamplingParams& out) {
  for (const RealField& field : kRealFields) {
    TROUPE_RETURN_IF_ERROR(
        fields.read(field.name, field.low, field.high, out.*field.member, field.low_rule));
  }
  std::optional<int64_t> top_k;
  TROUPE_RETURN_IF_ERROR(fields.read("top_k", -1, INT32_MAX, top_k));
  // -1 and 0 both mean off.
  if (top_k) out.top_k = static_cast<int32_t>(std::max<int64_t>(*top_k, 0));
  std::optional<int64_t> min_tokens;
  TROUPE_RETURN_IF_ERROR(fields.read("min_tokens", 0, INT32_MAX, min_tokens));
  if (min_tokens) out.min_tokens = static_cast<uint32_t>(*min_tokens);
  TROUPE_RETURN_IF_ERROR(fields.read("ignore_eos", out.ignore_eos));
  TROUPE_RETURN_IF_ERROR(parse_logit_bias(fields, vocab_size, out));
  TROUPE_RETURN_IF_ERROR(parse_allowed_tokens(fields, vocab_size, out));
  return parse_token_ids(fields, "stop_token_ids", kStopTokenIdsMax, vocab_size,
                         out.stop_token_ids);
}

Status parse_seed(const FieldReader& fields, std::optional<uint64_t>& out) {
  const Json* value = fields.find("seed");
  if (value == nullptr) return ok_status();
  if (!value->is_number_integer()) {
    return bad_value("seed", "must be an integer of 64 bits", *value);
  }
  out = value->is_number_unsigned() ? value->get<uint64_t>()
                                    : static_cast<uint64_t>(value->get<int64_t>());
  return ok_status();
}

std::string sampling_rule(std::string_view name) {
  for (const RealField& field : kRealFields) {
    if (field.name != name) continue;
    const char* open = field.low_rule == FieldReader::Bound::kClosed ? "[" : "(";
    return std::string("must be a number in ") + open + format_number(field.low) + ", " +
           format_number(field.high) + "]";
  }
  for (const char* integer : {"max_tokens", "max_completion_tokens", "min_tokens", "n", "seed",
                              "top_k", "top_logprobs"}) {
    if (name == integer) return "must be an integer";
  }
  return {};
}

}  // namespace troupe
