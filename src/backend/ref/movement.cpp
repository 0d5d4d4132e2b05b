// Moving data: every output element is a copy of an input element, whatever the dtype.
#include <algorithm>
#include <cstring>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"
#include "ops/slice.h"

namespace limber::ref {
namespace {

// y[index] = x[base + index . strides].
KernelResult make_strided_copy(const NodeView& v, const Dims& dims, const Dims& strides, int64_t base = 0) {
  const size_t size = dtype_size(v.in(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    int64_t i = 0;
    walk<1>(dims, {strides}, [&](const Dims&, const std::array<int64_t, 1>& at) {
      copy_element(io.outputs[0], i++, io.inputs[0], base + at[0], size);
    });
  });
}

KernelResult make_transpose(const NodeView& v) {
  const Dims from = strides_for(v.in_dims(0));
  Dims strides;
  for (int64_t axis : v.attrs().ints("perm")) strides.push_back(from[static_cast<int>(axis)]);
  return make_strided_copy(v, v.out_dims(0), strides);
}

KernelResult make_expand(const NodeView& v) {
  return make_strided_copy(v, v.out_dims(0), broadcast_strides(v.in(0).shape, v.out(0).shape));
}

KernelResult make_slice(const NodeView& v) {
  const Attrs& attrs = v.attrs();
  const Dims x = v.in_dims(0);
  Dims strides = strides_for(x);
  int64_t base = 0;
  for (size_t i = 0; i < attrs.ints("axes").size(); ++i) {
    const auto axis = static_cast<int>(attrs.ints("axes")[i]);
    const SliceRange range =
        slice_range(x[axis], attrs.ints("starts")[i], attrs.ints("ends")[i], attrs.ints("steps")[i]);
    base += range.start * strides[axis];
    // A step is not taken at all when it is longer than the axis, so its length does not matter.
    strides[axis] *= std::clamp(range.step, -x[axis] - 1, x[axis] + 1);
  }
  return make_strided_copy(v, v.out_dims(0), strides, base);
}

KernelResult make_tile(const NodeView& v) {
  const Dims x = v.in_dims(0), y = v.out_dims(0), strides = strides_for(x);
  const size_t size = dtype_size(v.in(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    int64_t i = 0;
    walk<0>(y, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
      int64_t from = 0;
      for (int axis = 0; axis < y.rank; ++axis) from += index[axis] % x[axis] * strides[axis];
      copy_element(io.outputs[0], i++, io.inputs[0], from, size);
    });
  });
}

// One part of a tensor that is cut along an axis: runs of `run` bytes, one per outer index.
struct Part {
  size_t run, offset;
};

KernelResult make_concat(const NodeView& v) {
  const AxisView whole(v.out_dims(0), v.attrs().i("axis"));
  const size_t unit = static_cast<size_t>(whole.inner) * dtype_size(v.out(0).dtype);
  const size_t row = static_cast<size_t>(whole.size) * unit;
  std::vector<Part> parts;
  size_t offset = 0;
  for (ValueId input : v.node.inputs) {
    const auto length =
        static_cast<size_t>(v.graph.type(input).shape.dim(static_cast<int>(v.attrs().i("axis"))));
    parts.push_back({length * unit, offset});
    offset += length * unit;
  }
  return make_kernel([=](const KernelIo& io) {
    for (size_t k = 0; k < parts.size(); ++k) {
      for (size_t o = 0; parts[k].run != 0 && o < static_cast<size_t>(whole.outer); ++o) {
        std::memcpy(io.out<std::byte>(0) + o * row + parts[k].offset,
                    static_cast<const std::byte*>(io.inputs[k]) + o * parts[k].run, parts[k].run);
      }
    }
  });
}

KernelResult make_split(const NodeView& v) {
  const AxisView whole(v.in_dims(0), v.attrs().i("axis"));
  const size_t unit = static_cast<size_t>(whole.inner) * dtype_size(v.in(0).dtype);
  const size_t row = static_cast<size_t>(whole.size) * unit;
  std::vector<Part> parts;
  size_t offset = 0;
  for (int64_t length : v.attrs().ints("sizes")) {
    parts.push_back({static_cast<size_t>(length) * unit, offset});
    offset += static_cast<size_t>(length) * unit;
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    if (!v.has_out(static_cast<int>(k))) parts[k].run = 0;
  }
  return make_kernel([=](const KernelIo& io) {
    for (size_t k = 0; k < parts.size(); ++k) {
      for (size_t o = 0; parts[k].run != 0 && o < static_cast<size_t>(whole.outer); ++o) {
        std::memcpy(static_cast<std::byte*>(io.outputs[k]) + o * parts[k].run,
                    io.in<std::byte>(0) + o * row + parts[k].offset, parts[k].run);
      }
    }
  });
}

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

// The input index that output position `at` (relative to the input's start) copies, or -1: the value.
int64_t source_of(PadMode mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  if (size == 0 || mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge || size == 1) return at < 0 ? 0 : size - 1;
  const int64_t period = mode == PadMode::kWrap ? size : 2 * (size - 1);
  const int64_t phase = (at % period + period) % period;
  return phase < size ? phase : period - phase;
}

Result<PadMode> pad_mode(const NodeView& v) {
  const std::string mode = v.attrs().s("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "edge") return PadMode::kEdge;
  if (mode == "wrap") return PadMode::kWrap;
  return unsupported("Pad '{}': mode '{}'; the reference backend has constant, reflect, edge and wrap",
                     v.node.name, mode);
}

KernelResult make_pad(const NodeView& v) {
  LIMBER_ASSIGN(const PadMode mode, pad_mode(v));
  const Dims x = v.in_dims(0), y = v.out_dims(0), strides = strides_for(x);
  const size_t size = dtype_size(v.in(0).dtype);
  Dims begin;
  for (int axis = 0; axis < x.rank; ++axis)
    begin.push_back(v.attrs().ints("pads")[static_cast<size_t>(axis)]);
  std::array<std::byte, 8> fill{};
  access<double>(v.in(0).dtype).store(fill.data(), 0, v.attrs().f("value", 0));
  return make_kernel([=](const KernelIo& io) {
    int64_t i = 0;
    walk<0>(y, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
      int64_t from = 0;
      bool inside = true;
      for (int axis = 0; axis < y.rank; ++axis) {
        const int64_t source = source_of(mode, index[axis] - begin[axis], x[axis]);
        inside = inside && source >= 0;
        from += source * strides[axis];
      }
      if (inside)
        copy_element(io.outputs[0], i++, io.inputs[0], from, size);
      else
        copy_element(io.outputs[0], i++, fill.data(), 0, size);
    });
  });
}

// y is x[N, C, H, W] cut into the given axes and read in the order of y's.
KernelResult make_depth_to_space(const NodeView& v) {
  const Dims x = v.in_dims(0);
  const int64_t block = v.attrs().i("blocksize"), depth = x[1] / (block * block);
  const bool dcr = v.attrs().s("mode", "DCR") == "DCR";
  const int64_t plane = x[2] * x[3];
  // The channel is (row, column, depth) in DCR and (depth, row, column) in CRD.
  const int64_t row = (dcr ? block * depth : block) * plane, column = (dcr ? depth : 1) * plane;
  const int64_t channel = (dcr ? 1 : block * block) * plane;
  Dims dims, strides;
  for (int64_t d : {x[0], depth, x[2], block, x[3], block}) dims.push_back(d);
  for (int64_t s : {x[1] * plane, channel, x[3], row, int64_t{1}, column}) strides.push_back(s);
  return make_strided_copy(v, dims, strides);
}

KernelResult make_space_to_depth(const NodeView& v) {
  const Dims x = v.in_dims(0);
  const int64_t block = v.attrs().i("blocksize"), plane = x[2] * x[3];
  Dims dims, strides;
  for (int64_t d : {x[0], block, block, x[1], x[2] / block, x[3] / block}) dims.push_back(d);
  for (int64_t s : {x[1] * plane, x[3], int64_t{1}, plane, x[3] * block, block}) strides.push_back(s);
  return make_strided_copy(v, dims, strides);
}

KernelResult make_trilu(const NodeView& v) {
  const Dims x = v.in_dims(0);
  const int64_t rows = x[x.rank - 2], columns = x[x.rank - 1], matrices = x.product(0, x.rank - 2);
  const int64_t k = std::clamp(v.attrs().i("k"), -rows - columns, rows + columns);
  const bool upper = v.attrs().i("upper") != 0;
  const size_t size = dtype_size(v.in(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    const std::array<std::byte, 8> zero{};
    for (int64_t i = 0; i < matrices * rows * columns; ++i) {
      const int64_t diagonal = i % columns - i / columns % rows;
      const bool keep = upper ? diagonal >= k : diagonal <= k;
      copy_element(io.outputs[0], i, keep ? io.inputs[0] : zero.data(), keep ? i : 0, size);
    }
  });
}

KernelResult make_eye_like(const NodeView& v) {
  const int64_t rows = v.out(0).shape.dim(0), columns = v.out(0).shape.dim(1);
  const int64_t k = std::clamp(v.attrs().i("k"), -rows - columns, rows + columns);
  const auto store = access<int64_t>(v.out(0).dtype).store;
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < rows * columns; ++i)
      store(io.outputs[0], i, i % columns - i / columns == k ? 1 : 0);
  });
}

KernelResult make_shape_of(const NodeView& v) {
  const Dims x = v.in_dims(0);
  return make_kernel([=](const KernelIo& io) {
    for (int axis = 0; axis < x.rank; ++axis) io.out<int64_t>(0)[axis] = x[axis];
  });
}

}  // namespace

LIMBER_REF_KERNEL(Transpose, make_transpose(v))
LIMBER_REF_KERNEL(Expand, make_expand(v))
LIMBER_REF_KERNEL(Tile, make_tile(v))
LIMBER_REF_KERNEL(Concat, make_concat(v))
LIMBER_REF_KERNEL(Split, make_split(v))
LIMBER_REF_KERNEL(Slice, make_slice(v))
LIMBER_REF_KERNEL(Pad, make_pad(v))
LIMBER_REF_KERNEL(DepthToSpace, make_depth_to_space(v))
LIMBER_REF_KERNEL(SpaceToDepth, make_space_to_depth(v))
LIMBER_REF_KERNEL(Trilu, make_trilu(v))
LIMBER_REF_KERNEL(EyeLike, make_eye_like(v))
LIMBER_REF_KERNEL(ShapeOf, make_shape_of(v))

}  // namespace limber::ref
