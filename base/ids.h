#pragma once
// The identities that travel through the system. See docs/walkthrough.md for who makes which.

#include <cstdint>

#include "base/strong.h"

namespace troupe {

// Made by the gateway, unique within its incarnation. What a client calls its request is only a
// label for logs.
using RequestId = Strong<struct RequestIdTag, uint64_t>;
// One generated continuation of a request; made by the gateway: a request with n = 4 has four.
using SequenceId = Strong<struct SequenceIdTag, uint64_t>;
// Position of a KV block in its worker's pool.
using BlockIndex = Strong<struct BlockIndexTag, uint32_t>;
inline constexpr BlockIndex kNoBlock{UINT32_MAX};
using WorkerId = Strong<struct WorkerIdTag, uint32_t>;

// An entry of the model's vocabulary. Plain int32, as in every tokenizer file; valid: [0, vocab).
using TokenId = int32_t;

// Tokens of KV in one block: the unit of allocation, caching, transfer and eviction.
inline constexpr uint32_t kBlockTokens = 16;

}  // namespace troupe
