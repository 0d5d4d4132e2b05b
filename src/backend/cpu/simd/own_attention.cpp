#include "backend/cpu/simd/own_families.h"

namespace limber::own {
namespace {

// Query rows of one piece of work: enough to use each packed key often, few enough for the scores to stay
// in the second-level cache.
int64_t block_rows_for(int64_t queries, int64_t keys) {
  const int64_t fits = std::max<int64_t>(8, 262144 / std::max<int64_t>(1, keys));
  const int64_t most = std::min<int64_t>(64, fits);
  const int64_t blocks = std::max<int64_t>(1, (queries + most - 1) / most);
  return (queries + blocks - 1) / blocks;
}

class Attention {
 public:
  Attention(const Shape& q, const Shape& k, const Shape& v, double scale) : table_(&simd()) {
    const int rank = q.rank();
    heads_ = product(q, 0, rank - 2);
    queries_ = q.dim(rank - 2);
    head_.depth = q.dim(rank - 1);
    head_.keys = k.dim(rank - 2);
    head_.width = v.dim(rank - 1);
    head_.block_rows = block_rows_for(queries_, head_.keys);
    head_.scale = static_cast<float>(scale);
    blocks_ = head_.block_rows == 0 ? 0 : (queries_ + head_.block_rows - 1) / head_.block_rows;
    workers_ = std::max<int64_t>(1, std::min<int64_t>(max_threads(), heads_ * blocks_));
    constexpr int64_t kLine = 16;  // floats: workers do not share a cache line
    scratch_ = (table_->attention_scratch(head_) + kLine - 1) / kLine * kLine;
  }

  void set_mask(const Shape& mask, const Shape& scores) {
    masked_ = true;
    const Strides strides = broadcast_strides(mask, scores);
    const size_t rank = strides.size();
    mask_row_ = strides[rank - 2];
    mask_col_ = strides[rank - 1];
    for (int64_t h = 0; h < heads_; ++h) {
      int64_t offset = 0, index = h;
      for (size_t d = rank - 2; d-- > 0;) {
        const int64_t size = scores.dim(static_cast<int>(d));
        offset += index % size * strides[d];
        index /= size;
      }
      mask_offsets_.push_back(offset);
    }
  }

  size_t scratch_bytes() const { return static_cast<size_t>(scratch_ * workers_) * sizeof(float); }

  // Blocks of rows are dealt out to the workers in order; each packs a head once, when it comes to it.
  void run(const KernelIo& io) const {
    const int64_t total = heads_ * blocks_;
    const int64_t share = (total + workers_ - 1) / workers_;
    const double work = 4.0 * static_cast<double>(total * head_.block_rows * head_.keys) *
                        static_cast<double>(head_.depth + head_.width);
    constexpr double kWorthAThread = 2e5;  // floating-point operations: some microseconds, as waking a thread
    const int64_t grain = work < kWorthAThread ? workers_ : 1;
    parallel_for(workers_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t w = begin; w < end; ++w) {
        run_blocks(io, w * share, std::min(total, (w + 1) * share),
                   static_cast<float*>(io.scratch) + w * scratch_);
      }
    });
  }

 private:
  void run_blocks(const KernelIo& io, int64_t begin, int64_t end, float* scratch) const {
    int64_t packed = -1;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t h = i / blocks_, row = i % blocks_ * head_.block_rows;
      const float* values = io.in<float>(2) + h * head_.keys * head_.width;
      if (h != packed)
        table_->attention_pack(head_, io.in<float>(1) + h * head_.keys * head_.depth, values, scratch);
      packed = h;
      AttentionMask mask;
      if (masked_) {
        mask = {io.in<float>(3) + mask_offsets_[static_cast<size_t>(h)] + row * mask_row_, mask_row_,
                mask_col_};
      }
      table_->attention_rows(head_, io.in<float>(0) + (h * queries_ + row) * head_.depth,
                             std::min(head_.block_rows, queries_ - row), values, mask,
                             io.out<float>(0) + (h * queries_ + row) * head_.width, scratch);
    }
  }

  const SimdTable* table_;
  AttentionHead head_{};
  int64_t heads_ = 0, queries_ = 0, blocks_ = 0, workers_ = 1;
  int64_t scratch_ = 0;  // floats per worker
  bool masked_ = false;
  int64_t mask_row_ = 0, mask_col_ = 0;
  std::vector<int64_t> mask_offsets_;  // by head
};

}  // namespace

KernelPtr make_attention(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Shape &q = input_type(graph, node, 0).shape, &k = input_type(graph, node, 1).shape;
  const Shape &v = input_type(graph, node, 2).shape, &y = output_type(graph, node).shape;
  const int rank = q.rank();
  if (rank < 2 || k.rank() != rank || v.rank() != rank || y.rank() != rank) return nullptr;
  for (int d = 0; d < rank - 2; ++d) {
    if (k.dim(d) != q.dim(d) || v.dim(d) != q.dim(d)) return nullptr;
  }
  if (k.dim(rank - 2) == 0) return nullptr;
  Attention attention(q, k, v, node.attrs.f("scale"));
  if (has_input(node, 3)) {
    Shape scores = y;
    scores[rank - 1] = k[rank - 2];
    attention.set_mask(input_type(graph, node, 3).shape, scores);
  }
  const size_t scratch = attention.scratch_bytes();
  return make_kernel([attention = std::move(attention)](const KernelIo& io) { attention.run(io); }, scratch);
}

}  // namespace limber::own
