// The text form of graphs: what parses and verifies prints to text that parses to the same graph.
#include <cstdint>
#include <string_view>

#include "ops/op_def.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  const auto graph = parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!graph.ok() || !verify(*graph).ok()) return 0;
  const auto again = parse(print(*graph));
  LIMBER_ASSERT(again.ok() && hash(*again) == hash(*graph));
  return 0;
}
