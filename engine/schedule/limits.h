#pragma once
// The scheduler's limits, each with its defined answer.

#include <chrono>
#include <cstdint>

namespace troupe {

// Tokens that one step computes, over all its slices; what exceeds it waits for the next step.
inline constexpr uint32_t kStepTokensDefault = 512;
// What a step should take while prompts are computed: see step_pace.h.
inline constexpr std::chrono::milliseconds kStepTimeDefault{100};
// However long it takes, a step computes so many prompt tokens, if there are any: from here on a
// row costs about the same, however many there are …
inline constexpr uint32_t kStepTokensLeast = 64;
// … and as many as finish the prompts that could be computed now in so many steps.
inline constexpr uint32_t kStepsOfQueue = 32;
// A prompt that nobody else's answer or prompt waits for may take so many times as long.
inline constexpr uint32_t kTimesAlone = 4;
// Sequences with blocks, or asking for them; the others wait.
inline constexpr uint32_t kRunningSequencesMax = 256;
// Sequences that wait for admission; add() answers kResourceExhausted beyond it.
inline constexpr uint32_t kWaitingSequencesMax = 4096;
// How often later sequences may be admitted past one that was refused blocks; then nobody passes
// it. (Reserves already on their way when it was refused may pass in addition.)
inline constexpr uint32_t kPassesMax = 16;
// How many refused sequences one turn retries or looks past; those behind wait for them.
inline constexpr uint32_t kRefusedLookPastMax = 8;
// A newcomer is admitted only if one block per running sequence, up to this many, stays available.
inline constexpr uint32_t kSpareBlocksMax = 64;
// A block is asked for when fewer places than this are left in the sequence's blocks, so that it is
// there before the step that needs it.
inline constexpr uint32_t kExtendAheadTokens = 4;

}  // namespace troupe
