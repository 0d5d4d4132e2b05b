#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace limber {

void assert_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\nThis is a bug in Limber; please report it.\n", file,
               line, expression);
  std::abort();
}

}  // namespace limber
