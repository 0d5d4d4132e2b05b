// From a decoded image to a network's input: what is the same in training, evaluation and use. It belongs to
// the model and is saved with it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/image.h"

namespace limber {

struct Preprocess {
  int height = 32;
  int width = 32;
  int channels = 3;  // 3, or 1 for luma; grey images fill all three
  Normalisation normalisation;
  // The shorter side is scaled to this (pixels) before height x width are cut out; at least
  // max(height, width). 0: scaled until the image just covers height x width, so an image of that size stays
  // as it is.
  int resize = 0;

  bool operator==(const Preprocess&) const = default;
};

// kInvalidArgument unless every image can be treated so.
Status check_preprocess(const Preprocess& how);

// --- presets ----------------------------------------------------------------------------------------

// What networks in circulation were trained with.
struct Preset {
  std::string_view name;
  std::string_view meaning;  // one line for people
  Normalisation normalisation;
  // The share of the scaled image's shorter side that is cut out; 1: all of it.
  double share = 1;
};
std::span<const Preset> presets();
// kNotFound naming those there are.
Result<Preset> find_preset(std::string_view name);
// `how` with the preset's normalisation and, if resizing is not asked for otherwise, its share.
void use_preset(const Preset& preset, Preprocess& how);
// The preset that gives just this; "custom" when none does.
std::string_view preset_name(const Preprocess& how);
// "imagenet: 3x224x224 from a shorter side of 256, mean 0.485,0.456,0.406, std 0.229,0.224,0.225".
std::string describe(const Preprocess& how);

// --- applying ---------------------------------------------------------------------------------------

// Holds no state that changes: any thread may use it at any time.
class Preprocessor {
 public:
  static Result<Preprocessor> make(const Preprocess& how);

  const Preprocess& how() const { return how_; }
  size_t output_size() const;  // channels * height * width

  // `image` is u8[H,W,3] or u8[H,W,1]; `chw` is written completely with its middle. Fails when the image
  // cannot be scaled to cover the output within kMaxImageSide. REQUIRES: chw.size() == output_size()
  Status apply(const Tensor& image, std::span<float> chw) const;

  // The steps of apply(), for versions of an image that differ at random (data/augment.h).

  // What each channel makes of a byte.
  using Tables = std::array<std::array<float, 256>, 3>;
  // Where the output lies in an image; parts outside are black.
  struct Window {
    int64_t top;
    int64_t left;
    bool mirrored;
  };
  const Tables& tables() const { return tables_; }
  // Luma where one channel is wanted. The tables widen grey to three.
  Result<Tensor> with_channels(const Tensor& image) const;
  // Scaled as `resize` says.
  Result<Tensor> fit(const Tensor& image) const;
  // Cuts, mirrors, normalises and separates the channels in one pass.
  void write(const Tensor& image, const Window& window, const Tables& tables, std::span<float> chw) const;

 private:
  explicit Preprocessor(const Preprocess& how);

  Preprocess how_;
  Tables tables_;
};

}  // namespace limber
