#pragma once
#include <cstdint>
#include <string>

namespace troupe {

// A command that shows that the server answers: "curl http://…". A model that has no chat template
// only completes. Where a key is needed, the command takes it from the shell's TROUPE_API_KEY.
[[nodiscard]] std::string ready_text(const std::string& host, uint16_t port,
                                     const std::string& model, bool chats, bool needs_key);

}  // namespace troupe
