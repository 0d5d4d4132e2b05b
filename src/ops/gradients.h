// The gradient rules, one per operator or family, and what they are made of. Internal to ops/.
// Rules lean on what lets memory go early: on y rather than on x where either will do.
#pragma once

#include "ops/gradient.h"

namespace limber::gradients {

using Rule = void(GradientContext& g);

constexpr OpDef with(OpDef def, Rule* rule) {
  def.gradient = rule;
  return def;
}

// The gradient is zero everywhere it exists.
Rule zero;

Rule identity, cast, abs, neg, reciprocal, sqrt, exp, log, erf;
Rule sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh;
Rule activation;  // every operator that fuses as `act`
Rule softsign, celu, selu, thresholded_relu, shrink;

Rule add, sub, mul, div, pow, mod, min, max, prelu, where;

Rule conv, conv_transpose, gemm, matmul, einsum, attention;

Rule batch_norm, batch_norm_training, layer_norm, instance_norm, group_norm, lrn, lp_norm;

Rule max_pool, average_pool, lp_pool, global_average_pool, global_max_pool, global_lp_pool;

Rule reduce_sum, reduce_mean, reduce_extreme, reduce_prod, reduce_l1, reduce_l2;
Rule reduce_log_sum, reduce_log_sum_exp, reduce_sum_square;
Rule softmax, log_softmax, top_k, cum_sum;

Rule reshape, transpose, expand, tile, concat, split, slice, pad, trilu, reverse_sequence;
Rule depth_to_space, space_to_depth, resize;

Rule gather, gather_elements, gather_nd, scatter_elements, scatter_nd, one_hot;

// --- what rules share -----------------------------------------------------------------------------------

using Ints = std::vector<int64_t>;

ValueId choose(GradientContext& g, ValueId condition, ValueId a, ValueId b);
// `a` where the condition holds, else 0.
ValueId keep_where(GradientContext& g, ValueId condition, ValueId a);
ValueId compare(GradientContext& g, OpKind op, ValueId a, double b);
ValueId square(GradientContext& g, ValueId a);
// dy before the fused activation of a Conv or MatMul. Fails when that cannot be told from y.
ValueId before_activation(GradientContext& g);
// The attributes without those named.
Attrs without(Attrs attrs, std::initializer_list<std::string_view> names);
// A constant of indices along one axis.
ValueId index_constant(GradientContext& g, const Ints& indices);
// All axes but one.
Ints axes_except(int rank, int axis);

}  // namespace limber::gradients
