#include "engine/tokenizer/gguf_tokenizer.h"

#include <string>

#include "engine/model/gguf_file.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {
namespace {

// A file that has no such token leaves the key out.
Status read_id(const GgufFile& file, std::string_view key, TokenId& id) {
  if (!file.has(key)) return ok_status();
  TROUPE_ASSIGN_OR_RETURN(const uint32_t value, file.get_u32(key));
  // Some writers store -1 for "none".
  if (value == ~uint32_t{0}) {
    id = kNoToken;
    return ok_status();
  }
  if (value >= Tokenizer::kMaxTokens)
    return {StatusCode::kDataLoss, file.name() + ": " + std::string(key) + " is " +
                                       std::to_string(value) + ", above any token id that is " +
                                       "possible; get the file anew"};
  id = static_cast<TokenId>(value);
  return ok_status();
}

}  // namespace

Result<TokenizerSpec> tokenizer_spec_of(const GgufFile& file) {
  TokenizerSpec spec;
  TROUPE_ASSIGN_OR_RETURN(spec.model, file.get_string("tokenizer.ggml.model"));
  TROUPE_ASSIGN_OR_RETURN(spec.pre, file.get_string_or("tokenizer.ggml.pre", ""));
  TROUPE_ASSIGN_OR_RETURN(spec.tokens, file.get_strings("tokenizer.ggml.tokens"));
  if (file.has("tokenizer.ggml.token_type")) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int32_t> types,
                            file.get_i32s("tokenizer.ggml.token_type"));
    spec.types.reserve(types.size());
    for (const int32_t type : types) spec.types.push_back(static_cast<TokenType>(type));
  }
  if (file.has("tokenizer.ggml.merges")) {
    TROUPE_ASSIGN_OR_RETURN(spec.merges, file.get_strings("tokenizer.ggml.merges"));
  }
  const bool by_scores = spec.model == "llama";
  if (by_scores) {
    TROUPE_ASSIGN_OR_RETURN(spec.scores, file.get_f32s("tokenizer.ggml.scores"));
    TROUPE_ASSIGN_OR_RETURN(spec.add_space_prefix,
                            file.get_bool_or("tokenizer.ggml.add_space_prefix", true));
    // What SentencePiece numbers them unless a file says otherwise.
    spec.unknown = 0;
    spec.bos = 1;
    spec.eos = 2;
    TROUPE_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.unknown_token_id", spec.unknown));
  }
  TROUPE_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.bos_token_id", spec.bos));
  TROUPE_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.eos_token_id", spec.eos));
  TROUPE_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.eot_token_id", spec.eot));
  TROUPE_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.eom_token_id", spec.eom));
  TROUPE_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.padding_token_id", spec.pad));

  // A name that is not known is the tokenizer's error to report, not this function's.
  const auto rule = find_pre_tokenizer_rule(spec.pre);
  const bool family_adds_bos =
      (by_scores || (rule.ok() && rule.value().adds_bos)) && spec.bos != kNoToken;
  TROUPE_ASSIGN_OR_RETURN(spec.add_bos,
                          file.get_bool_or("tokenizer.ggml.add_bos_token", family_adds_bos));
  TROUPE_ASSIGN_OR_RETURN(spec.add_eos, file.get_bool_or("tokenizer.ggml.add_eos_token", false));
  return spec;
}

}  // namespace troupe
