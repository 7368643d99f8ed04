#pragma once

namespace troupe {

// How a sequence ends when it ends well.
enum class FinishReason {
  kStop,    // an end token, a stop token id, or (decided by the gateway) a stop string
  kLength,  // max_tokens or the context is used up
};

}  // namespace troupe
