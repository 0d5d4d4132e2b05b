#include <numeric>

#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

// softmax(q k^T * scale + mask), as found above the second product.
struct Scores {
  ValueId q, k;
  bool k_transposed;  // k is [.., D, T]
  double scale;
  ValueId mask = kNoValue;
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

std::optional<Scores> masked_scores(const Rewriter& r, ValueId v) {
  if (!r.used_once(v)) return std::nullopt;
  if (const auto plain = product_scores(r, v)) return plain;
  const NodeId add = r.producer(v, OpKind::kAdd);
  if (add == kNoNode) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId product = r.input(add, i);
    if (r.graph().type(product) != r.graph().type(v) || !r.used_once(product)) continue;
    auto scores = product_scores(r, product);
    if (!scores) continue;
    scores->mask = r.input(add, 1 - i);
    return scores;
  }
  return std::nullopt;
}

bool same_batch(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && std::equal(a.begin(), a.end() - 2, b.begin());
}

Status attention_rule(Rewriter& r, NodeId n) {
  const Graph& g = r.graph();
  const Node& node = r.node(n);
  if (node.op != OpKind::kMatMul || !is_float(g.type(r.output(n)).dtype)) return {};
  const bool bare = r.input(n, 2) == kNoValue && r.input(n, 3) == kNoValue && node.attrs.entries().empty();
  const ValueId weights = node.inputs[0], v = node.inputs[1];
  const NodeId softmax = r.producer(weights, OpKind::kSoftmax);
  const int rank = g.type(weights).rank();
  if (!bare || softmax == kNoNode || !r.used_once(weights) || (rank != 3 && rank != 4)) return {};
  if (r.node(softmax).attrs.i("axis") != rank - 1) return {};
  auto scores = masked_scores(r, r.input(softmax, 0));
  if (!scores) return {};
  const Shape &q_shape = g.type(scores->q).shape, &k_shape = g.type(scores->k).shape;
  if (!same_batch(q_shape, k_shape) || !same_batch(q_shape, g.type(v).shape) || q_shape.rank() != rank) return {};

  const std::string name = node.name;
  if (scores->k_transposed) {
    std::vector<int64_t> perm(static_cast<size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    LIMBER_ASSIGN(scores->k, r.emit(OpKind::kTranspose, {scores->k}, {{"perm", perm}}, name + "/k"));
  }
  std::vector<ValueId> inputs{scores->q, scores->k, v};
  if (scores->mask != kNoValue) inputs.push_back(scores->mask);
  LIMBER_ASSIGN(const ValueId y, r.emit(OpKind::kAttention, std::move(inputs), {{"scale", scores->scale}}, name));
  r.replace(r.output(n), y);
  return {};
}

}  // namespace

Status fuse_attention(Graph& graph) { return sweep(graph, attention_rule).status(); }

}  // namespace limber
