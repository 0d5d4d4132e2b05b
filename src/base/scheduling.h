// What a thread tells the system of how it wants to be scheduled. Hints: where the system does not take one,
// nothing changes.
#pragma once

namespace limber {

// The calling thread runs when nobody else wants to.
void run_in_background();

// For threads that people wait for. The calling thread, and those it starts, take the processor in short
// turns, so that it need not wait for the end of somebody else's turn, some three milliseconds, when it has
// been idle. Its share of the processor stays what it was. Linux from 6.12 on.
void run_in_short_turns();

}  // namespace limber
