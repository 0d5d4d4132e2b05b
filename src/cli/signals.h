// Ctrl-C, SIGTERM and a closed terminal: long work stops at the next good place.
#pragma once

#include <atomic>

namespace limber {

// True once one of them came.
std::atomic<bool>& stop_asked();
// From now on the first signal asks; the second finds the system's own handler and ends the process.
void catch_stop_signals();
// From now on SIGHUP is counted here, and asks for nothing else: for what reads its file again.
const std::atomic<int>& count_hangups();

}  // namespace limber
