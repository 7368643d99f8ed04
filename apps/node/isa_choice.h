#pragma once
// Which instruction set a process computes with.

#include <string>

#include "base/clock.h"
#include "kernels/cpu/isa.h"
#include "troupe/status.h"

namespace troupe {

// What a trial of an instruction set came to.
enum class Trial { kFaster, kSlower, kWrong, kDied };

// Lets `isa` compute linear layers of all packed formats beside `yardstick`, in a copy of this
// process: kWrong unless every bit agrees, kDied when the copy did not survive it. Both must be
// supported. Some milliseconds; `clock` times many rows of 4-bit weights.
[[nodiscard]] Trial try_out(CpuIsa isa, CpuIsa yardstick, const Clock& clock);

// The instruction set of this name, or the best one of "auto". AMX has been held against emulated
// tiles only, so "auto" takes it where it proves itself on the machine at hand: right and faster.
// kInvalidArgument, kUnsupported: the name is unknown, or this machine lacks it.
[[nodiscard]] Result<CpuIsa> choose_isa(const std::string& name, const Clock& clock);

// `asked`, or one for every core that the process may use.
[[nodiscard]] uint32_t choose_threads(uint32_t asked);

}  // namespace troupe
