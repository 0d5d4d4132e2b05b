// A stream that is read can be written in the same words, and then reads as the same stream.
#include <cstdint>
#include <string_view>

#include "data/stream_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  const auto spec = parse_stream({reinterpret_cast<const char*>(data), size});
  if (!spec.ok()) return 0;
  const auto again = parse_stream(format_stream(*spec));
  LIMBER_ASSERT(again.ok() && *again == *spec);
  return 0;
}
