// Images in: files to pixels, and the usual way from pixels to a network's input.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace limber {

// Pixels. A hundred million are more than any camera takes, and 300 MB of RGB.
inline constexpr int kMaxImageSide = 16384;
inline constexpr int64_t kMaxImagePixels = int64_t{100} << 20;

// u8[H,W,3], RGB, turned upright where the file says how it was taken. Grey images get three equal channels,
// an alpha channel is dropped, 16-bit samples keep their high byte, as Pillow's convert("RGB") does; of
// several pages the first is read. Untrusted bytes: anything that is not an image within the limits above is
// a Status.
Result<Tensor> decode_image(std::span<const std::byte> bytes);
// The message of a failure starts with the path.
Result<Tensor> load_image(const std::string& path);
bool is_image_name(std::string_view path);  // by extension, of any kind that is read
std::string_view image_kinds();             // "JPEG, PNG ...", for people

// u8[H,W,C] -> u8[height,width,C]: bilinear with half-pixel centres; the filter widens with the scale
// when shrinking, so nothing aliases (what Pillow and torchvision do to images).
Result<Tensor> resize(const Tensor& image, int height, int width);
// The same with the shorter side at `side` and the aspect ratio kept.
Result<Tensor> resize_shorter(const Tensor& image, int side);
// The middle of the image. Fails when the image is smaller.
Result<Tensor> crop_centre(const Tensor& image, int height, int width);

struct Normalisation {
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> std{1, 1, 1};
  bool operator==(const Normalisation&) const = default;
};
// Pixels scaled to 0..1, then (x - mean) / std, written planar (CHW) to `chw`. `channels` is 3, or 1 for
// luma (ITU-R 601), which uses mean[0] and std[0]. REQUIRES: chw holds channels * H * W floats
void normalise(const Tensor& image, int channels, const Normalisation& how, std::span<float> chw);

// An RGB image drawn from a seed (gradients, discs, noise), for demonstrations and tests.
Result<Tensor> draw_image(int height, int width, uint64_t seed);
// u8[H,W,3] as PNG.
Result<std::string> encode_png(const Tensor& image);

}  // namespace limber
