// Types and costs of the operators that only gradients and optimisers use. Their shapes follow from the
// forward node they belong to, so the rules check what a wrong rule would get wrong.
#include "ops/window.h"

namespace limber {
namespace {

using namespace rules;

// "shape": the type of x, with the dtype of dy.
Result<TensorType> shape_of_x(const InferArgs& args) {
  TensorType x{args.input(0).dtype, args.attrs.dims("shape")};
  LIMBER_TRY(check_type(x));
  return x;
}

Status need_same_type(const InferArgs& args, int a, int b, std::string_view what) {
  if (args.input(a) == args.input(b)) return {};
  return invalid("input {} has type {} and input {} {}, expected {}", a, args.input(a).to_string(), b,
                 args.input(b).to_string(), what);
}

// dy is what a Conv with a kernel of these dimensions (from index 2 on) makes of x.
Status need_conv_of(const InferArgs& args, const TensorType& x, const Shape& kernel, const TensorType& dy) {
  Shape expected{x.shape[0], dy.shape[1]};
  for (int i = 0; i < x.rank() - 2; ++i) {
    const Dim& k = kernel[2 + i];
    if (!k.is_constant() || k.value() < 1 || k.value() > kMaxExtent)
      return invalid("kernel size {} is not a number from 1 to {}", k.to_string(), kMaxExtent);
    LIMBER_ASSIGN(const Dim size,
                  window_count(x.shape[2 + i], window_at(args, x.rank() - 2, i, k.value()), i));
    expected.push_back(size);
  }
  return need_shape(dy, expected, "dy");
}

Result<int64_t> groups_of(const InferArgs& args) { return int_attr(args, "groups", 1, 1, kMaxExtent); }

Result<Types> infer_conv_backward_data(const InferArgs& args) {
  const TensorType &dy = args.input(0), &w = args.input(1);
  LIMBER_TRY(need_float(dy, "dy"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_rank(dy, 3, kMaxRank, "dy"));
  LIMBER_TRY(need_rank(w, dy.rank(), dy.rank(), "weights"));
  LIMBER_TRY(check_window_attrs(args, dy.rank() - 2));
  LIMBER_ASSIGN(const int64_t groups, groups_of(args));
  LIMBER_ASSIGN(const TensorType x, shape_of_x(args));
  const auto channels = mul(w.shape[1], groups);
  if (x.rank() != dy.rank() || !channels || x.shape[1] != *channels || dy.shape[1] != w.shape[0]) {
    return invalid("dy {} and weights {} with groups {} do not belong to an x of shape [{}]", dy.to_string(),
                   w.to_string(), groups, x.shape.to_string());
  }
  LIMBER_TRY(need_conv_of(args, x, w.shape, dy));
  return Types{x};
}

Result<Types> infer_conv_backward_weights(const InferArgs& args) {
  const TensorType &x = args.input(0), &dy = args.input(1);
  LIMBER_TRY(need_float(x, "x"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_rank(x, 3, kMaxRank, "x"));
  LIMBER_TRY(need_rank(dy, x.rank(), x.rank(), "dy"));
  LIMBER_TRY(check_ints(args, "kernel", x.rank() - 2, 1, kMaxExtent));
  LIMBER_TRY(check_window_attrs(args, x.rank() - 2));
  LIMBER_ASSIGN(const int64_t groups, groups_of(args));
  const auto channels = div_exact(x.shape[1], Dim(groups));
  if (!channels) return invalid("{} channels do not divide into {} groups", x.shape[1].to_string(), groups);
  TensorType dw{x.dtype, {dy.shape[1], *channels}};
  for (int64_t k : args.attrs.ints("kernel")) dw.shape.push_back(Dim(k));
  LIMBER_TRY(need_conv_of(args, x, dw.shape, dy));
  if (!div_exact(dy.shape[1], Dim(groups)))
    return invalid("{} channels of dy do not divide into {} groups", dy.shape[1].to_string(), groups);
  Types types{std::move(dw)};
  if (args.num_outputs > 1) types.push_back({x.dtype, {dy.shape[1]}});
  return types;
}

double flops_conv_backward_data(const Graph& graph, const Node& node) {
  const Shape& w = graph.type(node.inputs[1]).shape;
  double taps = 1;
  for (int i = 1; i < w.rank(); ++i) taps *= static_cast<double>(w.dim(i));
  return 2 * elements(graph, node.inputs[0]) * taps;
}

double flops_conv_backward_weights(const Graph& graph, const Node& node) {
  double taps = static_cast<double>(graph.type(node.inputs[0]).shape.dim(1)) /
                static_cast<double>(node.attrs.i("groups", 1));
  for (int64_t k : node.attrs.ints("kernel")) taps *= static_cast<double>(k);
  return 2 * elements(graph, node.inputs[1]) * taps;
}

Result<Types> infer_batch_norm_backward(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_float(x, "x"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_rank(x, 2, kMaxRank, "x"));
  LIMBER_TRY(need_same_type(args, 0, 1, "x and dy alike"));
  LIMBER_TRY(flag_attr(args, "frozen", false).status());
  LIMBER_TRY(choice_attr(args, "act", "", {"", "relu"}).status());
  for (int i = 2; i < 6; ++i) LIMBER_TRY(need_vector(args, i, x.shape[1], fmt::format("input {}", i)));
  Types types{x, args.input(2), args.input(2)};
  types.resize(static_cast<size_t>(args.num_outputs));
  return types;
}

Result<Types> infer_batch_norm_apply(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_float(x, "x"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_rank(x, 2, kMaxRank, "x"));
  LIMBER_TRY(choice_attr(args, "act", "", {"", "relu"}).status());
  for (int i = 1; i < 5; ++i) LIMBER_TRY(need_vector(args, i, x.shape[1], fmt::format("input {}", i)));
  return Types{x};
}

Result<Types> infer_layer_norm_backward(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_float(x, "x"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_same_type(args, 0, 1, "x and dy alike"));
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", x.rank()));
  Shape statistics = x.shape;
  for (int i = axis; i < x.rank(); ++i) statistics[i] = 1;
  LIMBER_TRY(need_shape(args.input(2), statistics, "mean"));
  LIMBER_TRY(need_shape(args.input(3), statistics, "inv_std"));
  const TensorType row{x.dtype, Shape(std::vector<Dim>(x.shape.begin() + axis, x.shape.end()))};
  if (args.has(4)) LIMBER_TRY(need_broadcast_to(args.input(4), row.shape, "scale"));
  Types types{x, row, row};
  types.resize(static_cast<size_t>(args.num_outputs));
  return types;
}

Result<Types> infer_softmax_backward(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "y"));
  LIMBER_TRY(need_same_type(args, 0, 1, "y and dy alike"));
  LIMBER_TRY(axis_attr(args, "axis", args.input(0).rank()).status());
  return Types{args.input(0)};
}

Result<Types> infer_activation_backward(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "dy"));
  LIMBER_TRY(need_same_type(args, 0, 1, "dy and x alike"));
  LIMBER_TRY(check_activation(args.attrs));
  LIMBER_ASSIGN(const bool from_output, flag_attr(args, "from_output", false));
  if (args.attrs.s("act").empty()) return invalid("attribute 'act' is empty");
  if (from_output && !known_from_output(fused_activation(args.attrs))) {
    return invalid("the gradient of '{}' cannot be told from its result", args.attrs.s("act"));
  }
  return Types{args.input(0)};
}

Result<Types> infer_max_pool_backward(const InferArgs& args) {
  const TensorType &x = args.input(0), &dy = args.input(1);
  LIMBER_TRY(need_float(x, "x"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_ASSIGN(const TensorType y, pooled(args, x));
  LIMBER_TRY(need_shape(dy, y.shape, "dy"));
  return Types{x};
}

Result<Types> infer_average_pool_backward(const InferArgs& args) {
  const TensorType& dy = args.input(0);
  LIMBER_TRY(need_float(dy, "dy"));
  LIMBER_TRY(flag_attr(args, "count_include_pad", false).status());
  LIMBER_ASSIGN(const TensorType x, shape_of_x(args));
  LIMBER_ASSIGN(const TensorType y, pooled(args, x));
  LIMBER_TRY(need_shape(dy, y.shape, "dy"));
  return Types{x};
}

Result<Types> infer_gather_backward(const InferArgs& args) {
  const TensorType& dy = args.input(0);
  LIMBER_TRY(need_float(dy, "dy"));
  LIMBER_TRY(need_index(args.input(1), "indices"));
  LIMBER_ASSIGN(const TensorType x, shape_of_x(args));
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", x.rank()));
  std::vector<Dim> expected(x.shape.begin(), x.shape.begin() + axis);
  expected.insert(expected.end(), args.input(1).shape.begin(), args.input(1).shape.end());
  expected.insert(expected.end(), x.shape.begin() + axis + 1, x.shape.end());
  LIMBER_TRY(need_shape(dy, Shape(std::move(expected)), "dy"));
  return Types{x};
}

Result<Types> infer_prod_backward(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_float(x, "x"));
  LIMBER_TRY(need_same_dtype(args));
  Shape reduced = x.shape;
  for (int64_t axis : args.attrs.ints("axes")) {
    if (axis < 0 || axis >= x.rank()) return invalid("axis {} of {} does not exist", axis, x.to_string());
    reduced[static_cast<int>(axis)] = 1;
  }
  LIMBER_TRY(need_shape(args.input(1), reduced, "dy"));
  return Types{x};
}

// --- optimisers ---------------------------------------------------------------------------------------

Status check_update(const InferArgs& args, std::initializer_list<int> like_w,
                    std::initializer_list<int> scalars) {
  LIMBER_TRY(need_float(args.input(0), "w"));
  for (int i : like_w) {
    if (args.has(i)) LIMBER_TRY(need_same_type(args, 0, i, "both like the parameter"));
  }
  for (int i : scalars) {
    if (!args.has(i)) continue;
    if (args.input(i).dtype != DType::kF32 || args.input(i).rank() != 0)
      return invalid("input {} has type {}, expected f32[]", i, args.input(i).to_string());
  }
  return {};
}

const TensorType kEffectType{DType::kF32, Shape{kUpdateEffects}};

Result<Types> infer_sgd_update(const InferArgs& args) {
  LIMBER_TRY(check_update(args, {1, 3}, {2, 4}));
  for (const char* name : {"momentum", "dampening", "decay"}) LIMBER_TRY(check_finite(args, name));
  for (const char* name : {"nesterov", "decoupled"}) LIMBER_TRY(flag_attr(args, name, false).status());
  const bool has_velocity = args.num_outputs > 1 && (args.num_outputs == 2 || args.has(3));
  if (has_velocity != args.has(3)) return invalid("velocity must be both read and written");
  Types types(static_cast<size_t>(args.num_outputs), args.input(0));
  if (args.num_outputs > 2) types[2] = kEffectType;
  return types;
}

Result<Types> infer_adam_update(const InferArgs& args) {
  LIMBER_TRY(check_update(args, {1, 3, 4}, {2, 5, 6}));
  for (const char* name : {"beta1", "beta2", "epsilon", "decay"}) LIMBER_TRY(check_finite(args, name));
  LIMBER_TRY(flag_attr(args, "decoupled", true).status());
  Types types(static_cast<size_t>(args.num_outputs), args.input(0));
  types[3] = args.input(5);
  if (args.num_outputs > 4) types[4] = kEffectType;
  return types;
}

constexpr AttrSpec kShape = required("shape", AttrKind::kDims);
constexpr AttrSpec kKernel = required("kernel", AttrKind::kInts);
constexpr AttrSpec kStrides = required("strides", AttrKind::kInts);
constexpr AttrSpec kPads = required("pads", AttrKind::kInts);
constexpr AttrSpec kDilations = required("dilations", AttrKind::kInts);
constexpr AttrSpec kGroups = optional("groups", AttrKind::kInt);
constexpr AttrSpec kCeilMode = optional("ceil_mode", AttrKind::kInt);
constexpr AttrSpec kAct = optional("act", AttrKind::kString);

constexpr AttrSpec kDataAttrs[] = {kShape, kStrides, kPads, kDilations, kGroups};
constexpr AttrSpec kWeightsAttrs[] = {kKernel, kStrides, kPads, kDilations, kGroups};
constexpr AttrSpec kBatchNormAttrs[] = {optional("frozen", AttrKind::kInt), kAct};
constexpr AttrSpec kApplyAttrs[] = {kAct};
constexpr AttrSpec kAxis[] = {required("axis", AttrKind::kInt)};
constexpr AttrSpec kActivationAttrs[] = {
    required("act", AttrKind::kString), optional("act_alpha", AttrKind::kFloat),
    optional("act_beta", AttrKind::kFloat), optional("from_output", AttrKind::kInt)};
constexpr AttrSpec kMaxPoolAttrs[] = {kKernel, kStrides, kPads, kDilations, kCeilMode};
constexpr AttrSpec kAveragePoolAttrs[] = {kShape, kKernel,   kStrides,
                                          kPads,  kCeilMode, optional("count_include_pad", AttrKind::kInt)};
constexpr AttrSpec kGatherAttrs[] = {kShape, required("axis", AttrKind::kInt)};
constexpr AttrSpec kAxes[] = {required("axes", AttrKind::kInts)};
constexpr AttrSpec kSgdAttrs[] = {optional("momentum", AttrKind::kFloat),
                                  optional("dampening", AttrKind::kFloat),
                                  optional("nesterov", AttrKind::kInt), optional("decay", AttrKind::kFloat),
                                  optional("decoupled", AttrKind::kInt)};
constexpr AttrSpec kAdamAttrs[] = {required("beta1", AttrKind::kFloat), required("beta2", AttrKind::kFloat),
                                   required("epsilon", AttrKind::kFloat), optional("decay", AttrKind::kFloat),
                                   optional("decoupled", AttrKind::kInt)};

constexpr InPlace kSgdInPlace[] = {{0, 0}, {1, 3}};
constexpr InPlace kAdamInPlace[] = {{0, 0}, {1, 3}, {2, 4}, {3, 5}};

}  // namespace

constinit const OpDef kConvBackwardDataOp = {
    OpKind::kConvBackwardData, 2, 2, 1, 1, kDataAttrs, infer_conv_backward_data, flops_conv_backward_data};
constinit const OpDef kConvBackwardWeightsOp = {
    OpKind::kConvBackwardWeights, 2, 2, 1, 2, kWeightsAttrs, infer_conv_backward_weights,
    flops_conv_backward_weights};
constinit const OpDef kBatchNormBackwardOp = {
    OpKind::kBatchNormBackward, 6, 6, 1, 3, kBatchNormAttrs, infer_batch_norm_backward,
    flops_per_element<10>};
constinit const OpDef kBatchNormApplyOp = {
    OpKind::kBatchNormApply, 5, 5, 1, 1, kApplyAttrs, infer_batch_norm_apply, flops_per_element<2>};
constinit const OpDef kLayerNormBackwardOp = {
    OpKind::kLayerNormBackward, 4, 5, 1, 3, kAxis, infer_layer_norm_backward, flops_per_element<10>};
constinit const OpDef kSoftmaxBackwardOp = {
    OpKind::kSoftmaxBackward, 2, 2, 1, 1, kAxis, infer_softmax_backward, flops_per_element<4>};
constinit const OpDef kActivationBackwardOp = {
    OpKind::kActivationBackward, 2, 2, 1, 1, kActivationAttrs, infer_activation_backward,
    flops_per_element<2>};
constinit const OpDef kMaxPoolBackwardOp = {
    OpKind::kMaxPoolBackward, 2, 2, 1, 1, kMaxPoolAttrs, infer_max_pool_backward, flops_per_element<2>};
constinit const OpDef kAveragePoolBackwardOp = {OpKind::kAveragePoolBackward,
                                                1,
                                                1,
                                                1,
                                                1,
                                                kAveragePoolAttrs,
                                                infer_average_pool_backward,
                                                flops_of_outputs};
constinit const OpDef kGatherBackwardOp = {
    OpKind::kGatherBackward, 2, 2, 1, 1, kGatherAttrs, infer_gather_backward, flops_of_inputs};
constinit const OpDef kProdBackwardOp = {OpKind::kProdBackward, 2, 2, 1, 1, kAxes, infer_prod_backward,
                                         flops_per_element<4>};
constinit const OpDef kSgdUpdateOp = {
    OpKind::kSgdUpdate, 3,       5,          1, 3, kSgdAttrs, infer_sgd_update, flops_per_element<5>,
    OpFamily::kOther,   nullptr, kSgdInPlace};
constinit const OpDef kAdamUpdateOp = {
    OpKind::kAdamUpdate, 6,       7,           4, 5, kAdamAttrs, infer_adam_update, flops_per_element<12>,
    OpFamily::kOther,    nullptr, kAdamInPlace};

}  // namespace limber
