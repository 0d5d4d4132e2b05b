// Classifies an image with any ONNX model that takes one image [N,3,H,W] and gives class scores.
//
//   classify MODEL [IMAGE.ppm]
//
// MODEL is an ONNX file or builtin:resnet8. IMAGE is a binary PPM file; without one a gradient is used.
#include <limber/limber.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace {

struct Image {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> rgb;
};

Image gradient() {
  Image image{64, 64, {}};
  for (int64_t y = 0; y < 64; ++y) {
    for (int64_t x = 0; x < 64; ++x) {
      for (const int64_t level : {4 * x, 4 * y, 255 - 4 * x})
        image.rgb.push_back(static_cast<uint8_t>(level));
    }
  }
  return image;
}

bool read_ppm(const char* path, Image& image) {
  std::ifstream file(path, std::ios::binary);
  std::string magic;
  int levels = 0;
  file >> magic >> image.width >> image.height >> levels;
  file.get();
  if (!file || magic != "P6" || levels != 255 || image.width < 1 || image.height < 1 || image.width > 16384 ||
      image.height > 16384) {
    return false;
  }
  image.rgb.resize(static_cast<size_t>(3 * image.width * image.height));
  file.read(reinterpret_cast<char*>(image.rgb.data()), static_cast<std::streamsize>(image.rgb.size()));
  return file.good() || file.eof();
}

// Nearest pixel, scaled to 0..1, planar.
void fill(const limber::TensorView& input, const Image& image) {
  const int64_t height = input.dims[2], width = input.dims[3];
  float* out = input.as<float>().data();
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const int64_t from = (y * image.height / height) * image.width + x * image.width / width;
        *out++ = static_cast<float>(image.rgb[static_cast<size_t>(3 * from + c)]) / 255.F;
      }
    }
  }
}

int fail(const std::string& message) {
  std::fprintf(stderr, "classify: %s\n", message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return fail("usage: classify MODEL [IMAGE.ppm]");
  Image image = gradient();
  if (argc > 2 && !read_ppm(argv[2], image)) return fail(std::string(argv[2]) + " is not a binary PPM image");

  auto model = limber::Model::load(argv[1]);
  if (!model) return fail(model.error().message());
  auto session = model->compile({.threads = 2});
  if (!session) return fail(session.error().message());

  const limber::TensorView input = session->inputs()[0];
  if (input.dims.size() != 4 || input.dims[1] != 3 || input.as<float>().empty()) {
    return fail("'" + input.name + "' is not an RGB image input");
  }
  fill(input, image);
  if (limber::Error error = session->run(); !error.ok()) return fail(error.message());

  const auto scores = session->outputs()[0].as<float>();
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t i = 0; i < std::min<size_t>(5, order.size()); ++i) {
    std::printf("class %zu: %.4f\n", order[i], scores[order[i]]);
  }
  return 0;
}
