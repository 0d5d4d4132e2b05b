// Private to this folder: one function per family of corruptions.
#pragma once

#include "base/random.h"
#include "data/picture.h"

namespace limber {

// Which row of constants.
struct Degree {
  int level = 0;       // strength - 1
  bool large = false;  // constants for 224 pixels, not for 32
  template <typename T, size_t n>
  const T& of(const T (&small)[n], const T (&big)[n]) const {
    static_assert(n == 5);
    return (large ? big : small)[level];
  }
};

namespace corruptions {

void gaussian_noise(Picture& picture, Degree degree, Random& random);
void shot_noise(Picture& picture, Degree degree, Random& random);
void impulse_noise(Picture& picture, Degree degree, Random& random);
void speckle_noise(Picture& picture, Degree degree, Random& random);

void defocus_blur(Picture& picture, Degree degree);
void glass_blur(Picture& picture, Degree degree, Random& random);
void motion_blur(Picture& picture, Degree degree, Random& random);
void zoom_blur(Picture& picture, Degree degree);
void gaussian_blur(Picture& picture, Degree degree);

void snow(Picture& picture, Degree degree, Random& random);
void frost(Picture& picture, Degree degree, Random& random);
void fog(Picture& picture, Degree degree, Random& random);
void spatter(Picture& picture, Degree degree, Random& random);

void brightness(Picture& picture, Degree degree);
void contrast(Picture& picture, Degree degree);
void saturate(Picture& picture, Degree degree);
void elastic(Picture& picture, Degree degree, Random& random);
void pixelate(Picture& picture, Degree degree);
Status jpeg(Picture& picture, Degree degree);

}  // namespace corruptions
}  // namespace limber
