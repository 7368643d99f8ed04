#pragma once
// A call in a copy of this process, for code that may end it.

#include <functional>
#include <optional>

#include "base/clock.h"

namespace troupe {

// What `call` returns there, modulo 128; nothing when it ended the copy (a signal, an assertion) or
// took longer than `patience`, and when there is no copy to be had. The copy has the calling thread
// alone: `call` waits for no other and writes nothing that is shared.
[[nodiscard]] std::optional<int> call_in_fork(const std::function<int()>& call, Duration patience);

}  // namespace troupe
