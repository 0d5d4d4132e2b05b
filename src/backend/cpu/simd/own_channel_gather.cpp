// Some channels of images, for every order of channels.
#include "backend/cpu/simd/channels.h"
#include "backend/cpu/simd/own_families.h"

namespace limber::own {
namespace {

struct ChannelGather {
  ChannelGroups from, to;

  void run(const KernelIo& io) const {
    const int64_t panels = to.images * to.groups();
    parallel_for(panels, row_grain(to.pixels * to.block), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) panel(io, i / to.groups(), i % to.groups());
    });
  }

 private:
  void panel(const KernelIo& io, int64_t image, int64_t group) const {
    float* y = io.out<float>(0) + to.offset(image, group);
    const float* lanes[kGroupWidth];
    const int64_t count = to.count(group);
    for (int64_t k = 0; k < count; ++k) lanes[k] = lane(io, image, to.first(group) + k);
    const int64_t step = from.stride(), width = to.width(group);
    for (int64_t p = 0; p < to.pixels; ++p, y += to.stride()) {
      for (int64_t k = 0; k < count; ++k) y[k] = lanes[k][p * step];
      for (int64_t k = count; k < width; ++k) y[k] = 0;
    }
  }

  const float* lane(const KernelIo& io, int64_t image, int64_t channel) const {
    const int64_t wanted = io.in<int64_t>(1)[channel];
    const int64_t source =
        std::clamp<int64_t>(wanted < 0 ? wanted + from.channels : wanted, 0, from.channels - 1);
    const int64_t group = source / from.block;
    return io.in<float>(0) + from.offset(image, group) + source - from.first(group);
  }
};

}  // namespace

KernelPtr make_channel_gather(const Graph& graph, const Node& node, ChannelOrder order) {
  const TensorType &x = input_type(graph, node, 0), &indices = input_type(graph, node, 1);
  const bool channels = node.attrs.i("axis") == 1 && x.rank() >= 3 && indices.rank() == 1;
  if (!channels || x.dtype != DType::kF32 || indices.dtype != DType::kI64 || x.shape.dim(1) == 0)
    return nullptr;
  const ChannelGather gather{ChannelGroups(x.shape, order),
                             ChannelGroups(output_type(graph, node).shape, order)};
  return make_kernel([gather](const KernelIo& io) { gather.run(io); });
}

}  // namespace limber::own
