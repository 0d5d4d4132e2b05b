#include <algorithm>

#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

Shape batch_of(const Shape& shape) {
  return Shape(std::vector<Dim>(shape.begin(), shape.end() - std::min(shape.rank(), 2)));
}

// Size of the last axes once transposed; a vector has only `contracted`.
struct Operand {
  std::optional<Dim> kept;
  Dim contracted;
};

Result<Operand> operand(const TensorType& type, bool transposed, bool left) {
  const int rank = type.rank();
  if (rank == 1) {
    if (transposed)
      return invalid("{} has type {} and cannot be transposed", left ? "a" : "b", type.to_string());
    return Operand{std::nullopt, type.shape[0]};
  }
  const bool last_contracted = left != transposed;
  const Dim &last = type.shape[rank - 1], &second = type.shape[rank - 2];
  return last_contracted ? Operand{second, last} : Operand{last, second};
}

Status check_contracted(const InferArgs& args, const Dim& a, const Dim& b) {
  if (may_equal(a, b)) return {};
  return invalid("a has type {} and b {}: cannot multiply over {} and {} elements", args.input(0).to_string(),
                 args.input(1).to_string(), a.to_string(), b.to_string());
}

Result<Types> infer_gemm(const InferArgs& args) {
  const TensorType &a = args.input(0), &b = args.input(1);
  LIMBER_TRY(need_numeric(a, "a"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_rank(a, 2, 2, "a"));
  LIMBER_TRY(need_rank(b, 2, 2, "b"));
  LIMBER_ASSIGN(const bool trans_a, flag_attr(args, "trans_a", false));
  LIMBER_ASSIGN(const bool trans_b, flag_attr(args, "trans_b", false));
  LIMBER_ASSIGN(const Operand left, operand(a, trans_a, true));
  LIMBER_ASSIGN(const Operand right, operand(b, trans_b, false));
  LIMBER_TRY(check_contracted(args, left.contracted, right.contracted));
  TensorType y{a.dtype, {*left.kept, *right.kept}};
  if (args.has(2)) LIMBER_TRY(need_broadcast_to(args.input(2), y.shape, "c"));
  return Types{std::move(y)};
}

Result<Types> infer_matmul(const InferArgs& args) {
  const TensorType &a = args.input(0), &b = args.input(1);
  LIMBER_TRY(need_numeric(a, "a"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_rank(a, 1, kMaxRank, "a"));
  LIMBER_TRY(need_rank(b, 1, kMaxRank, "b"));
  LIMBER_TRY(check_activation(args.attrs));
  LIMBER_ASSIGN(const bool trans_a, flag_attr(args, "trans_a", false));
  LIMBER_ASSIGN(const bool trans_b, flag_attr(args, "trans_b", false));
  LIMBER_ASSIGN(const Operand left, operand(a, trans_a, true));
  LIMBER_ASSIGN(const Operand right, operand(b, trans_b, false));
  LIMBER_TRY(check_contracted(args, left.contracted, right.contracted));
  auto shape = broadcast(batch_of(a.shape), batch_of(b.shape));
  if (!shape) {
    return invalid("a has type {} and b {}: the axes before the last two do not broadcast", a.to_string(),
                   b.to_string());
  }
  if (left.kept) shape->push_back(*left.kept);
  if (right.kept) shape->push_back(*right.kept);
  if (args.has(2)) LIMBER_TRY(need_broadcast_to(args.input(2), *shape, "bias"));
  if (args.has(3)) LIMBER_TRY(need_shape(args.input(3), *shape, "residual"));
  return Types{{a.dtype, *std::move(shape)}};
}

Result<Types> infer_attention(const InferArgs& args) {
  const TensorType &q = args.input(0), &k = args.input(1), &v = args.input(2);
  LIMBER_TRY(need_float(q, "q"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(check_finite(args, "scale"));
  LIMBER_TRY(need_rank(q, 2, kMaxRank, "q"));
  const int rank = q.rank();
  Shape expected_k = q.shape, expected_v = q.shape, scores = q.shape, y = q.shape;
  LIMBER_TRY(need_rank(k, rank, rank, "k"));
  LIMBER_TRY(need_rank(v, rank, rank, "v"));
  expected_k[rank - 2] = expected_v[rank - 2] = scores[rank - 1] = k.shape[rank - 2];
  expected_v[rank - 1] = y[rank - 1] = v.shape[rank - 1];
  LIMBER_TRY(need_shape(k, expected_k, "k"));
  LIMBER_TRY(need_shape(v, expected_v, "v"));
  if (args.has(3)) LIMBER_TRY(need_broadcast_to(args.input(3), scores, "mask"));
  return Types{{q.dtype, std::move(y)}};
}

double last_dim(const Graph& graph, ValueId value, bool second) {
  const Shape& shape = graph.type(value).shape;
  return static_cast<double>(shape.dim(shape.rank() - (second && shape.rank() > 1 ? 2 : 1)));
}

double flops_matmul(const Graph& graph, const Node& node) {
  const bool trans_a = node.attrs.i("trans_a", 0) == 1;
  return 2 * elements(graph, node.outputs[0]) * last_dim(graph, node.inputs[0], trans_a);
}

double flops_attention(const Graph& graph, const Node& node) {
  const double keys = last_dim(graph, node.inputs[1], true);
  return 2 * keys * (elements(graph, node.inputs[0]) + elements(graph, node.outputs[0]));
}

constexpr AttrSpec kGemmAttrs[] = {optional("alpha", AttrKind::kFloat), optional("beta", AttrKind::kFloat),
                                   optional("trans_a", AttrKind::kInt), optional("trans_b", AttrKind::kInt)};
constexpr AttrSpec kMatMulAttrs[] = {
    optional("trans_a", AttrKind::kInt),     optional("trans_b", AttrKind::kInt),
    optional("alpha", AttrKind::kFloat),     optional("act", AttrKind::kString),
    optional("act_alpha", AttrKind::kFloat), optional("act_beta", AttrKind::kFloat)};
constexpr AttrSpec kAttentionAttrs[] = {required("scale", AttrKind::kFloat)};

}  // namespace

constinit const OpDef kGemmOp =
    gradients::with({OpKind::kGemm, 2, 3, 1, 1, kGemmAttrs, infer_gemm, flops_matmul}, gradients::gemm);
constinit const OpDef kMatMulOp = gradients::with(
    {OpKind::kMatMul, 2, 4, 1, 1, kMatMulAttrs, infer_matmul, flops_matmul}, gradients::matmul);
constinit const OpDef kAttentionOp =
    gradients::with({OpKind::kAttention, 3, 4, 1, 1, kAttentionAttrs, infer_attention, flops_attention},
                    gradients::attention);

}  // namespace limber
