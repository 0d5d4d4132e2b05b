// Private to this folder.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace limber {

// u8[H,W,3] as a baseline JPEG with the colours at half the resolution. REQUIRES: 1 <= quality <= 100
Result<std::string> encode_jpeg(const Tensor& image, int quality);

}  // namespace limber
