#pragma once
// Bounds of tool calling.

#include <cstddef>
#include <cstdint>

namespace troupe {

// Tools that one request may offer, and bytes of a tool's name; more are refused with 400.
inline constexpr size_t kToolsMax = 128;
inline constexpr size_t kToolNameBytesMax = 64;
// Levels of arrays and objects in the arguments of a call; a deeper one is malformed.
inline constexpr size_t kCallDepthMax = 64;
// Calls in one choice; a further one is text.
inline constexpr uint32_t kCallsMax = 128;

}  // namespace troupe
