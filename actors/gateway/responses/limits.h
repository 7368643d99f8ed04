#pragma once
// Bounds of /v1/responses, each with its answer.

#include <cstddef>

namespace troupe {

// Stored responses, and their bytes; beyond either the least recently used are dropped, and a later
// request that names one of them is answered 404.
inline constexpr size_t kStoredResponsesMax = 1024;
inline constexpr size_t kStoredResponseBytesMax = size_t{64} << 20;
// Of `metadata`: pairs, and bytes of a key and of a value; more are refused with 400.
inline constexpr size_t kMetadataPairsMax = 16;
inline constexpr size_t kMetadataKeyBytesMax = 64;
inline constexpr size_t kMetadataValueBytesMax = 512;

}  // namespace troupe
