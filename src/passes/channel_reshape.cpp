// Reshape: axes that are merged and cut. Both shapes are products of the same factors; channels can be taken
// out along one factor of an axis, the others stay whole.
#include <algorithm>
#include <optional>

#include "ops/op_def.h"
#include "passes/channel_rules.h"

namespace limber::channels {
namespace {

using Atom = ChannelAtoms::Atom;

// The factors of an axis: [begin, end) of all.
struct Factors {
  int axis;
  size_t begin, end;
  bool single() const { return end - begin <= 1; }
};

struct Refinement {
  std::vector<int64_t> sizes;  // of the factors, none is 1
  std::vector<Factors> x, y;
};

// The fewest factors that both lists of dimensions are products of; nullopt when there are none.
std::optional<std::vector<int64_t>> common_factors(std::span<const int64_t> a, std::span<const int64_t> b) {
  std::vector<int64_t> products;
  for (std::span<const int64_t> dims : {a, b}) {
    int64_t product = 1;
    for (int64_t dim : dims) products.push_back(product *= dim);
  }
  std::sort(products.begin(), products.end());
  std::vector<int64_t> factors;
  int64_t last = 1;
  for (int64_t product : products) {
    if (product == 0 || product % last != 0) return std::nullopt;
    if (product != last) factors.push_back(product / last);
    last = product;
  }
  return factors;
}

// Which factors each axis from `first` on is the product of.
std::vector<Factors> assign(std::span<const int64_t> dims, int first, const std::vector<int64_t>& factors) {
  std::vector<Factors> axes;
  size_t next = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    Factors axis{first + static_cast<int>(i), next, next};
    for (int64_t product = 1; product != dims[i]; ++axis.end) product *= factors[axis.end];
    next = axis.end;
    axes.push_back(axis);
  }
  return axes;
}

// nullopt when an axis has no atoms.
std::optional<std::vector<int64_t>> tracked_sizes(const ChannelAtoms& atoms, ValueId v, int begin, int end) {
  std::vector<int64_t> sizes;
  for (int axis = begin; axis < end; ++axis) {
    if (!atoms.tracked(v, axis)) return std::nullopt;
    sizes.push_back(atoms.size(v, axis));
  }
  return sizes;
}

// Leading and trailing axes that both shapes share.
struct CommonEnds {
  int head, tail;
};
CommonEnds common_ends(const Shape& x, const Shape& y) {
  int head = 0, tail = 0;
  const int most = std::min(x.rank(), y.rank());
  while (head < most && x[head] == y[head]) ++head;
  while (tail < most - head && x[x.rank() - 1 - tail] == y[y.rank() - 1 - tail]) ++tail;
  return {head, tail};
}

// How well an axis that a Reshape has made serves as the one to take channels out of.
enum Fitness : int {
  kUnfit,      // its indices are told apart or mixed
  kPoor,       // inside a matrix, where it could be cut but a batch of matrices is the better unit
  kGood,       // channels
  kBatchLike,  // every index has a matrix product of its own: heads
};

class Judge {
 public:
  explicit Judge(const Rule& rule) : rule_(rule) {}

  int fitness(ValueId v, int axis, int depth = 0) const {
    constexpr int kMaxDepth = 12;  // readers one behind the other; a bound, since paths multiply
    if (depth > kMaxDepth) return kPoor;
    if (rule_.graph.is_output(v)) return kUnfit;
    int worst = kBatchLike;
    for (NodeId reader : rule_.readers[v.index])
      worst = std::min(worst, at(rule_.graph.node(reader), v, axis, depth));
    return worst;
  }

 private:
  int at(const Node& node, ValueId v, int axis, int depth) const {
    const int rank = rule_.rank(v);
    const auto follow = [&](int to) { return fitness(node.outputs[0], to, depth + 1); };
    if (is_unary(node.op) || is_binary(node.op) || node.op == OpKind::kWhere)
      return follow(axis + rule_.rank(node.outputs[0]) - rank);
    switch (node.op) {
      case OpKind::kTranspose: {
        const auto& perm = node.attrs.ints("perm");
        return follow(static_cast<int>(std::find(perm.begin(), perm.end(), axis) - perm.begin()));
      }
      case OpKind::kSplit:
      case OpKind::kSoftmax:
        return node.attrs.i("axis") == axis ? kUnfit : follow(axis);
      case OpKind::kSlice: {
        const auto& axes = node.attrs.ints("axes");
        return std::find(axes.begin(), axes.end(), axis) != axes.end() ? kUnfit : follow(axis);
      }
      case OpKind::kGather:
        if (v != node.inputs[0] || node.attrs.i("axis") == axis) return kUnfit;
        return follow(axis < node.attrs.i("axis") ? axis : axis - 1 + rule_.rank(node.inputs[1]));
      case OpKind::kMatMul:
      case OpKind::kAttention:
        return axis < rank - 2 ? kBatchLike : kPoor;
      case OpKind::kReshape: {
        const Shape &from = rule_.graph.type(v).shape, &to = rule_.graph.type(node.outputs[0]).shape;
        const auto [head, tail] = common_ends(from, to);
        if (axis < head) return follow(axis);
        return axis >= rank - tail ? follow(axis + to.rank() - rank) : kGood;
      }
      case OpKind::kConcat:
        return kGood;
      case OpKind::kLayerNorm:
        return axis < node.attrs.i("axis") ? follow(axis) : kUnfit;
      case OpKind::kConv:
      case OpKind::kConvTranspose:
      case OpKind::kBatchNorm:
      case OpKind::kInstanceNorm:
      case OpKind::kGroupNorm:
        return axis == 1 ? kGood : kUnfit;
      default:
        return kPoor;
    }
  }

  const Rule& rule_;
};

class Reshaper {
 public:
  Reshaper(const Rule& rule, Refinement refinement)
      : rule_(rule), atoms_(rule.atoms), refined_(std::move(refinement)) {
    for (int64_t size : refined_.sizes) firsts_.push_back(atoms_.add(size));
  }

  void run() {
    for (const Factors& axis : refined_.x) {
      tie(rule_.input(0), axis, axis.single() ? axis.begin : to_cut(axis));
    }
    for (const Factors& axis : refined_.y) {
      tie(rule_.output(), axis, axis.single() ? axis.begin : to_merge(axis));
    }
  }

 private:
  // Indices of the axis follow the factor `free`; the other factors stay whole.
  void tie(ValueId v, const Factors& axis, size_t free) {
    if (axis.begin == axis.end) return atoms_.pin_axis(v, axis.axis);
    int64_t inner = 1;
    for (size_t f = free + 1; f < axis.end; ++f) inner *= refined_.sizes[f];
    for (int64_t i = 0; i < atoms_.size(v, axis.axis); ++i) {
      const auto digit = static_cast<Atom>(i / inner % refined_.sizes[free]);
      atoms_.tie(atoms_.atom(v, axis.axis, i), firsts_[free] + digit);
    }
    for (size_t f = axis.begin; f < axis.end; ++f) {
      for (int64_t i = 0; f != free && i < refined_.sizes[f]; ++i)
        atoms_.pin(firsts_[f] + static_cast<Atom>(i));
    }
  }

  // The factor that serves best further on; of equals the longest, then the outermost.
  size_t to_cut(const Factors& axis) const {
    size_t best = axis.begin;
    int best_fitness = -1;
    for (size_t f = axis.begin; f < axis.end; ++f) {
      const int fitness = fitness_of(f);
      const bool longer = fitness == best_fitness && refined_.sizes[f] > refined_.sizes[best];
      if (fitness <= best_fitness && !longer) continue;
      best = f;
      best_fitness = fitness;
    }
    return best;
  }

  int fitness_of(size_t factor) const {
    const auto in = std::find_if(refined_.y.begin(), refined_.y.end(), [&](const Factors& axis) {
      return axis.begin <= factor && factor < axis.end;
    });
    return in->single() ? Judge(rule_).fitness(rule_.output(), in->axis) : kPoor;
  }

  // The outermost factor that is not whole anyway.
  size_t to_merge(const Factors& axis) {
    for (size_t f = axis.begin; f < axis.end; ++f) {
      if (!atoms_.all_pinned(firsts_[f], refined_.sizes[f])) return f;
    }
    return axis.begin;
  }

  const Rule& rule_;
  ChannelAtoms& atoms_;
  const Refinement refined_;
  std::vector<Atom> firsts_;  // by factor
};

}  // namespace

void reshape(const Rule& rule) {
  const ValueId x = rule.input(0), y = rule.output();
  const Shape &from = rule.graph.type(x).shape, &to = rule.graph.type(y).shape;
  const CommonEnds same = common_ends(from, to);
  for (int i = 0; i < same.head; ++i) rule.atoms.tie_axes(x, i, y, i);
  for (int i = 1; i <= same.tail; ++i) rule.atoms.tie_axes(x, from.rank() - i, y, to.rank() - i);
  const int begin = same.head, x_end = from.rank() - same.tail, y_end = to.rank() - same.tail;
  const auto a = tracked_sizes(rule.atoms, x, begin, x_end), b = tracked_sizes(rule.atoms, y, begin, y_end);
  const auto factors = a && b ? common_factors(*a, *b) : std::nullopt;
  if (factors) {
    Refinement refined{*factors, assign(*a, begin, *factors), assign(*b, begin, *factors)};
    return Reshaper(rule, std::move(refined)).run();
  }
  for (int i = begin; i < x_end; ++i) rule.atoms.pin_axis(x, i);
  for (int i = begin; i < y_end; ++i) rule.atoms.pin_axis(y, i);
}

}  // namespace limber::channels
