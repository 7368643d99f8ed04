#pragma once

namespace troupe {

// Lets the calling thread run before the computing ones when cores are short: for threads that
// sleep nearly always and whose lateness others take for death. Does nothing where the system does
// not allow it (it takes CAP_SYS_NICE, or a limit of `nice` for the user); returns whether it did.
bool prefer_this_thread();

}  // namespace troupe
