#pragma once
// The limits of the load generator; the answer when one is hit stands beside each.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::loadgen {

// One event of a stream, and a whole answer that is not a stream; a longer one fails its request.
inline constexpr size_t kEventBytesMax = size_t{4} << 20;
inline constexpr size_t kAnswerBytesMax = size_t{16} << 20;
// Of one answer's text, kept for the next turn and for counting; what is beyond is dropped.
inline constexpr size_t kAnswerTextBytesMax = size_t{1} << 20;
// Chunks of one stream whose times are kept; more fail the request.
inline constexpr size_t kChunksMax = size_t{1} << 20;

// Requests of one run; more are refused with the options.
inline constexpr uint64_t kRequestsMax = 10'000'000;
inline constexpr uint32_t kConcurrencyMax = 65536;
inline constexpr uint32_t kTurnsMax = 1000;
inline constexpr uint32_t kTokensMax = 4'000'000;  // of one prompt, or one answer

// A file of prompts, and one line of it; longer ones are refused.
inline constexpr size_t kPromptFileBytesMax = size_t{1} << 30;
inline constexpr size_t kPromptLineBytesMax = size_t{16} << 20;

// Tries of one request that was answered 429, the first included, when retries are on; after them
// it has failed. Nobody waits longer than this between two.
inline constexpr uint32_t kTriesMax = 6;
inline constexpr std::chrono::seconds kRetryWaitMax{60};
inline constexpr std::chrono::seconds kRetryWaitDefault{1};  // without Retry-After

// For each question that is not part of the load: the model's name, token counts.
inline constexpr std::chrono::seconds kQuestionDeadline{20};
// Errors of one kind whose words are kept.
inline constexpr size_t kErrorSampleBytesMax = 300;

// How often the event loop's lateness is looked at.
inline constexpr std::chrono::milliseconds kLagInterval{10};

}  // namespace troupe::loadgen
