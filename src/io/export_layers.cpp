// Convolution, matrix products, normalisation, pooling, reductions.
#include <numeric>

#include "io/exporter.h"
#include "io/importer.h"

namespace limber::onnx_io {
namespace {

// The attributes of `attrs` named in `pairs` (IR name, ONNX name), where present.
Attrs renamed(const Attrs& attrs, std::initializer_list<std::pair<const char*, const char*>> pairs) {
  Attrs out;
  for (const auto& [from, to] : pairs) {
    if (const AttrValue* value = attrs.find(from)) out.set(to, *value);
  }
  return out;
}

// What comes after a fused product: residual, then activation. Writes the node's output from `y`.
void finish(Exporter& e, const Node& node, std::string y, ValueId residual) {
  const std::string out = e.name(node.outputs[0]);
  const Activation activation = fused_activation(node.attrs);
  const bool activates = activation.op != OpKind::kIdentity;
  if (residual != kNoValue) {
    if (!activates) return e.write("Add", {y, e.name(residual)}, {out});
    y = e.node("Add", {y, e.name(residual)});
  }
  if (activates) return export_activation(e, activation, y, e.type(node.outputs[0]).dtype, out);
  e.write("Identity", {y}, {out});
}

ValueId input(const Node& node, size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }

bool fused(const Node& node, size_t residual) {
  return input(node, residual) != kNoValue || fused_activation(node.attrs).op != OpKind::kIdentity;
}

Status conv(Exporter& e, const Node& node) {
  const Attrs attrs =
      renamed(node.attrs,
              {{"strides", "strides"}, {"pads", "pads"}, {"dilations", "dilations"}, {"groups", "group"}});
  const Names inputs = e.names({node.inputs[0], node.inputs[1], input(node, 2)});
  if (!fused(node, 3)) {
    e.write("Conv", inputs, e.names(node.outputs), attrs);
  } else {
    finish(e, node, e.node("Conv", inputs, attrs), input(node, 3));
  }
  return {};
}

Status conv_transpose(Exporter& e, const Node& node) {
  e.write("ConvTranspose", e.names(node.inputs), e.names(node.outputs),
          renamed(node.attrs, {{"strides", "strides"},
                               {"pads", "pads"},
                               {"dilations", "dilations"},
                               {"output_padding", "output_padding"},
                               {"groups", "group"}}));
  return {};
}

// `x` with its last two axes exchanged.
std::string swapped(Exporter& e, ValueId x) {
  std::vector<int64_t> perm(static_cast<size_t>(e.type(x).rank()));
  std::iota(perm.begin(), perm.end(), 0);
  if (perm.size() > 1) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return e.node("Transpose", {e.name(x)}, {{"perm", perm}});
}

Status mat_mul(Exporter& e, const Node& node) {
  const std::string a = node.attrs.i("trans_a", 0) != 0 ? swapped(e, node.inputs[0]) : e.name(node.inputs[0]);
  const std::string b = node.attrs.i("trans_b", 0) != 0 ? swapped(e, node.inputs[1]) : e.name(node.inputs[1]);
  const double alpha = node.attrs.f("alpha", 1);
  const ValueId bias = input(node, 2);
  if (alpha == 1 && bias == kNoValue && !fused(node, 3)) {
    e.write("MatMul", {a, b}, e.names(node.outputs));
    return {};
  }
  std::string y = e.node("MatMul", {a, b});
  if (alpha != 1) y = e.node("Mul", {y, e.number(alpha, e.type(node.outputs[0]).dtype)});
  if (bias != kNoValue) y = e.node("Add", {y, e.name(bias)});
  finish(e, node, y, input(node, 3));
  return {};
}

Status gemm(Exporter& e, const Node& node) {
  e.write("Gemm", e.names(node.inputs), e.names(node.outputs),
          renamed(node.attrs,
                  {{"alpha", "alpha"}, {"beta", "beta"}, {"trans_a", "transA"}, {"trans_b", "transB"}}));
  return {};
}

Status attention(Exporter& e, const Node& node) {
  const DType dtype = e.type(node.outputs[0]).dtype;
  std::string scores = e.node("MatMul", {e.name(node.inputs[0]), swapped(e, node.inputs[1])});
  scores = e.node("Mul", {scores, e.number(node.attrs.f("scale"), dtype)});
  if (input(node, 3) != kNoValue) scores = e.node("Add", {scores, e.name(node.inputs[3])});
  e.write("MatMul", {e.node("Softmax", {scores}, {{"axis", int64_t{-1}}}), e.name(node.inputs[2])},
          e.names(node.outputs));
  return {};
}

// --- normalisation --------------------------------------------------------------------------------------

std::string filled(Exporter& e, const std::vector<int64_t>& dims, DType dtype, double value) {
  StaticValue all{dtype, dims, {}};
  all.elements.assign(static_cast<size_t>(Shape::of(dims).elements()), value);
  return e.constant(tensor_from_static(all));
}

Status batch_norm(Exporter& e, const Node& node, bool training) {
  Attrs attrs = renamed(node.attrs, {{"epsilon", "epsilon"}, {"momentum", "momentum"}});
  if (training) attrs.set("training_mode", int64_t{1});
  Names outputs = e.names(node.outputs);
  if (!node.attrs.s("act", "").empty()) return unsupported("it has a fused activation");
  if (outputs.size() > 3) return unsupported("ONNX has no output for the statistics of the batch");
  // ONNX wants all three outputs in training mode.
  for (size_t i = 0; training && i < 3; ++i) {
    if (i >= outputs.size() || outputs[i].empty()) return unsupported("output {} is not named", i);
  }
  e.write("BatchNormalization", e.names(node.inputs), outputs, attrs);
  return {};
}

Status layer_norm(Exporter& e, const Node& node) {
  Names inputs = {e.name(node.inputs[0]), e.name(input(node, 1))};
  const TensorType& x = e.type(node.inputs[0]);
  if (inputs[1].empty()) {
    std::vector<int64_t> dims;
    for (int64_t i = node.attrs.i("axis"); i < x.rank(); ++i) {
      const Dim& d = x.shape[static_cast<int>(i)];
      if (!d.is_constant()) return unsupported("a missing scale of symbolic size");
      dims.push_back(d.value());
    }
    inputs[1] = filled(e, dims, x.dtype, 1);
  }
  if (input(node, 2) != kNoValue) inputs.push_back(e.name(node.inputs[2]));
  e.write("LayerNormalization", inputs, e.names(node.outputs), node.attrs);
  return {};
}

// Groups become the channels of an InstanceNormalization; scale and bias come after it.
Status group_norm(Exporter& e, const Node& node) {
  const TensorType& x = e.type(node.inputs[0]);
  const int64_t groups = node.attrs.i("groups");
  const std::string flat = e.node("Reshape", {e.name(node.inputs[0]), e.ints({0, groups, -1})});
  const std::string normal = e.node("InstanceNormalization",
                                    {flat, filled(e, {groups}, x.dtype, 1), filled(e, {groups}, x.dtype, 0)},
                                    {{"epsilon", node.attrs.f("epsilon")}});
  LIMBER_ASSIGN(const std::string shape, e.dims(x.shape));
  std::vector<int64_t> channel(static_cast<size_t>(x.rank() - 1), 1);
  channel[0] = -1;
  const std::string columns = e.ints(channel);
  const auto per_channel = [&](ValueId v) { return e.node("Reshape", {e.name(v), columns}); };
  const std::string scaled = e.node("Mul", {e.node("Reshape", {normal, shape}), per_channel(node.inputs[1])});
  e.write("Add", {scaled, per_channel(node.inputs[2])}, e.names(node.outputs));
  return {};
}

// --- pooling and reductions -----------------------------------------------------------------------------

Status pool(Exporter& e, const Node& node) {
  e.write(op_name(node.op), e.names(node.inputs), e.names(node.outputs),
          renamed(node.attrs, {{"kernel", "kernel_shape"},
                               {"strides", "strides"},
                               {"pads", "pads"},
                               {"dilations", "dilations"},
                               {"ceil_mode", "ceil_mode"},
                               {"storage_order", "storage_order"},
                               {"count_include_pad", "count_include_pad"},
                               {"p", "p"}}));
  return {};
}

Status reduce(Exporter& e, const Node& node) {
  const auto& axes = node.attrs.ints("axes");
  if (axes.empty() && e.type(node.inputs[0]).rank() > 0) return unsupported("a reduction over no axis");
  const bool as_input = node.op == OpKind::kReduceSum || e.opset() >= 18;
  Attrs attrs = renamed(node.attrs, {{"keepdims", "keepdims"}});
  Names inputs = e.names(node.inputs);
  if (!axes.empty() && as_input) inputs.push_back(e.ints(axes));
  if (!axes.empty() && !as_input) attrs.set("axes", axes);
  e.write(op_name(node.op), inputs, e.names(node.outputs), attrs);
  return {};
}

Status arg_reduce(Exporter& e, const Node& node) {
  e.write(op_name(node.op), e.names(node.inputs), e.names(node.outputs),
          renamed(node.attrs,
                  {{"axis", "axis"}, {"keepdims", "keepdims"}, {"select_last", "select_last_index"}}));
  return {};
}

Status top_k(Exporter& e, const Node& node) {
  e.write("TopK", {e.name(node.inputs[0]), e.ints({node.attrs.i("k")})}, e.names(node.outputs),
          renamed(node.attrs, {{"axis", "axis"}, {"largest", "largest"}, {"sorted", "sorted"}}));
  return {};
}

Status cum_sum(Exporter& e, const Node& node) {
  const std::string axis = e.number(static_cast<double>(node.attrs.i("axis")), DType::kI64);
  e.write("CumSum", {e.name(node.inputs[0]), axis}, e.names(node.outputs),
          renamed(node.attrs, {{"exclusive", "exclusive"}, {"reverse", "reverse"}}));
  return {};
}

// Operators whose name or attributes differ only in spelling.
Status same(Exporter& e, const Node& node, std::string_view op_type) {
  e.write(op_type, e.names(node.inputs), e.names(node.outputs), node.attrs);
  return {};
}

}  // namespace

Status export_layer(Exporter& e, const Node& node, bool* done) {
  if (is_reduction(node.op)) return reduce(e, node);
  switch (node.op) {
    case OpKind::kConv:
      return conv(e, node);
    case OpKind::kConvTranspose:
      return conv_transpose(e, node);
    case OpKind::kGemm:
      return gemm(e, node);
    case OpKind::kMatMul:
      return mat_mul(e, node);
    case OpKind::kEinsum:
      return same(e, node, "Einsum");
    case OpKind::kAttention:
      return attention(e, node);
    case OpKind::kBatchNorm:
      return batch_norm(e, node, false);
    case OpKind::kBatchNormTraining:
      return batch_norm(e, node, true);
    case OpKind::kLayerNorm:
      return layer_norm(e, node);
    case OpKind::kInstanceNorm:
      return same(e, node, "InstanceNormalization");
    case OpKind::kGroupNorm:
      return group_norm(e, node);
    case OpKind::kLRN:
      return same(e, node, "LRN");
    case OpKind::kLpNorm:
      return same(e, node, "LpNormalization");
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
    case OpKind::kLpPool:
      return pool(e, node);
    case OpKind::kGlobalAveragePool:
    case OpKind::kGlobalMaxPool:
    case OpKind::kGlobalLpPool:
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
    case OpKind::kHardmax:
      return same(e, node, op_name(node.op));
    case OpKind::kArgMax:
    case OpKind::kArgMin:
      return arg_reduce(e, node);
    case OpKind::kTopK:
      return top_k(e, node);
    case OpKind::kCumSum:
      return cum_sum(e, node);
    default:
      *done = false;
      return {};
  }
}

}  // namespace limber::onnx_io
