#include "actors/gateway/openai/embeddings_request.h"

#include <utility>

#include "actors/gateway/openai/common_fields.h"
#include "actors/gateway/openai/model_catalogue.h"
#include "actors/gateway/openai/request_limits.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kFields[] = {
    {"model", kUsed, "a name that `GET /v1/models` lists"},
    {"input", kUsed, "a string, an array of strings, of token ids, or of arrays of token ids"},
    {"dimensions", kUsed, "the first so many values, of the unit length again; 1 to the width"},
    {"encoding_format", kUsed, "`float` or `base64`: 32-bit floats, little-endian"},
    {"pooling", kUsed, "ours: `mean` of all tokens' final states (the default), or `last`"},
    {"normalize", kUsed, "vLLM's; `false` leaves the vectors as long as they are"},
    {"truncate_prompt_tokens", kUsed,
     "vLLM's: the last so many tokens of each input; -1: what fits"},
    {"add_special_tokens", kUsed, "vLLM's; whether a text gets the model's begin token"},
    {"cache_salt", kUsed, "vLLM's; shares cached prefixes only within one salt"},
    {"priority", kUsed, "0 only"},
    {"user", kTolerated, ""},
    {"messages", kUnsupported, "vLLM's; render the text by `/tokenize` and send its tokens"},
    {"chat_template", kUnsupported, ""},
    {"chat_template_kwargs", kUnsupported, ""},
    {"add_generation_prompt", kUnsupported, ""},
    {"continue_final_message", kUnsupported, ""},
    {"mm_processor_kwargs", kUnsupported, ""},
    {"embed_dtype", kUnsupported, ""},
    {"endianness", kUnsupported, ""},
    {"input_type", kUnsupported, ""},
    {"truncation_side", kUnsupported, ""},
    {"use_activation", kUnsupported, "say `normalize`"},
    {"softmax", kUnsupported, ""},
};

std::string input_path(const EmbeddingsBody& body, size_t index) {
  return body.one_input ? "input" : "input[" + std::to_string(index) + "]";
}

Status parse_one(const Json& value, const std::string& path, const RequestRules& rules,
                 EmbeddingsBody& out) {
  RawPrompt input;
  if (value.is_string()) {
    input.text = value.get_ref<const std::string&>();
    if (input.text.empty()) return invalid_argument(path + " must not be empty", path);
  } else if (value.is_array() && !value.empty()) {
    input.is_tokens = true;
    TROUPE_ASSIGN_OR_RETURN(input.tokens, parse_token_array(value, path, rules));
  } else {
    return bad_value(path, "must be a non-empty string or a non-empty array of token ids", value);
  }
  out.inputs.push_back(std::move(input));
  return ok_status();
}

Status parse_input(const FieldReader& fields, const RequestRules& rules, EmbeddingsBody& out) {
  const Json* value = fields.find("input");
  if (value == nullptr) {
    return invalid_argument("input is missing; send a string or an array of strings", "input");
  }
  const bool many = value->is_array() && !value->empty() &&
                    (value->front().is_string() || value->front().is_array());
  out.one_input = !many;
  if (!many) return parse_one(*value, "input", rules, out);
  if (value->size() > kEmbeddingInputsMax) {
    return invalid_argument("input must have at most " + std::to_string(kEmbeddingInputsMax) +
                                " elements; got " + std::to_string(value->size()),
                            "input");
  }
  for (size_t i = 0; i < value->size(); ++i) {
    TROUPE_RETURN_IF_ERROR(parse_one((*value)[i], input_path(out, i), rules, out));
  }
  return ok_status();
}

// One of two words; absent leaves `out` as it is. `second` is true of the latter.
Status parse_word(const FieldReader& fields, const char* name, const char* first,
                  const char* second, bool& is_second) {
  const Json* value = fields.find(name);
  if (value == nullptr) return ok_status();
  if (*value != first && *value != second) {
    return bad_value(name, std::string("must be \"") + first + "\" or \"" + second + "\"", *value);
  }
  is_second = *value == second;
  return ok_status();
}

Status parse_options(const FieldReader& fields, const RequestRules& rules, EmbeddingsBody& out) {
  bool last = false;
  TROUPE_RETURN_IF_ERROR(parse_word(fields, "pooling", "mean", "last", last));
  if (last) out.pooling = Pooling::kLast;
  TROUPE_RETURN_IF_ERROR(parse_word(fields, "encoding_format", "float", "base64", out.base64));
  TROUPE_RETURN_IF_ERROR(fields.read("normalize", out.normalize));
  TROUPE_RETURN_IF_ERROR(fields.read("add_special_tokens", out.add_special_tokens));
  std::optional<int64_t> dimensions;
  TROUPE_RETURN_IF_ERROR(fields.read("dimensions", 1, rules.embedding_width, dimensions));
  if (dimensions) out.dimensions = static_cast<uint32_t>(*dimensions);
  TROUPE_RETURN_IF_ERROR(
      fields.read("truncate_prompt_tokens", -1, rules.context_tokens, out.truncate));
  if (out.truncate == 0) {
    return bad_value("truncate_prompt_tokens", "must be at least 1, or -1 for what fits",
                     *fields.find("truncate_prompt_tokens"));
  }
  TROUPE_RETURN_IF_ERROR(check_priority(fields));
  return parse_cache_salt(fields, out.cache_salt);
}

}  // namespace

std::span<const KnownField> embeddings_fields() {
  return kFields;
}

Result<EmbeddingsBody> parse_embeddings_body(std::string_view body,
                                             std::span<const RequestRules> models) {
  TROUPE_ASSIGN_OR_RETURN(const Json object, parse_object(body));
  TROUPE_RETURN_IF_ERROR(check_known_fields(object, "", kFields));
  const FieldReader fields(object, "");
  EmbeddingsBody out;
  TROUPE_ASSIGN_OR_RETURN(out.model, find_model(fields, models, ModelField::kRequired));
  TROUPE_RETURN_IF_ERROR(parse_options(fields, models[out.model], out));
  TROUPE_RETURN_IF_ERROR(parse_input(fields, models[out.model], out));
  return out;
}

Result<std::vector<std::vector<TokenId>>> encode_inputs(const EmbeddingsBody& body,
                                                        const CataloguedModel& model) {
  const size_t context = model.served().context_tokens;
  const BeginToken begin =
      body.add_special_tokens ? BeginToken::kAsTheModelAsks : BeginToken::kNone;
  std::vector<std::vector<TokenId>> out;
  size_t total = 0;
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const std::string path = input_path(body, i);
    std::vector<TokenId> tokens = body.inputs[i].tokens;
    if (!body.inputs[i].is_tokens) {
      Result<std::vector<TokenId>> encoded =
          model.encoder().encode_text(body.inputs[i].text, begin);
      if (!encoded.ok()) {
        const Status& status = encoded.status();
        return Status(status.code(), path + ": " + status.message(), path);
      }
      tokens = std::move(encoded).value();
    }
    if (body.truncate) {
      const size_t keep = *body.truncate < 0 ? context : static_cast<size_t>(*body.truncate);
      if (tokens.size() > keep) {
        tokens.erase(tokens.begin(), tokens.end() - static_cast<ptrdiff_t>(keep));
      }
    }
    if (tokens.empty()) return invalid_argument(path + " has no tokens", path);
    if (tokens.size() > context) {
      return Status(StatusCode::kContextLength,
                    path + " has " + std::to_string(tokens.size()) +
                        " tokens; this model's context is " + std::to_string(context) +
                        "; shorten it or send truncate_prompt_tokens",
                    path);
    }
    total += tokens.size();
    if (total > kPromptBatchTokensMax) {
      return invalid_argument("input has more than " + std::to_string(kPromptBatchTokensMax) +
                                  " tokens in all; send it in several requests",
                              "input");
    }
    out.push_back(std::move(tokens));
  }
  return out;
}

}  // namespace troupe
