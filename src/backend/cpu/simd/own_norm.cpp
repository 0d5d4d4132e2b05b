#include <cmath>

#include "backend/cpu/simd/own_families.h"

namespace limber::own {
namespace {

// Columns per piece of work when an operator runs along a strided axis: a kilobyte of each row, enough for
// the processor to fetch ahead, while the sums of all columns stay in the first-level cache.
constexpr int64_t kColumnBlock = 256;

// Calls body(image, column, width) for blocks of columns of `images` matrices with `columns` columns, each
// column being `height` elements of work.
template <typename Body>
void for_column_blocks(int64_t images, int64_t columns, int64_t height, const Body& body) {
  const int64_t blocks = (columns + kColumnBlock - 1) / kColumnBlock;
  const int64_t work = std::max<int64_t>(1, height * std::min(columns, kColumnBlock));
  parallel_for(images * blocks, row_grain(work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = (i % blocks) * kColumnBlock;
      body(i / blocks, column, std::min(kColumnBlock, columns - column));
    }
  });
}

}  // namespace

KernelPtr make_softmax(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Shape& shape = input_type(graph, node, 0).shape;
  if (shape.rank() == 0) return nullptr;
  const int axis = static_cast<int>(node.attrs.i("axis"));
  const int64_t outer = product(shape, 0, axis), n = shape.dim(axis),
                inner = product(shape, axis + 1, shape.rank());
  const bool log = node.op == OpKind::kLogSoftmax;
  const SimdTable& table = simd();
  if (inner == 1) {
    return make_kernel([=, &table](const KernelIo& io) {
      const float* x = io.in<float>(0);
      float* y = io.out<float>(0);
      parallel_for(outer, row_grain(n, kGrain / 2), [&](int64_t begin, int64_t end) {
        table.softmax(x + begin * n, y + begin * n, end - begin, n, log);
      });
    });
  }
  return make_kernel([=, &table](const KernelIo& io) {
    const float* x = io.in<float>(0);
    float* y = io.out<float>(0);
    for_column_blocks(outer, inner, n, [&](int64_t image, int64_t column, int64_t width) {
      const int64_t offset = image * n * inner + column;
      table.softmax_columns(x + offset, y + offset, n, inner, width, log);
    });
  });
}

KernelPtr make_batch_norm(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Shape& shape = input_type(graph, node, 0).shape;
  if (shape.rank() < 2) return nullptr;
  const int64_t images = shape.dim(0), channels = shape.dim(1), inner = product(shape, 2, shape.rank());
  const auto epsilon = static_cast<float>(node.attrs.f("epsilon"));
  const SimdTable& table = simd();
  const size_t scratch = static_cast<size_t>(2 * channels) * sizeof(float);
  return make_kernel(
      [=, &table](const KernelIo& io) {
        float* factor = static_cast<float*>(io.scratch);
        float* shift = factor + channels;
        for (int64_t c = 0; c < channels; ++c) {
          factor[c] = io.in<float>(1)[c] / std::sqrt(io.in<float>(4)[c] + epsilon);
          shift[c] = io.in<float>(2)[c] - io.in<float>(3)[c] * factor[c];
        }
        const float* x = io.in<float>(0);
        float* y = io.out<float>(0);
        if (inner == 1) {
          return parallel_for(images, row_grain(channels), [&](int64_t begin, int64_t end) {
            table.affine_columns(x + begin * channels, y + begin * channels, end - begin, channels, factor,
                                 shift);
          });
        }
        const auto affine = table.unary[static_cast<size_t>(SimdUnary::kAffine)];
        parallel_for(images * channels, row_grain(inner), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            affine(x + i * inner, y + i * inner, inner, {factor[i % channels], shift[i % channels]});
          }
        });
      },
      scratch);
}

KernelPtr make_layer_norm(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Shape& shape = input_type(graph, node, 0).shape;
  const int axis = static_cast<int>(node.attrs.i("axis"));
  const int64_t rows = product(shape, 0, axis), cols = product(shape, axis, shape.rank());
  for (int i = 1; i <= 2; ++i) {
    if (has_input(node, i) && input_type(graph, node, i).shape.elements() != cols) return nullptr;
  }
  const auto epsilon = static_cast<float>(node.attrs.f("epsilon"));
  const bool scale = has_input(node, 1), bias = has_input(node, 2);
  const bool mean = has_output(node, 1), inv_std = has_output(node, 2);
  const SimdTable& table = simd();
  return make_kernel([=, &table](const KernelIo& io) {
    if (cols == 0) return;
    parallel_for(rows, row_grain(cols), [&](int64_t begin, int64_t end) {
      table.layer_norm({.x = io.in<float>(0) + begin * cols,
                        .y = io.out<float>(0) + begin * cols,
                        .rows = end - begin,
                        .cols = cols,
                        .scale = scale ? io.in<float>(1) : nullptr,
                        .bias = bias ? io.in<float>(2) : nullptr,
                        .epsilon = epsilon,
                        .mean = mean ? io.out<float>(1) + begin : nullptr,
                        .inv_std = inv_std ? io.out<float>(2) + begin : nullptr});
    });
  });
}

KernelPtr make_group_norm(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Shape& shape = input_type(graph, node, 0).shape;
  if (shape.rank() < 2) return nullptr;
  const int64_t images = shape.dim(0), channels = shape.dim(1), inner = product(shape, 2, shape.rank());
  const int64_t groups = node.op == OpKind::kInstanceNorm ? channels : node.attrs.i("groups");
  if (groups <= 0 || channels % groups != 0) return nullptr;
  const int64_t size = channels / groups;  // channels of a group
  const auto epsilon = static_cast<float>(node.attrs.f("epsilon"));
  const SimdTable& table = simd();
  return make_kernel([=, &table](const KernelIo& io) {
    const float *scale = io.in<float>(1), *bias = io.in<float>(2);
    const auto affine = table.unary[static_cast<size_t>(SimdUnary::kAffine)];
    if (size * inner == 0) return;
    parallel_for(images * groups, row_grain(size * inner), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const int64_t offset = g * size * inner, first = g % groups * size;
        float mean, variance;
        table.moments(io.in<float>(0) + offset, size * inner, &mean, &variance);
        const float inv_std = 1.0f / std::sqrt(variance + epsilon);
        for (int64_t c = 0; c < size; ++c) {
          const float factor = scale[first + c] * inv_std;
          affine(io.in<float>(0) + offset + c * inner, io.out<float>(0) + offset + c * inner, inner,
                 {factor, bias[first + c] - mean * factor});
        }
      }
    });
  });
}

KernelPtr make_lrn(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Shape& shape = input_type(graph, node, 0).shape;
  if (shape.rank() < 2) return nullptr;
  const int64_t images = shape.dim(0), channels = shape.dim(1), inner = product(shape, 2, shape.rank());
  const int64_t size = node.attrs.i("size");
  const LrnArgs args{.channels = channels,
                     .stride = inner,
                     .size = size,
                     .alpha = static_cast<float>(node.attrs.f("alpha") / static_cast<double>(size)),
                     .beta = static_cast<float>(node.attrs.f("beta")),
                     .bias = static_cast<float>(node.attrs.f("bias"))};
  const SimdTable& table = simd();
  return make_kernel([=, &table](const KernelIo& io) {
    for_column_blocks(images, inner, channels * 4, [&](int64_t image, int64_t column, int64_t width) {
      const int64_t offset = image * channels * inner + column;
      table.lrn(io.in<float>(0) + offset, io.out<float>(0) + offset, width, args);
    });
  });
}

}  // namespace limber::own
