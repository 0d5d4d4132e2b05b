// Images as groups of channels, in the three orders their memory may have, so that a kernel is written once
// for all of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/simd/own_kernels.h"
#include "backend/cpu/simd/simd.h"
#include "tensor/shape.h"

namespace limber::own {

inline constexpr int64_t kGroupWidth = 16;  // the most channels a group has

// x[N,C,spatial..] cut into groups of channels; a panel is one group of one image.
struct ChannelGroups {
  int64_t images, channels, pixels;
  ChannelOrder order;
  int64_t block;  // channels per group in memory; the last group of kBlocked is padded, of kLast shorter

  ChannelGroups(const Shape& shape, ChannelOrder channel_order)
      : images(shape.dim(0)),
        channels(shape.dim(1)),
        pixels(1),
        order(channel_order),
        block(order == ChannelOrder::kPlanes     ? 1
              : order == ChannelOrder::kBlocked8 ? 8
                                                 : kGroupWidth) {
    for (int i = 2; i < shape.rank(); ++i) pixels *= shape.dim(i);
  }

  int64_t groups() const { return (channels + block - 1) / block; }
  int64_t first(int64_t group) const { return group * block; }
  int64_t count(int64_t group) const { return std::min(block, channels - first(group)); }  // real channels
  // Elements from one pixel to the next, and channels side by side in memory, padding included.
  int64_t stride() const { return order == ChannelOrder::kLast ? channels : block; }
  int64_t width(int64_t group) const { return order == ChannelOrder::kLast ? count(group) : block; }
  int64_t offset(int64_t image, int64_t group) const {
    if (order == ChannelOrder::kLast) return image * pixels * channels + first(group);
    return (image * groups() + group) * pixels * block;
  }
  ChannelPanel panel(int64_t group) const {
    return {pixels, stride(), width(group), order == ChannelOrder::kPlanes};
  }
};

}  // namespace limber::own
