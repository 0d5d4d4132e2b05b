#include "passes/affine.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

std::string name_of(const Rewriter& r, NodeId n, const char* part) {
  return r.graph().value(r.output(n)).name + part;
}

// [1, .., size, .., 1]
Shape along(int axis, int rank, Dim size) {
  std::vector<Dim> dims(static_cast<size_t>(rank), Dim(1));
  dims[static_cast<size_t>(axis)] = size;
  return Shape(std::move(dims));
}

// w with each slice along `axis` multiplied by its element of `scale` (or all by its only one).
Result<ValueId> scale_along(Rewriter& r, ValueId w, ValueId scale, int axis, const std::string& name) {
  const Dim size = r.graph().type(scale).shape[0];
  LIMBER_ASSIGN(const ValueId factor,
                emit_reshaped(r, scale, along(axis, r.graph().type(w).rank(), size), name + "/scale"));
  return r.emit(OpKind::kMul, {w, factor}, {}, name);
}

bool has_post_ops(const Rewriter& r, NodeId n) {
  return fused_activation(r.node(n).attrs).op != OpKind::kIdentity || r.input(n, 3) != kNoValue;
}

bool is_static_or_absent(const Rewriter& r, ValueId v) { return v == kNoValue || r.is_static(v); }

// bias * scale + shift in the shape of a bias; kNoValue when there is nothing to add.
Result<ValueId> fold_bias(Rewriter& r, NodeId n, ValueId bias, const Affine& affine, const Shape& shape) {
  if (bias != kNoValue) {
    LIMBER_ASSIGN(bias, emit_product(r, bias, affine.scale, name_of(r, n, "/bias")));
  }
  LIMBER_ASSIGN(bias, emit_sum(r, bias, affine.shift, name_of(r, n, "/bias")));
  if (bias == kNoValue || r.graph().type(bias).rank() > shape.rank()) return bias;
  return emit_expanded(r, bias, shape, name_of(r, n, "/bias"));
}

// --- into the node that makes x ------------------------------------------------------------------------

// Each returns false, having changed nothing, when it does not apply.

Result<bool> into_conv(Rewriter& r, NodeId conv, const AffineNode& affine) {
  const Dim channels = r.graph().type(affine.x).shape[1];
  const ValueId w = r.input(conv, 1), bias = r.input(conv, 2);
  if (has_post_ops(r, conv) || !r.is_static(w) || !is_static_or_absent(r, bias)) return false;
  if (!is_per_channel(r, affine, 1, channels)) return false;
  LIMBER_ASSIGN(const Affine folded, emit_affine(r, affine));
  if (folded.scale != kNoValue) {
    LIMBER_ASSIGN(const ValueId scaled, scale_along(r, w, folded.scale, 0, name_of(r, conv, "/weight")));
    r.set_input(conv, 1, scaled);
  }
  LIMBER_ASSIGN(const ValueId new_bias, fold_bias(r, conv, bias, folded, {channels}));
  if (new_bias != bias) r.set_input(conv, 2, new_bias);
  return true;
}

// The output channels of w[C, O/groups, ..] are O/groups per group of C/groups rows.
Result<ValueId> scale_transposed(Rewriter& r, ValueId w, ValueId scale, int64_t groups,
                                 const std::string& name) {
  const Shape shape = r.graph().type(w).shape;
  if (groups == 1 || r.graph().type(scale).shape[0] == Dim(1)) return scale_along(r, w, scale, 1, name);
  Shape split({groups, shape.dim(0) / groups});
  for (int i = 1; i < shape.rank(); ++i) split.push_back(shape[i]);
  Shape factor_shape = along(2, split.rank(), shape[1]);
  factor_shape[0] = groups;
  LIMBER_ASSIGN(const ValueId grouped, emit_reshaped(r, w, split, name + "/grouped"));
  LIMBER_ASSIGN(const ValueId factor, emit_reshaped(r, scale, factor_shape, name + "/scale"));
  LIMBER_ASSIGN(const ValueId scaled, r.emit(OpKind::kMul, {grouped, factor}, {}, name));
  return emit_reshaped(r, scaled, shape, name);
}

Result<bool> into_conv_transpose(Rewriter& r, NodeId conv, const AffineNode& affine) {
  const Dim channels = r.graph().type(affine.x).shape[1];
  const ValueId w = r.input(conv, 1), bias = r.input(conv, 2);
  if (!r.is_static(w) || !is_static_or_absent(r, bias) || r.graph().type(w).rank() >= kMaxRank) return false;
  if (!r.graph().type(w).shape.is_constant() || !is_per_channel(r, affine, 1, channels)) return false;
  const int64_t groups = r.node(conv).attrs.i("groups", 1);
  LIMBER_ASSIGN(const Affine folded, emit_affine(r, affine));
  if (folded.scale != kNoValue) {
    LIMBER_ASSIGN(const ValueId scaled,
                  scale_transposed(r, w, folded.scale, groups, name_of(r, conv, "/weight")));
    r.set_input(conv, 1, scaled);
  }
  LIMBER_ASSIGN(const ValueId new_bias, fold_bias(r, conv, bias, folded, {channels}));
  if (new_bias != bias) r.set_input(conv, 2, new_bias);
  return true;
}

// A product with a scalar constant needs no weights to change.
bool fold_into_alpha(Rewriter& r, NodeId matmul, const AffineNode& affine) {
  const auto scaled = as_scaled(r, r.output(affine.node));
  if (!scaled || r.input(matmul, 2) != kNoValue) return false;
  Attrs& attrs = r.edit_attrs(matmul);
  attrs.set("alpha", attrs.f("alpha", 1) * scaled->factor);
  return true;
}

Result<bool> into_matmul(Rewriter& r, NodeId matmul, const AffineNode& affine) {
  const Graph& g = r.graph();
  const ValueId w = r.input(matmul, 1), bias = r.input(matmul, 2);
  const int rank = g.type(affine.x).rank();
  if (has_post_ops(r, matmul) || !is_static_or_absent(r, bias) || g.type(w).rank() < 2) return false;
  const bool scales = r.node(affine.node).op != OpKind::kAdd && r.node(affine.node).op != OpKind::kSub;
  if (scales && (!r.is_static(w) || g.type(w).rank() != 2)) return fold_into_alpha(r, matmul, affine);
  const Dim channels = g.type(affine.x).shape[rank - 1];
  if (!is_per_channel(r, affine, rank - 1, channels)) return false;
  const bool transposed = r.node(matmul).attrs.i("trans_b", 0) == 1;
  LIMBER_ASSIGN(const Affine folded, emit_affine(r, affine));
  if (folded.scale != kNoValue) {
    const int axis = transposed ? 0 : 1;
    LIMBER_ASSIGN(const ValueId scaled, scale_along(r, w, folded.scale, axis, name_of(r, matmul, "/weight")));
    r.set_input(matmul, 1, scaled);
  }
  LIMBER_ASSIGN(const ValueId new_bias, fold_bias(r, matmul, bias, folded, {channels}));
  if (new_bias != bias) r.set_input(matmul, 2, new_bias);
  return true;
}

// BatchNorm, InstanceNorm, GroupNorm: scale and bias per channel come last.
Result<bool> into_channel_norm(Rewriter& r, NodeId norm, const AffineNode& affine) {
  const Dim channels = r.graph().type(affine.x).shape[1];
  const ValueId scale = r.input(norm, 1), bias = r.input(norm, 2);
  if (!r.is_static(scale) || !r.is_static(bias) || !is_per_channel(r, affine, 1, channels)) return false;
  LIMBER_ASSIGN(const Affine folded, emit_affine(r, affine));
  LIMBER_ASSIGN(const ValueId new_scale, emit_product(r, scale, folded.scale, name_of(r, norm, "/scale")));
  LIMBER_ASSIGN(const ValueId new_bias, fold_bias(r, norm, bias, folded, {channels}));
  if (new_scale != scale) r.set_input(norm, 1, new_scale);
  r.set_input(norm, 2, new_bias);
  return true;
}

// Multiplies scale and bias of a LayerNorm by `factor`, adds `term` to its bias; kNoValue: nothing.
Status rescale_layer_norm(Rewriter& r, NodeId norm, const Affine& folded, const Shape& normalized) {
  const ValueId scale = r.input(norm, 1), bias = r.input(norm, 2);
  LIMBER_ASSIGN(ValueId new_scale, emit_product(r, scale, folded.scale, name_of(r, norm, "/scale")));
  LIMBER_ASSIGN(new_scale, emit_expanded(r, new_scale, normalized, name_of(r, norm, "/scale")));
  LIMBER_ASSIGN(const ValueId new_bias, fold_bias(r, norm, bias, folded, normalized));
  if (new_scale != scale) r.set_input(norm, 1, new_scale);
  if (new_bias != bias) r.set_input(norm, 2, new_bias);
  return {};
}

// The axes a LayerNorm works on; nullopt when its scale and bias cannot change.
std::optional<Shape> normalized_shape(const Rewriter& r, NodeId norm) {
  const Shape& shape = r.graph().type(r.output(norm)).shape;
  const Shape normalized(std::vector<Dim>(shape.begin() + r.node(norm).attrs.i("axis"), shape.end()));
  const bool open = r.node(norm).outputs.size() == 1 && is_static_or_absent(r, r.input(norm, 1)) &&
                    is_static_or_absent(r, r.input(norm, 2)) && normalized.is_constant();
  return open ? std::optional(normalized) : std::nullopt;
}

Result<bool> into_layer_norm(Rewriter& r, NodeId norm, const AffineNode& affine) {
  const auto normalized = normalized_shape(r, norm);
  const OpKind op = r.node(affine.node).op;
  if (!normalized || (op != OpKind::kMul && op != OpKind::kAdd)) return false;
  const auto operand_shape = without_leading_ones(r.graph().type(affine.operand).shape, normalized->rank());
  if (!operand_shape) return false;
  LIMBER_ASSIGN(const ValueId v,
                emit_reshaped(r, affine.operand, *operand_shape, name_of(r, norm, "/operand")));
  const Affine folded = op == OpKind::kMul ? Affine{v, kNoValue} : Affine{kNoValue, v};
  LIMBER_TRY(rescale_layer_norm(r, norm, folded, *normalized));
  return true;
}

// A LayerNorm over channels that were last and are turned back to axis 1.
Result<bool> into_turned_layer_norm(Rewriter& r, NodeId transpose, const AffineNode& affine) {
  const ValueId turned = r.input(transpose, 0);
  const NodeId norm = r.producer(turned, OpKind::kLayerNorm);
  if (norm == kNoNode || !r.used_once(turned) || affine.operand == kNoValue) return false;
  const auto normalized = normalized_shape(r, norm);
  const int rank = r.graph().type(turned).rank();
  if (!normalized || normalized->rank() != 1 || r.node(transpose).attrs.ints("perm")[1] != rank - 1)
    return false;
  if (!is_per_channel(r, affine, 1, (*normalized)[0])) return false;
  LIMBER_ASSIGN(const Affine folded, emit_affine(r, affine));
  LIMBER_TRY(rescale_layer_norm(r, norm, folded, *normalized));
  return true;
}

Result<bool> into_producer(Rewriter& r, const AffineNode& affine) {
  const NodeId producer = r.graph().value(affine.x).producer;
  if (producer == kNoNode || !r.used_once(affine.x) || r.output(producer) != affine.x) return false;
  switch (r.node(producer).op) {
    case OpKind::kConv:
      return into_conv(r, producer, affine);
    case OpKind::kConvTranspose:
      return into_conv_transpose(r, producer, affine);
    case OpKind::kMatMul:
      return into_matmul(r, producer, affine);
    case OpKind::kBatchNorm:
    case OpKind::kInstanceNorm:
    case OpKind::kGroupNorm:
      return into_channel_norm(r, producer, affine);
    case OpKind::kTranspose:
      return into_turned_layer_norm(r, producer, affine);
    case OpKind::kLayerNorm:
      return into_layer_norm(r, producer, affine);
    default:
      return false;
  }
}

// --- into the Conv that reads y ------------------------------------------------------------------------

bool is_unpadded(const Attrs& attrs) {
  for (int64_t pad : attrs.ints("pads")) {
    if (pad != 0) return false;
  }
  return true;
}

// conv(x*s + t) = conv'(x) + sum of w*t: only where no padding brings zeros in after the shift.
Result<bool> into_reading_conv(Rewriter& r, NodeId conv) {
  const ValueId x = r.input(conv, 0), w = r.input(conv, 1), bias = r.input(conv, 2);
  const NodeId producer = r.graph().value(x).producer;
  if (producer == kNoNode || !r.used_once(x)) return false;
  const auto affine = as_affine(r, producer);
  const Attrs& attrs = r.node(conv).attrs;
  if (!affine || attrs.i("groups", 1) != 1 || !is_unpadded(attrs) || has_post_ops(r, conv)) return false;
  if (!r.is_static(w) || !is_static_or_absent(r, bias)) return false;
  if (!is_per_channel(r, *affine, 1, r.graph().type(x).shape[1])) return false;

  const std::string name = name_of(r, conv, "/weight");
  LIMBER_ASSIGN(const Affine folded, emit_affine(r, *affine));
  if (folded.shift != kNoValue) {
    std::vector<int64_t> axes;
    for (int i = 1; i < r.graph().type(w).rank(); ++i) axes.push_back(i);
    LIMBER_ASSIGN(const ValueId shifted, scale_along(r, w, folded.shift, 1, name + "/shift"));
    LIMBER_ASSIGN(const ValueId sum,
                  r.emit(OpKind::kReduceSum, {shifted}, {{"axes", axes}, {"keepdims", int64_t{0}}}, name));
    LIMBER_ASSIGN(const ValueId new_bias, emit_sum(r, bias, sum, name_of(r, conv, "/bias")));
    r.set_input(conv, 2, new_bias);
  }
  if (folded.scale != kNoValue) {
    LIMBER_ASSIGN(const ValueId scaled, scale_along(r, w, folded.scale, 1, name));
    r.set_input(conv, 1, scaled);
  }
  r.set_input(conv, 0, affine->x);
  return true;
}

Status fold_rule(Rewriter& r, NodeId n) {
  if (r.node(n).op == OpKind::kConv) return into_reading_conv(r, n).status();
  const auto affine = as_affine(r, n);
  if (!affine) return {};
  LIMBER_ASSIGN(const bool folded, into_producer(r, *affine));
  if (folded) LIMBER_ASSERT(r.replace(r.output(n), affine->x));
  return {};
}

}  // namespace

Status fold_batch_norm(Graph& graph) { return sweep_all(graph, fold_rule); }

}  // namespace limber
