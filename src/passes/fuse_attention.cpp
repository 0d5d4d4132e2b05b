#include <numeric>

#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

// Added to the scores. With `grouped`, the scores [B*G,H,M,T] were [B,G,H,M,T] when it was added.
struct Mask {
  ValueId value;
  std::optional<Shape> grouped;
};

// softmax(q k^T * scale + masks), as found above the second product.
struct Scores {
  ValueId q, k;
  bool k_transposed;  // k is [.., D, T]
  double scale;
  std::vector<Mask> masks;
};

// A product of two matrices and nothing else, serving only its reader.
NodeId plain_matmul(const Rewriter& r, ValueId v) {
  const NodeId n = r.producer(v, OpKind::kMatMul);
  if (n == kNoNode || !r.used_once(v)) return kNoNode;
  const bool bare = r.input(n, 2) == kNoValue && r.input(n, 3) == kNoValue &&
                    fused_activation(r.node(n).attrs).op == OpKind::kIdentity;
  return bare && r.node(n).attrs.i("trans_a", 0) == 0 ? n : kNoNode;
}

// Takes scalar factors off `v` into `scale`, as long as nobody else needs the scaled value.
ValueId strip_scale(const Rewriter& r, ValueId v, double& scale) {
  for (auto scaled = as_scaled(r, v); scaled && r.used_once(v); scaled = as_scaled(r, v)) {
    scale *= scaled->factor;
    v = scaled->x;
  }
  return v;
}

std::optional<Scores> product_scores(const Rewriter& r, ValueId v) {
  double scale = 1;
  const ValueId product = strip_scale(r, v, scale);
  const NodeId n = plain_matmul(r, product);
  if (n == kNoNode) return std::nullopt;
  const Attrs& attrs = r.node(n).attrs;
  scale *= attrs.f("alpha", 1);
  Scores scores{r.input(n, 0), r.input(n, 1), attrs.i("trans_b", 0) == 0, 1};
  scores.q = strip_scale(r, scores.q, scale);
  scores.k = strip_scale(r, scores.k, scale);
  scores.scale = scale;
  return scores;
}

constexpr int kMaxMasks = 3;  // additions one after the other that are looked at

// x and the mask of v = x + mask, where x has the type of v; tries the operand that is not static first.
std::optional<std::pair<ValueId, ValueId>> as_masked(const Rewriter& r, ValueId v) {
  const NodeId add = r.producer(v, OpKind::kAdd);
  if (add == kNoNode) return std::nullopt;
  ValueId x = r.input(add, 0), mask = r.input(add, 1);
  const auto fits = [&](ValueId candidate) {
    return r.graph().type(candidate) == r.graph().type(v) && r.used_once(candidate) &&
           !r.is_static(candidate);
  };
  if (!fits(x) || (fits(mask) && product_scores(r, mask))) std::swap(x, mask);
  return fits(x) ? std::optional(std::pair(x, mask)) : std::nullopt;
}

// Windows of several images share a mask: [B*G,H,M,T] is taken apart to [B,G,H,M,T], which gets a mask that
// is the same for all of B and H, and put together again.
std::optional<std::pair<ValueId, Mask>> as_grouped_mask(const Rewriter& r, ValueId v) {
  const NodeId join = r.producer(v, OpKind::kReshape);
  if (join == kNoNode || !r.used_once(r.input(join, 0))) return std::nullopt;
  const auto masked = as_masked(r, r.input(join, 0));
  const NodeId split = masked ? r.producer(masked->first, OpKind::kReshape) : kNoNode;
  if (split == kNoNode) return std::nullopt;
  const ValueId x = r.input(split, 0);
  const Shape &whole = r.graph().type(x).shape, &parts = r.graph().type(masked->first).shape;
  const Shape& mask = r.graph().type(masked->second).shape;
  const bool splits_batch = whole.rank() == 4 && parts.rank() == 5 && parts.is_constant() &&
                            std::equal(whole.begin() + 1, whole.end(), parts.begin() + 2);
  const bool shared = mask.rank() == 5 && mask[0] == Dim(1) && mask[2] == Dim(1);
  if (!splits_batch || !shared || r.graph().type(x) != r.graph().type(v)) return std::nullopt;
  return std::pair(x, Mask{masked->second, parts});
}

std::optional<Scores> masked_scores(const Rewriter& r, ValueId v) {
  std::vector<Mask> masks;
  for (int i = 0; i <= kMaxMasks && r.used_once(v); ++i) {
    if (auto scores = product_scores(r, v)) {
      scores->masks = std::move(masks);
      return scores;
    }
    if (const auto masked = as_masked(r, v)) {
      masks.push_back({masked->second, std::nullopt});
      v = masked->first;
    } else if (const auto grouped = as_grouped_mask(r, v)) {
      masks.push_back(grouped->second);
      v = grouped->first;
    } else {
      break;
    }
  }
  return std::nullopt;
}

// All masks in one; kNoValue when there are none.
Result<ValueId> emit_mask(Rewriter& r, const std::vector<Mask>& masks, const std::string& name) {
  ValueId sum = kNoValue;
  for (const Mask& mask : masks) {
    ValueId v = mask.value;
    if (mask.grouped) {
      const Shape& parts = *mask.grouped;
      const Shape mask_shape = r.graph().type(v).shape;
      LIMBER_ASSIGN(v, r.emit(OpKind::kExpand, {v},
                              {{"shape", Shape{parts[0], parts[1], 1, mask_shape[3], mask_shape[4]}}}, name));
      const Shape joined{parts.dim(0) * parts.dim(1), 1, mask_shape[3], mask_shape[4]};
      LIMBER_ASSIGN(v, r.emit(OpKind::kReshape, {v}, {{"shape", joined}}, name));
    }
    if (sum == kNoValue) {
      sum = v;
    } else {
      LIMBER_ASSIGN(sum, r.emit(OpKind::kAdd, {sum, v}, {}, name));
    }
  }
  return sum;
}

bool same_batch(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && std::equal(a.begin(), a.end() - 2, b.begin());
}

Status attention_rule(Rewriter& r, NodeId n) {
  const Graph& g = r.graph();
  const Node& node = r.node(n);
  if (node.op != OpKind::kMatMul || !is_float(g.type(r.output(n)).dtype)) return {};
  const bool bare = node.inputs.size() == 2 && node.attrs.entries().empty();
  const ValueId weights = node.inputs[0], v = node.inputs[1];
  const NodeId softmax = r.producer(weights, OpKind::kSoftmax);
  const int rank = g.type(weights).rank();
  if (!bare || softmax == kNoNode || !r.used_once(weights) || (rank != 3 && rank != 4)) return {};
  if (r.node(softmax).attrs.i("axis") != rank - 1) return {};
  auto scores = masked_scores(r, r.input(softmax, 0));
  if (!scores) return {};
  const Shape &q_shape = g.type(scores->q).shape, &k_shape = g.type(scores->k).shape;
  if (!same_batch(q_shape, k_shape) || !same_batch(q_shape, g.type(v).shape) || q_shape.rank() != rank)
    return {};

  const std::string name = node.name;
  if (scores->k_transposed) {
    std::vector<int64_t> perm(static_cast<size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    LIMBER_ASSIGN(scores->k, r.emit(OpKind::kTranspose, {scores->k}, {{"perm", perm}}, name + "/k"));
  }
  std::vector<ValueId> inputs{scores->q, scores->k, v};
  LIMBER_ASSIGN(const ValueId mask, emit_mask(r, scores->masks, name + "/mask"));
  if (mask != kNoValue) inputs.push_back(mask);
  LIMBER_ASSIGN(const ValueId y,
                r.emit(OpKind::kAttention, std::move(inputs), {{"scale", scores->scale}}, name));
  r.replace(r.output(n), y);
  return {};
}

}  // namespace

Status fuse_attention(Graph& graph) { return sweep(graph, attention_rule).status(); }

}  // namespace limber
