// From a decoded image to a network's input, with the usual random changes for training.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/random.h"
#include "data/image.h"

namespace limber {

struct AugmentOptions {
  int height = 32;
  int width = 32;
  int channels = 3;  // 3, or 1 for luma; grey images fill all three
  Normalisation normalisation;
  // The shorter side is scaled to this before height x width are cut out; at least max(height, width).
  // 0: scaled until the image just covers height x width, so an image of that size stays as it is.
  int resize = 0;

  // Training only. A factor f below is drawn from [1 - f, 1 + f], once an image.
  int padding = 0;        // black pixels around the image that a random cut may reach into
  double min_area = 1;    // below 1: cuts out min_area..1 of the image, 3:4 to 4:3, and scales that instead
  double flip = 0;        // probability of mirroring left to right
  double brightness = 0;  // 0..1
  double contrast = 0;    // 0..1, about the image's mean luma
  double saturation = 0;  // 0..1
  int cutout = 0;         // side of a square set to the mean; its centre is anywhere in the image
};

// What makes the training version of an image differ from one epoch to the next, beside where it is cut, by
// the name of the command's option; empty: nothing does.
std::string_view random_change(const AugmentOptions& options);

// Holds no state that changes: any thread may use it at any time.
class Augmenter {
 public:
  static Result<Augmenter> make(const AugmentOptions& options);

  const AugmentOptions& options() const { return options_; }
  size_t output_size() const;  // channels * height * width

  // `image` is u8[H,W,3] or u8[H,W,1]; `chw` is written completely. Fails when the image cannot be scaled
  // to cover the output within kMaxImageSide. REQUIRES: chw.size() == output_size()
  Status train(const Tensor& image, Random& random, std::span<float> chw) const;
  Status evaluate(const Tensor& image, std::span<float> chw) const;  // the middle, nothing random

  // What each channel makes of a byte.
  using Tables = std::array<std::array<float, 256>, 3>;

 private:
  explicit Augmenter(const AugmentOptions& options);
  // Scaled as `resize` says.
  Result<Tensor> fit(const Tensor& image) const;
  Result<Tensor> random_area(const Tensor& image, Random& random) const;
  Status jitter(Tensor& image, Random& random, Tables& tables) const;
  void cut_out(Random& random, std::span<float> chw) const;

  AugmentOptions options_;
  Tables tables_;
};

}  // namespace limber
