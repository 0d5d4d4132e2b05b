#include "passes/slice_attrs.h"

#include <algorithm>

#include "ops/slice.h"

namespace limber {
namespace {

class AttrSlicer {
 public:
  AttrSlicer(const Graph& graph, const Node& node, const KeptIndices& kept)
      : graph_(graph), node_(node), kept_(kept), attrs_(node.attrs) {}

  Attrs run() {
    switch (node_.op) {
      case OpKind::kConv:
        set_groups(node_.inputs[0]);
        break;
      case OpKind::kConvTranspose:
        set_groups(node_.outputs[0]);
        break;
      case OpKind::kGroupNorm:
        group_norm();
        break;
      case OpKind::kReshape:
      case OpKind::kExpand:
      case OpKind::kResize:
        set_shape();
        break;
      case OpKind::kSplit:
        split();
        break;
      case OpKind::kSlice:
        slice();
        break;
      case OpKind::kPad:
        pad();
        break;
      default:
        break;
    }
    return std::move(attrs_);
  }

 private:
  // nullptr: nothing is gone.
  const std::vector<int64_t>* kept(ValueId v, int axis) const {
    const auto it = kept_.find({v, axis});
    return it == kept_.end() ? nullptr : &it->second;
  }
  int64_t size(ValueId v, int axis) const { return graph_.type(v).shape.dim(axis); }
  // How many of the first `count` indices are left.
  int64_t left_before(ValueId v, int axis, int64_t count) const {
    const auto* indices = kept(v, axis);
    if (indices == nullptr) return count;
    return std::lower_bound(indices->begin(), indices->end(), count) - indices->begin();
  }
  int64_t left(ValueId v, int axis) const { return left_before(v, axis, graph_.type(v).shape.dim(axis)); }

  // Axis 1 of the weights has the width of one group of `narrow`.
  void set_groups(ValueId narrow) {
    const ValueId w = node_.inputs[1];
    if (kept(narrow, 1) == nullptr || node_.attrs.i("groups", 1) == 1) return;
    attrs_.set("groups", left(narrow, 1) / left(w, 1));
  }

  void group_norm() {
    const ValueId x = node_.inputs[0];
    if (kept(x, 1) == nullptr) return;
    const int64_t width = size(x, 1) / node_.attrs.i("groups");
    attrs_.set("groups", left(x, 1) / width);
  }

  void set_shape() {
    Shape shape = node_.attrs.dims("shape");
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (const auto* indices = kept(node_.outputs[0], axis))
        shape[axis] = Dim(static_cast<int64_t>(indices->size()));
    }
    attrs_.set("shape", std::move(shape));
  }

  void split() {
    const auto axis = static_cast<int>(node_.attrs.i("axis"));
    std::vector<int64_t> sizes = node_.attrs.ints("sizes");
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (node_.outputs[i] != kNoValue && kept(node_.outputs[i], axis) != nullptr)
        sizes[i] = left(node_.outputs[i], axis);
    }
    attrs_.set("sizes", std::move(sizes));
  }

  void slice() {
    const ValueId x = node_.inputs[0];
    std::vector<int64_t> starts = node_.attrs.ints("starts"), ends = node_.attrs.ints("ends");
    for (size_t i = 0; i < starts.size(); ++i) {
      const auto axis = static_cast<int>(node_.attrs.ints("axes")[i]);
      if (kept(x, axis) == nullptr) continue;
      const SliceRange range = slice_range(size(x, axis), starts[i], ends[i], 1);
      starts[i] = left_before(x, axis, range.start);
      ends[i] = left_before(x, axis, range.start + range.count);
    }
    attrs_.set("starts", std::move(starts));
    attrs_.set("ends", std::move(ends));
  }

  void pad() {
    const ValueId x = node_.inputs[0], y = node_.outputs[0];
    std::vector<int64_t> pads = node_.attrs.ints("pads");
    const int rank = graph_.type(x).rank();
    for (int axis = 0; axis < rank; ++axis) {
      if (kept(y, axis) == nullptr) continue;
      int64_t &begin = pads[static_cast<size_t>(axis)],
              &end = pads[pads.size() / 2 + static_cast<size_t>(axis)];
      const int64_t last = begin + size(x, axis);
      begin = left_before(y, axis, begin);
      end = left(y, axis) - left_before(y, axis, last);
    }
    attrs_.set("pads", std::move(pads));
  }

  const Graph& graph_;
  const Node& node_;
  const KeptIndices& kept_;
  Attrs attrs_;
};

}  // namespace

Attrs sliced_attrs(const Graph& graph, const Node& node, const KeptIndices& kept) {
  return AttrSlicer(graph, node, kept).run();
}

Tensor renumbered(const Tensor& indices, int64_t size, const std::vector<int64_t>& kept) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < indices.elements(); ++i) {
    const int64_t index = element_as_int(indices, i);
    const int64_t old = index < 0 ? index + size : index;
    numbers.push_back(std::lower_bound(kept.begin(), kept.end(), old) - kept.begin());
  }
  if (indices.dtype() == DType::kI64) return Tensor::from<int64_t>(numbers, indices.shape());
  const std::vector<int32_t> narrow(numbers.begin(), numbers.end());
  return Tensor::from<int32_t>(narrow, indices.shape());
}

}  // namespace limber
