// The usual random changes that training makes to images on their way to a network's input.
#pragma once

#include <span>
#include <string_view>

#include "base/random.h"
#include "data/preprocess.h"

namespace limber {

// A factor f below is drawn from [1 - f, 1 + f], once an image.
struct AugmentOptions {
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
  static Result<Augmenter> make(const Preprocess& input, const AugmentOptions& options = {});

  const AugmentOptions& options() const { return options_; }
  size_t output_size() const { return input_.output_size(); }

  // As Preprocessor::apply, with random changes and without.
  Status train(const Tensor& image, Random& random, std::span<float> chw) const;
  Status evaluate(const Tensor& image, std::span<float> chw) const { return input_.apply(image, chw); }

 private:
  Augmenter(Preprocessor input, const AugmentOptions& options)
      : input_(std::move(input)), options_(options) {}
  Result<Tensor> random_area(const Tensor& image, Random& random) const;
  Status jitter(Tensor& image, Random& random, Preprocessor::Tables& tables) const;
  void cut_out(Random& random, std::span<float> chw) const;

  Preprocessor input_;
  AugmentOptions options_;
};

}  // namespace limber
