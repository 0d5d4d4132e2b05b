// What is read can be written, and then reads as the same.
#include <cstdint>

#include "train/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  const auto manifest = parse_manifest({reinterpret_cast<const char*>(data), size});
  if (!manifest.ok()) return 0;
  const auto again = parse_manifest(format_manifest(*manifest));
  LIMBER_ASSERT(again.ok() && again->info.state == manifest->info.state);
  return 0;
}
