#include <cstring>

#include "backend/cpu/simd/own_families.h"
#include "ops/slice.h"

namespace limber::own {
namespace {

// Bytes a thread should have at least: kGrain floats.
constexpr int64_t kByteGrain = 4 * kGrain;

// `rows` rows of bytes, each made of one piece of every part; the whole is dense, and so is each part.
class Pieces {
 public:
  Pieces(int64_t rows, const std::vector<int64_t>& piece_bytes) : rows_(rows) {
    for (int64_t bytes : piece_bytes) begins_.push_back(begins_.back() + bytes);
  }

  // Calls copy(part, offset in the part, offset in the whole, bytes) for everything.
  template <typename Copy>
  void run(const Copy& copy) const {
    const int64_t row = begins_.back();
    constexpr int64_t kUnit = 256;  // bytes; threads meet at whole cache lines
    const int64_t total = rows_ * row;
    parallel_for((total + kUnit - 1) / kUnit, kByteGrain / kUnit, [&](int64_t begin, int64_t end) {
      walk(begin * kUnit, std::min(total, end * kUnit), copy);
    });
  }

 private:
  template <typename Copy>
  void walk(int64_t begin, int64_t end, const Copy& copy) const {
    const int64_t row = begins_.back();
    if (begin >= end) return;
    int64_t r = begin / row, within = begin % row;
    size_t part = 0;
    while (begins_[part + 1] <= within) ++part;
    while (begin < end) {
      const int64_t size = begins_[part + 1] - begins_[part];
      const int64_t bytes = std::min(end - begin, begins_[part + 1] - within);
      if (bytes > 0) copy(part, r * size + within - begins_[part], begin, static_cast<size_t>(bytes));
      begin += bytes;
      within += bytes;
      if (within == begins_[part + 1]) ++part;
      if (part + 1 == begins_.size()) {
        part = 0;
        within = 0;
        ++r;
      }
    }
  }

  int64_t rows_;
  std::vector<int64_t> begins_{0};  // where in a row each part begins; last: bytes of a row
};

Pieces pieces_along(const Graph& graph, const std::vector<ValueId>& parts, int axis) {
  const TensorType& first = graph.type(parts[0]);
  std::vector<int64_t> bytes;
  for (ValueId v : parts) {
    const Shape& shape = graph.type(v).shape;
    bytes.push_back(product(shape, axis, shape.rank()) * static_cast<int64_t>(dtype_size(first.dtype)));
  }
  return Pieces(product(first.shape, 0, axis), bytes);
}

// memcpy that does not call a function for the few bytes that pieces of a last axis have.
void copy_bytes(void* dst, const void* src, size_t n) {
  switch (n) {
    case 4:
      std::memcpy(dst, src, 4);
      break;
    case 8:
      std::memcpy(dst, src, 8);
      break;
    case 16:
      std::memcpy(dst, src, 16);
      break;
    default:
      std::memcpy(dst, src, n);
  }
}

template <typename T>
void copy_row(const T* src, int64_t stride, T* dst, int64_t n) {
  if (stride == 1) {
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
  } else if (stride == 0) {
    std::fill_n(dst, n, *src);
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[i * stride];
  }
}

template <typename T>
KernelPtr make_copy(StridedLoop loop, int64_t offset) {
  return make_kernel([loop = std::move(loop), offset](const KernelIo& io) {
    const T* x = io.in<T>(0) + offset;
    T* y = io.out<T>(0);
    loop.run(kGrain, [&](const LoopPart& part) {
      for (int64_t r = 0; r < part.rows; ++r) {
        copy_row(x + part.in[0] + r * loop.row_stride(0), loop.col_stride(0), y + part.out + r * part.cols,
                 part.cols);
      }
    });
  });
}

struct StridedCopy {
  std::vector<int64_t> dims;
  Strides strides;
  int64_t offset = 0;
};

StridedCopy plan_slice(const Shape& x, const Shape& y, const Attrs& attrs) {
  StridedCopy plan{y.dims(), strides_of(x), 0};
  for (size_t i = 0; i < attrs.ints("axes").size(); ++i) {
    const auto axis = static_cast<size_t>(attrs.ints("axes")[i]);
    const SliceRange range = slice_range(x.dim(static_cast<int>(axis)), attrs.ints("starts")[i],
                                         attrs.ints("ends")[i], attrs.ints("steps")[i]);
    plan.offset += range.start * plan.strides[axis];
    if (range.count > 1) plan.strides[axis] *= range.step;
  }
  return plan;
}

// Every axis becomes two: its repeats and itself.
StridedCopy plan_tile(const Shape& x, const Attrs& attrs) {
  StridedCopy plan;
  const Strides own = strides_of(x);
  for (int d = 0; d < x.rank(); ++d) {
    plan.dims.push_back(attrs.ints("repeats")[static_cast<size_t>(d)]);
    plan.strides.push_back(0);
    plan.dims.push_back(x.dim(d));
    plan.strides.push_back(own[static_cast<size_t>(d)]);
  }
  return plan;
}

template <typename Index, typename T>
void gather_rows(const void* x, const void* indices, void* y, int64_t begin, int64_t end, int64_t count,
                 int64_t size, int64_t inner) {
  const T* src = static_cast<const T*>(x);
  T* dst = static_cast<T*>(y) + begin * inner;
  const Index* index = static_cast<const Index*>(indices);
  for (int64_t i = begin; i < end; ++i, dst += inner) {
    const auto wanted = static_cast<int64_t>(index[i % count]);
    const int64_t row = std::clamp<int64_t>(wanted < 0 ? wanted + size : wanted, 0, size - 1);
    copy_row(src + (i / count * size + row) * inner, 1, dst, inner);
  }
}

template <typename Index>
auto gather_function(size_t element_size) -> decltype(&gather_rows<Index, uint8_t>) {
  switch (element_size) {
    case 1:
      return &gather_rows<Index, uint8_t>;
    case 2:
      return &gather_rows<Index, uint16_t>;
    case 4:
      return &gather_rows<Index, uint32_t>;
    case 8:
      return &gather_rows<Index, uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

KernelPtr make_concat(const Graph& graph, const Node& node) {
  return make_kernel([pieces = pieces_along(graph, node.inputs, static_cast<int>(node.attrs.i("axis")))](
                         const KernelIo& io) {
    pieces.run([&](size_t part, int64_t in_part, int64_t in_whole, size_t bytes) {
      copy_bytes(static_cast<std::byte*>(io.outputs[0]) + in_whole,
                 static_cast<const std::byte*>(io.inputs[part]) + in_part, bytes);
    });
  });
}

KernelPtr make_split(const Graph& graph, const Node& node) {
  const int axis = static_cast<int>(node.attrs.i("axis"));
  const TensorType& type = input_type(graph, node, 0);
  std::vector<int64_t> bytes;  // from the attribute: an output nobody wants has no type
  for (int64_t size : node.attrs.ints("sizes")) {
    bytes.push_back(size * product(type.shape, axis + 1, type.rank()) *
                    static_cast<int64_t>(dtype_size(type.dtype)));
  }
  return make_kernel([pieces = Pieces(product(type.shape, 0, axis), bytes)](const KernelIo& io) {
    pieces.run([&](size_t part, int64_t in_part, int64_t in_whole, size_t n) {
      if (io.outputs[part] == nullptr) return;
      copy_bytes(static_cast<std::byte*>(io.outputs[part]) + in_part,
                 static_cast<const std::byte*>(io.inputs[0]) + in_whole, n);
    });
  });
}

KernelPtr make_strided_copy(const Graph& graph, const Node& node) {
  const TensorType& x = input_type(graph, node, 0);
  const TensorType& y = output_type(graph, node);
  if (y.shape.elements() == 0) return make_kernel([](const KernelIo&) {});
  const StridedCopy plan = node.op == OpKind::kSlice ? plan_slice(x.shape, y.shape, node.attrs)
                           : node.op == OpKind::kTile
                               ? plan_tile(x.shape, node.attrs)
                               : StridedCopy{y.shape.dims(), broadcast_strides(x.shape, y.shape)};
  StridedLoop loop(plan.dims, {plan.strides});
  switch (dtype_size(y.dtype)) {
    case 1:
      return make_copy<uint8_t>(std::move(loop), plan.offset);
    case 2:
      return make_copy<uint16_t>(std::move(loop), plan.offset);
    case 4:
      return make_copy<uint32_t>(std::move(loop), plan.offset);
    case 8:
      return make_copy<uint64_t>(std::move(loop), plan.offset);
    default:
      return nullptr;
  }
}

KernelPtr make_gather(const Graph& graph, const Node& node) {
  const TensorType &type = input_type(graph, node, 0), &indices = input_type(graph, node, 1);
  const int axis = static_cast<int>(node.attrs.i("axis"));
  const int64_t outer = product(type.shape, 0, axis), size = type.shape.dim(axis);
  const int64_t inner = product(type.shape, axis + 1, type.rank()), count = indices.shape.elements();
  const size_t element = dtype_size(type.dtype);
  const auto function = indices.dtype == DType::kI64   ? gather_function<int64_t>(element)
                        : indices.dtype == DType::kI32 ? gather_function<int32_t>(element)
                                                       : nullptr;
  if (function == nullptr || (size == 0 && outer * count * inner != 0)) return nullptr;
  return make_kernel([=](const KernelIo& io) {
    if (inner == 0) return;
    parallel_for(outer * count, row_grain(inner), [&](int64_t begin, int64_t end) {
      function(io.inputs[0], io.inputs[1], io.outputs[0], begin, end, count, size, inner);
    });
  });
}

}  // namespace limber::own
