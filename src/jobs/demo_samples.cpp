#include "jobs/demo_samples.h"

#include <cstring>

#include "data/dataset.h"
#include "data/image.h"

namespace limber {

Result<std::string> draw_samples(const std::string& above, const std::string& below) {
  Tensor whole;
  int64_t row = 0;
  for (const std::string& spec : {above, below}) {
    LIMBER_ASSIGN(const auto data, open_dataset(spec, {.split = Split::kTest}));
    const size_t classes = data->class_names().size();
    for (size_t i = 0; i < classes; ++i) {
      LIMBER_ASSIGN(const Sample sample, data->get(i));
      const int64_t height = sample.image.type().shape[0].value(),
                    width = sample.image.type().shape[1].value();
      const int64_t stride = 3 * width * static_cast<int64_t>(classes);
      if (!whole.valid()) {
        LIMBER_ASSIGN(whole, Tensor::zeros({DType::kU8, Shape{2 * height, stride / 3, 3}}));
      }
      for (int64_t y = 0; y < height; ++y)
        std::memcpy(
            whole.data<uint8_t>().data() + (row * height + y) * stride + 3 * width * static_cast<int64_t>(i),
            sample.image.data<uint8_t>().data() + 3 * width * y, static_cast<size_t>(3 * width));
    }
    ++row;
  }
  return encode_png(whole);
}

}  // namespace limber
