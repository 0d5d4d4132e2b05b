#include "data/corruptions.h"

#include <algorithm>

#include "base/hash.h"
#include "data/corruption_families.h"

namespace limber {
namespace {

constexpr const char* kFamilies[kCorruptions] = {
    "gaussian-noise", "shot-noise",    "impulse-noise", "defocus-blur", "glass-blur",
    "motion-blur",    "zoom-blur",     "snow",          "frost",        "fog",
    "brightness",     "contrast",      "elastic",       "pixelate",     "jpeg",
    "speckle-noise",  "gaussian-blur", "spatter",       "saturate"};

Status apply(Picture& picture, Corruption kind, Degree degree, Random& random) {
  using namespace corruptions;
  switch (kind) {
    case Corruption::kGaussianNoise:
      return gaussian_noise(picture, degree, random), Status();
    case Corruption::kShotNoise:
      return shot_noise(picture, degree, random), Status();
    case Corruption::kImpulseNoise:
      return impulse_noise(picture, degree, random), Status();
    case Corruption::kDefocusBlur:
      return defocus_blur(picture, degree), Status();
    case Corruption::kGlassBlur:
      return glass_blur(picture, degree, random), Status();
    case Corruption::kMotionBlur:
      return motion_blur(picture, degree, random), Status();
    case Corruption::kZoomBlur:
      return zoom_blur(picture, degree), Status();
    case Corruption::kSnow:
      return snow(picture, degree, random), Status();
    case Corruption::kFrost:
      return frost(picture, degree, random), Status();
    case Corruption::kFog:
      return fog(picture, degree, random), Status();
    case Corruption::kBrightness:
      return brightness(picture, degree), Status();
    case Corruption::kContrast:
      return contrast(picture, degree), Status();
    case Corruption::kElastic:
      return elastic(picture, degree, random), Status();
    case Corruption::kPixelate:
      return pixelate(picture, degree), Status();
    case Corruption::kJpeg:
      return jpeg(picture, degree);
    case Corruption::kSpeckleNoise:
      return speckle_noise(picture, degree, random), Status();
    case Corruption::kGaussianBlur:
      return gaussian_blur(picture, degree), Status();
    case Corruption::kSpatter:
      return spatter(picture, degree, random), Status();
    case Corruption::kSaturate:
      return saturate(picture, degree), Status();
  }
  LIMBER_UNREACHABLE();
}

class Corrupted : public Dataset {
 public:
  Corrupted(std::shared_ptr<const Dataset> inner, Corruption kind, int strength, uint64_t seed)
      : Dataset(inner->class_names()),
        inner_(std::move(inner)),
        kind_(kind),
        strength_(strength),
        seed_(seed) {}
  size_t size() const override { return inner_->size(); }
  int64_t label(size_t index) const override { return inner_->label(index); }
  std::string name(size_t index) const override { return inner_->name(index); }
  Result<Sample> get(size_t index) const override {
    LIMBER_ASSIGN(Sample sample, inner_->get(index));
    const uint64_t seed = Hasher().add(seed_).add(static_cast<uint64_t>(index)).digest();
    LIMBER_ASSIGN(sample.image, apply_corruption(sample.image, kind_, strength_, seed));
    return sample;
  }

 private:
  const std::shared_ptr<const Dataset> inner_;
  const Corruption kind_;
  const int strength_;
  const uint64_t seed_;
};

}  // namespace

const char* corruption_name(Corruption kind) { return kFamilies[static_cast<size_t>(kind)]; }

std::optional<Corruption> find_corruption(std::string_view name) {
  for (int i = 0; i < kCorruptions; ++i) {
    if (name == kFamilies[i]) return static_cast<Corruption>(i);
  }
  return std::nullopt;
}

Result<Tensor> apply_corruption(const Tensor& image, Corruption kind, int strength, uint64_t seed) {
  LIMBER_ASSERT(strength >= 1 && strength <= kStrengths);
  Picture picture = to_picture(image);
  const bool large = std::min(picture[0].height, picture[0].width) >= kLargeImageSide;
  Random random(seed);
  LIMBER_TRY(apply(picture, kind, {strength - 1, large}, random));
  return to_image(picture);
}

std::unique_ptr<Dataset> corrupt_dataset(std::shared_ptr<const Dataset> inner, Corruption kind, int strength,
                                         uint64_t seed) {
  return std::make_unique<Corrupted>(std::move(inner), kind, strength, seed);
}

}  // namespace limber
