// Any bytes: an image within the limits or a Status. What decodes can be resized and fed to a model.
#include <cstdint>
#include <span>
#include <vector>

#include "data/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  const auto image = decode_image(std::as_bytes(std::span(data, size)));
  if (!image.ok()) return 0;
  LIMBER_ASSERT(image->shape().rank() == 3 && image->shape().dim(2) == 3);
  const auto small = resize(*image, 5, 7);
  LIMBER_ASSERT(small.ok());
  std::vector<float> planes(3 * 5 * 7);
  normalise(*small, 3, {}, planes);
  return 0;
}
