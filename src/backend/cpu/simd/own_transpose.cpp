#include <cstring>

#include "backend/cpu/simd/own_families.h"

namespace limber::own {
namespace {

// Rows of the two-dimensional transposes that one call of the tile function is given: 256 bytes of each
// column that is written, whole cache lines.
constexpr int64_t kBlock = 64;

// dst[c * dst_stride + r] = src[r * src_stride + c]
template <typename T>
void transpose_block(const T* src, int64_t src_stride, T* dst, int64_t dst_stride, int64_t rows,
                     int64_t cols) {
  constexpr int64_t kTile = 16;  // floats: a cache line in both directions, so each line is fetched once
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    for (int64_t c0 = 0; c0 < cols; c0 += kTile) {
      const int64_t r1 = std::min(rows, r0 + kTile), c1 = std::min(cols, c0 + kTile);
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) dst[c * dst_stride + r] = src[r * src_stride + c];
      }
    }
  }
}

// The permutation after dimensions of size 1 are dropped and those that stay together are merged.
struct Permutation {
  std::vector<int64_t> dims;     // of the output
  std::vector<int64_t> strides;  // in the input, by output dimension

  Permutation(const std::vector<int64_t>& input, const std::vector<int64_t>& perm) {
    std::vector<int64_t> input_strides(input.size(), 1);
    for (size_t d = input.size(); d-- > 1;) input_strides[d - 1] = input_strides[d] * input[d];
    for (int64_t p : perm) {
      const int64_t size = input[static_cast<size_t>(p)], stride = input_strides[static_cast<size_t>(p)];
      if (size == 1) continue;
      if (!dims.empty() && strides.back() == stride * size) {
        dims.back() *= size;
        strides.back() = stride;
      } else {
        dims.push_back(size);
        strides.push_back(stride);
      }
    }
  }
};

// A stack of two-dimensional transposes: the innermost dimension of the input becomes dimension `across_`
// of the output, whose innermost one is strided in the input.
class TransposeStack {
 public:
  explicit TransposeStack(const Permutation& p) : table_(&simd()) {
    cols_ = p.dims.back();
    src_stride_ = p.strides.back();
    int64_t out_stride = 1;
    for (size_t d = p.dims.size(); d-- > 0;) {
      if (p.strides[d] == 1) {
        rows_ = p.dims[d];
        dst_stride_ = out_stride;
      } else if (d + 1 != p.dims.size()) {
        outer_.push_back({p.dims[d], p.strides[d], out_stride});
        count_ *= p.dims[d];
      }
      out_stride *= p.dims[d];
    }
  }

  template <typename T>
  void run(const T* x, T* y) const {
    const int64_t row_blocks = (rows_ + kBlock - 1) / kBlock, col_blocks = (cols_ + kBlock - 1) / kBlock;
    const int64_t per_item = row_blocks * col_blocks;
    parallel_for(count_ * per_item, row_grain(rows_ * cols_ / per_item), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t src = 0, dst = 0, index = i / per_item;
        for (const Outer& o : outer_) {
          src += index % o.size * o.src_stride;
          dst += index % o.size * o.dst_stride;
          index /= o.size;
        }
        const int64_t r = i % per_item / col_blocks * kBlock, c = i % per_item % col_blocks * kBlock;
        block(x + src + c * src_stride_ + r, y + dst + r * dst_stride_ + c, std::min(kBlock, rows_ - r),
              std::min(kBlock, cols_ - c));
      }
    });
  }

 private:
  struct Outer {
    int64_t size, src_stride, dst_stride;
  };

  // `rows` of the output, `cols` of its innermost dimension.
  template <typename T>
  void block(const T* src, T* dst, int64_t rows, int64_t cols) const {
    if constexpr (sizeof(T) == 4) {
      table_->transpose32(src, src_stride_, dst, dst_stride_, cols, rows);
    } else {
      transpose_block(src, src_stride_, dst, dst_stride_, cols, rows);
    }
  }

  const SimdTable* table_;
  std::vector<Outer> outer_;  // innermost first
  int64_t rows_ = 1, cols_ = 1, count_ = 1;
  int64_t src_stride_ = 0;  // between neighbours of an output row
  int64_t dst_stride_ = 0;  // between output rows
};

// Whole runs of the innermost dimension are copied.
template <typename T>
KernelPtr make_run_copy(const Permutation& p) {
  return make_kernel([loop = StridedLoop(p.dims, {p.strides})](const KernelIo& io) {
    const T* x = io.in<T>(0);
    T* y = io.out<T>(0);
    loop.run(kGrain, [&](const LoopPart& part) {
      for (int64_t r = 0; r < part.rows; ++r) {
        std::memcpy(y + part.out + r * part.cols, x + part.in[0] + r * loop.row_stride(0),
                    static_cast<size_t>(part.cols) * sizeof(T));
      }
    });
  });
}

template <typename T>
KernelPtr make_permutation(const Permutation& p, int64_t elements) {
  if (elements == 0) return make_kernel([](const KernelIo&) {});
  if (p.dims.empty() || p.strides.back() == 1) return make_run_copy<T>(p);
  return make_kernel(
      [stack = TransposeStack(p)](const KernelIo& io) { stack.run(io.in<T>(0), io.out<T>(0)); });
}

}  // namespace

KernelPtr make_transpose(const Graph& graph, const Node& node) {
  const TensorType& type = input_type(graph, node, 0);
  std::vector<int64_t> dims = type.shape.dims(), perm;
  if (node.op == OpKind::kTranspose) {
    perm = node.attrs.ints("perm");
  } else {
    if (type.rank() != 4) return nullptr;
    const int64_t b = node.attrs.i("blocksize"), n = dims[0], c = dims[1], h = dims[2], w = dims[3];
    if (node.op == OpKind::kSpaceToDepth) {
      dims = {n, c, h / b, b, w / b, b};
      perm = {0, 3, 5, 1, 2, 4};
    } else if (node.attrs.s("mode", "DCR") == "CRD") {
      dims = {n, c / (b * b), b, b, h, w};
      perm = {0, 1, 4, 2, 5, 3};
    } else {
      dims = {n, b, b, c / (b * b), h, w};
      perm = {0, 3, 4, 1, 5, 2};
    }
  }
  const Permutation p(dims, perm);
  const int64_t elements = type.shape.elements();
  switch (dtype_size(type.dtype)) {
    case 1:
      return make_permutation<uint8_t>(p, elements);
    case 2:
      return make_permutation<uint16_t>(p, elements);
    case 4:
      return make_permutation<uint32_t>(p, elements);
    case 8:
      return make_permutation<uint64_t>(p, elements);
    default:
      return nullptr;
  }
}

}  // namespace limber::own
