// What the process holds in memory.
#pragma once

#include <cstddef>

namespace limber {

// Tells the system that these bytes are not needed soon: pages of a mapped file leave memory and come back
// from the file when they are read. Only a hint; nothing is ever lost.
void page_out(const void* data, size_t bytes);

// Gives the pages of freed heap memory back to the system, where the C library can do that. Takes a moment:
// for after much was freed.
void trim_heap();

// Bytes of this process in memory now, and the most there ever were; 0 where the system does not tell.
struct ProcessMemory {
  size_t resident = 0, peak = 0;
};
ProcessMemory process_memory();

}  // namespace limber
