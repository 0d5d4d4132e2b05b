// What is read can be written, and then reads as the same tensors.
#include <cstdint>
#include <span>

#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  const auto file = parse_safetensors(std::as_bytes(std::span(data, size)), nullptr);
  if (!file.ok()) return 0;
  const auto text = format_safetensors(*file);
  LIMBER_ASSERT(text.ok());
  const auto again = parse_safetensors(std::as_bytes(std::span(*text)), nullptr);
  LIMBER_ASSERT(again.ok() && again->tensors.size() == file->tensors.size());
  return 0;
}
