#pragma once
// The mail that the actor shells of prefill and decode workers share.

#include <caf/atom.hpp>

namespace troupe {

// From the process that ends the worker in order: `drain` first, then `leave` once `idle` answers
// true or patience is at an end.
using DrainAtom = caf::atom_constant<caf::atom("drain")>;  // take nothing new
using IdleAtom = caf::atom_constant<caf::atom("idle")>;    // answered by a bool
using LeaveAtom = caf::atom_constant<caf::atom("leave")>;  // answered by true: the routers are told
using TickAtom = caf::atom_constant<caf::atom("tick")>;

}  // namespace troupe
