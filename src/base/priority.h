// How a thread stands back for others. On Linux a priority belongs to a thread; threads that it starts
// inherit it.
#pragma once

namespace limber {

// The calling thread runs after all that have their usual priority, and gets a little beside them.
void run_in_background();
// The calling thread runs when a core would be idle; where that is not allowed, in the background.
void run_when_idle();

// Seconds of a processor that the calling thread has used.
double thread_cpu_seconds();

}  // namespace limber
