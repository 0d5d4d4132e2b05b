// How long threads of the program wait for work before they sleep.
//
// libgomp takes that from the environment alone, once, before main() begins, and its own choice, 300,000
// turns of a loop or some milliseconds, is ruinous as soon as another process wants the cores: a thread that
// spins keeps the one it waits for from running. A program owns its process, so it may answer for the
// environment. The library must not; it leaves its host's OpenMP alone, and this file is linked into the
// program only.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

// About 30 us. Beside one or two busy processes 3,000 made inference 1.2 to 2 times slower than 1,000; on a
// quiet machine with two threads 1,000, 2,000 and 4,000 differ by less than 1 % in inference and 2 % in
// training.
char turns[] = "1000";

char* find(const char* name) {
  const size_t length = std::strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

}  // namespace

// Stands before libc's for all that is loaded: the same, but that GOMP_SPINCOUNT has a default where nothing
// else says how to wait.
extern "C" __attribute__((visibility("default"))) char* getenv(const char* name) noexcept {
  char* const value = find(name);
  const bool decides = std::strcmp(name, "GOMP_SPINCOUNT") == 0 && find("OMP_WAIT_POLICY") == nullptr;
  return value == nullptr && decides ? turns : value;
}
