// What is read can be written, and then reads as the same tensor.
#include <cstdint>
#include <span>

#include "tensor/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  const auto tensor = parse_npy(std::as_bytes(std::span(data, size)));
  if (!tensor.ok()) return 0;
  const auto text = format_npy(*tensor);
  LIMBER_ASSERT(text.ok());
  const auto again = parse_npy(std::as_bytes(std::span(*text)));
  LIMBER_ASSERT(again.ok() && again->type() == tensor->type());
  LIMBER_ASSERT(std::memcmp(again->raw(), tensor->raw(), tensor->bytes()) == 0);
  return 0;
}
