// Batch normalisation in training and its gradient, for every order of channels.
#include <cmath>

#include "backend/cpu/simd/channels.h"
#include "backend/cpu/simd/own_families.h"

namespace limber::own {
namespace {

// Calls body(group, each_image) for all groups, with each_image(f) calling f(image) for all images. There is
// either a thread per group or a thread per image; what is summed per image is the same both ways.
template <typename Body>
void for_groups(const ChannelGroups& c, const Body& body) {
  if (c.images == 1 || c.groups() >= 2 * max_threads()) {
    return parallel_for(c.groups(), row_grain(c.images * c.pixels * c.block),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t g = begin; g < end; ++g) {
                            body(g, [&](const auto& f) {
                              for (int64_t i = 0; i < c.images; ++i) f(i);
                            });
                          }
                        });
  }
  for (int64_t g = 0; g < c.groups(); ++g) {
    body(g, [&](const auto& f) {
      parallel_for(c.images, row_grain(c.pixels * c.block), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) f(i);
      });
    });
  }
}

using Lane = float[kGroupWidth];

// Two numbers per channel of a panel, for every image of every group.
struct PanelSums {
  float a[kGroupWidth], b[kGroupWidth];
};
size_t sums_bytes(const ChannelGroups& c) {
  return static_cast<size_t>(c.groups() * c.images) * sizeof(PanelSums);
}

// Mean and M2 of all images from those of each (Chan et al.): exact however large the mean is.
void join_moments(const PanelSums* sums, const ChannelGroups& c, int64_t k, double& mean, double& variance) {
  double count = 0, m2 = 0;
  mean = 0;
  const auto pixels = static_cast<double>(c.pixels);
  for (int64_t i = 0; i < c.images; ++i) {
    const double delta = static_cast<double>(sums[i].a[k]) - mean, total = count + pixels;
    m2 += static_cast<double>(sums[i].b[k]) + delta * delta * count * pixels / total;
    mean += delta * pixels / total;
    count = total;
  }
  variance = m2 / count;
}

// y = x * scale + shift. Made in one way wherever y or its sign is needed, so that all agree to the bit.
struct Affine {
  float scale, shift;
};
Affine affine_of(float scale, float bias, float mean, float inv_std) {
  const float factor = scale * inv_std;
  return {factor, static_cast<float>(static_cast<double>(bias) -
                                     static_cast<double>(mean) * static_cast<double>(factor))};
}

struct TrainingNorm {
  ChannelGroups c;
  const SimdTable& table;
  float epsilon, momentum;
  bool relu, mean_out, inv_std_out;

  void run(const KernelIo& io) const {
    auto* sums = static_cast<PanelSums*>(io.scratch);
    for_groups(c, [&](int64_t g, const auto& each_image) {
      PanelSums* mine = sums + g * c.images;
      const ChannelPanel panel = c.panel(g);
      const float* x = io.in<float>(0);
      each_image([&](int64_t i) {
        const float* at = x + c.offset(i, g);
        table.panel_sum(at, panel, mine[i].a);
        for (int64_t k = 0; k < panel.width; ++k) mine[i].a[k] /= static_cast<float>(c.pixels);
        table.panel_squares(at, panel, mine[i].a, mine[i].b);
      });
      Lane scale{}, shift{};
      for (int64_t k = 0; k < c.count(g); ++k) finish(io, mine, g, k, scale, shift);
      each_image([&](int64_t i) {
        table.panel_affine(x + c.offset(i, g), io.out<float>(0) + c.offset(i, g), panel, scale, shift, relu);
      });
    });
  }

 private:
  void finish(const KernelIo& io, const PanelSums* sums, int64_t g, int64_t k, Lane& scale,
              Lane& shift) const {
    const int64_t channel = c.first(g) + k;
    double mean, variance;
    join_moments(sums, c, k, mean, variance);
    const double inv_std = 1 / std::sqrt(variance + static_cast<double>(epsilon));
    const Affine affine = affine_of(io.in<float>(1)[channel], io.in<float>(2)[channel],
                                    static_cast<float>(mean), static_cast<float>(inv_std));
    scale[k] = affine.scale;
    shift[k] = affine.shift;
    const auto running = [&](int input, int output, double batch) {
      if (io.outputs[static_cast<size_t>(output)] == nullptr) return;
      const float old = io.in<float>(input)[channel];
      io.out<float>(output)[channel] = old * momentum + static_cast<float>(batch) * (1 - momentum);
    };
    running(3, 1, mean);
    running(4, 2, variance);
    if (mean_out) io.out<float>(3)[channel] = static_cast<float>(mean);
    if (inv_std_out) io.out<float>(4)[channel] = static_cast<float>(inv_std);
  }
};

struct AppliedNorm {
  ChannelGroups c;
  const SimdTable& table;
  bool relu;

  void run(const KernelIo& io) const {
    for_groups(c, [&](int64_t g, const auto& each_image) {
      Lane scale{}, shift{};
      for (int64_t k = 0; k < c.count(g); ++k) {
        const int64_t channel = c.first(g) + k;
        const Affine affine = affine_of(io.in<float>(1)[channel], io.in<float>(2)[channel],
                                        io.in<float>(3)[channel], io.in<float>(4)[channel]);
        scale[k] = affine.scale;
        shift[k] = affine.shift;
      }
      each_image([&](int64_t i) {
        const int64_t at = c.offset(i, g);
        table.panel_affine(io.in<float>(0) + at, io.out<float>(0) + at, c.panel(g), scale, shift, relu);
      });
    });
  }
};

struct NormGradient {
  ChannelGroups c;
  const SimdTable& table;
  bool frozen, relu, dx, dscale, dbias;

  void run(const KernelIo& io) const {
    auto* sums = static_cast<PanelSums*>(io.scratch);
    for_groups(c, [&](int64_t g, const auto& each_image) {
      PanelSums* mine = sums + g * c.images;
      const ChannelPanel panel = c.panel(g);
      Lane mean{}, scale{}, shift{}, a{}, b{}, k0{};
      for (int64_t k = 0; k < c.count(g); ++k) {
        const int64_t channel = c.first(g) + k;
        mean[k] = io.in<float>(4)[channel];
        const Affine affine =
            affine_of(io.in<float>(2)[channel], io.in<float>(3)[channel], mean[k], io.in<float>(5)[channel]);
        scale[k] = affine.scale;
        shift[k] = affine.shift;
      }
      const auto gradient = [&](int64_t i) {
        const int64_t at = c.offset(i, g);
        return PanelGradient{io.in<float>(0) + at, io.in<float>(1) + at, mean, scale, shift, relu};
      };
      if (dscale || dbias || !frozen) {
        each_image([&](int64_t i) { table.panel_gradient_sums(gradient(i), panel, mine[i].a, mine[i].b); });
      }
      for (int64_t k = 0; k < c.count(g); ++k) finish(io, mine, g, k, scale[k], a[k], b[k], k0[k]);
      if (!dx) return;
      each_image([&](int64_t i) {
        table.panel_gradient(gradient(i), panel, a, b, k0, io.out<float>(0) + c.offset(i, g));
      });
    });
  }

 private:
  // dx = a * dy + b * x + k0, from the sums of dy and of dy * (x - mean).
  void finish(const KernelIo& io, const PanelSums* sums, int64_t g, int64_t k, float factor, float& a,
              float& b, float& k0) const {
    const int64_t channel = c.first(g) + k;
    const double inv_std = io.in<float>(5)[channel], mean = io.in<float>(4)[channel];
    double sum = 0, dot = 0;
    if (dscale || dbias || !frozen) {
      for (int64_t i = 0; i < c.images; ++i) {
        sum += static_cast<double>(sums[i].a[k]);
        dot += static_cast<double>(sums[i].b[k]);
      }
    }
    if (dscale) io.out<float>(1)[channel] = static_cast<float>(dot * inv_std);
    if (dbias) io.out<float>(2)[channel] = static_cast<float>(sum);
    a = factor;
    if (frozen) return;
    const double count = static_cast<double>(c.images * c.pixels);
    const double slope = -static_cast<double>(factor) * inv_std * inv_std * dot / count;
    b = static_cast<float>(slope);
    k0 = static_cast<float>(-static_cast<double>(factor) * sum / count - slope * mean);
  }
};

}  // namespace

KernelPtr make_batch_norm_training(const Graph& graph, const Node& node, ChannelOrder order) {
  const ChannelGroups c(input_type(graph, node, 0).shape, order);
  if (c.images * c.pixels == 0) return nullptr;
  const TrainingNorm norm{c,
                          simd(),
                          static_cast<float>(node.attrs.f("epsilon")),
                          static_cast<float>(node.attrs.f("momentum")),
                          node.attrs.s("act", "") == "relu",
                          has_output(node, 3),
                          has_output(node, 4)};
  return make_kernel([norm](const KernelIo& io) { norm.run(io); }, sums_bytes(c));
}

KernelPtr make_batch_norm_apply(const Graph& graph, const Node& node, ChannelOrder order) {
  const ChannelGroups c(input_type(graph, node, 0).shape, order);
  if (c.images * c.pixels == 0) return nullptr;
  const AppliedNorm norm{c, simd(), node.attrs.s("act", "") == "relu"};
  return make_kernel([norm](const KernelIo& io) { norm.run(io); });
}

KernelPtr make_batch_norm_backward(const Graph& graph, const Node& node, ChannelOrder order) {
  const ChannelGroups c(input_type(graph, node, 0).shape, order);
  if (c.images * c.pixels == 0) return nullptr;
  const NormGradient gradient{c,
                              simd(),
                              node.attrs.i("frozen", 0) != 0,
                              node.attrs.s("act", "") == "relu",
                              has_output(node, 0),
                              has_output(node, 1),
                              has_output(node, 2)};
  return make_kernel([gradient](const KernelIo& io) { gradient.run(io); }, sums_bytes(c));
}

}  // namespace limber::own
