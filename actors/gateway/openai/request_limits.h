#pragma once
// Bounds on what one request may ask for; beyond each the answer is 400 naming the field.

#include <cstddef>
#include <cstdint>

namespace troupe {

inline constexpr size_t kCatalogueModelsMax = 64;   // served under one address
inline constexpr uint32_t kJsonDepthMax = 64;       // nested arrays and objects in a body
inline constexpr uint32_t kChoicesMax = 16;         // n
inline constexpr uint32_t kPromptsMax = 128;        // prompts in one completions request
inline constexpr uint32_t kMessagesMax = 4096;      // in one conversation
inline constexpr uint32_t kContentPartsMax = 1024;  // in one message
inline constexpr uint32_t kToolCallsMax = 128;      // in one message
inline constexpr uint32_t kTemplateKwargsMax = 64;  // in chat_template_kwargs
inline constexpr uint32_t kStopsMax = 4;            // stop strings
inline constexpr size_t kStopBytesMax = 1024;       // of one stop string
inline constexpr uint32_t kBadWordsMax = 256;       // bad_words, of kStopBytesMax each
// Entries of logit_bias, of allowed_token_ids, and tokens of bad_words, times choices of all
// prompts: each choice gets a copy.
inline constexpr uint64_t kBiasCopiesMax = uint64_t{1} << 20;
inline constexpr size_t kCacheSaltBytesMax = 256;
inline constexpr uint32_t kCompletionTokensDefault = 16;  // max_tokens of /v1/completions
// Inputs of one embeddings request, and continuations of one score request.
inline constexpr size_t kEmbeddingInputsMax = 2048;
inline constexpr size_t kContinuationsMax = 1024;
// Tokens of all inputs of such a request together: what it may hold in memory and occupy others.
inline constexpr size_t kPromptBatchTokensMax = size_t{1} << 19;
inline constexpr size_t kPromptsAtOnce = 64;    // of one such request, at the workers
inline constexpr size_t kErrorBytesMax = 1024;  // of an error message
inline constexpr size_t kExcerptBytesMax = 64;  // of foreign text quoted in one

}  // namespace troupe
