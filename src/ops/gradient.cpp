#include "ops/gradient.h"

#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

template <typename T, typename Encode>
Tensor scalar_of(DType dtype, T value, Encode encode) {
  const auto bits = encode(value);
  auto tensor = Tensor::allocate({dtype, {}});
  LIMBER_ASSERT(tensor.ok() && tensor->bytes() == sizeof(bits));
  std::memcpy(tensor->raw(), &bits, sizeof(bits));
  return *std::move(tensor);
}

// REQUIRES: a floating type
Tensor float_scalar(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32:
      return Tensor::scalar(static_cast<float>(value));
    case DType::kF64:
      return Tensor::scalar(value);
    case DType::kF16:
      return scalar_of(dtype, static_cast<float>(value), &float_to_half);
    case DType::kBF16:
      return scalar_of(dtype, static_cast<float>(value), &float_to_bfloat16);
    default:
      LIMBER_UNREACHABLE();
  }
}

}  // namespace

GradientContext::GradientContext(Graph& graph, NodeId node, std::vector<ValueId> dys,
                                 std::vector<bool> wanted)
    : graph_(graph),
      node_(graph.node(node)),
      dys_(std::move(dys)),
      wanted_(std::move(wanted)),
      gradients_(node_.inputs.size(), kNoValue) {
  LIMBER_ASSERT(dys_.size() == node_.outputs.size() && wanted_.size() == node_.inputs.size());
}

void GradientContext::give(size_t input, ValueId gradient) {
  if (!wants(input)) return;
  LIMBER_ASSERT(gradients_[input] == kNoValue);
  gradients_[input] = sum_to(gradient, shape(x(input)));
}

void GradientContext::fail(const Status& status) {
  if (status_.ok()) status_ = status.in(fmt::format("{} '{}'", op_name(node_.op), node_.name));
}

ValueId GradientContext::emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs) {
  return emit_all(op, std::move(inputs), std::move(attrs), {true})[0];
}

std::vector<ValueId> GradientContext::emit_all(OpKind op, std::vector<ValueId> inputs, Attrs attrs,
                                               std::initializer_list<bool> wanted) {
  std::vector<ValueId> outputs(wanted.size(), kNoValue);
  std::vector<bool> present(wanted);
  while (!present.empty() && !present.back()) present.pop_back();
  if (!status_.ok() || present.empty()) return outputs;
  auto types = infer_types(graph_, op, inputs, attrs, static_cast<int>(present.size()));
  if (!types.ok()) {
    fail(types.status());
    return outputs;
  }
  std::vector<TensorType> kept;
  for (size_t i = 0; i < present.size(); ++i) {
    if (present[i]) kept.push_back(std::move((*types)[i]));
  }
  const NodeId node =
      graph_.add_node(op, std::move(inputs), std::move(attrs), std::move(kept), node_.name + "/grad");
  const std::vector<ValueId> made = graph_.node(node).outputs;
  for (size_t i = 0, next = 0; i < present.size(); ++i) {
    if (present[i]) outputs[i] = made[next++];
  }
  graph_.mutable_node(node).outputs.assign(outputs.begin(),
                                           outputs.begin() + static_cast<int64_t>(present.size()));
  return outputs;
}

ValueId GradientContext::number(double value, ValueId like) {
  if (!status_.ok()) return kNoValue;
  return constant(float_scalar(type(like).dtype, value));
}

ValueId GradientContext::constant(Tensor tensor) {
  if (!status_.ok()) return kNoValue;
  return graph_.add_constant(node_.name + "/grad/constant", std::move(tensor));
}

ValueId GradientContext::scale(ValueId a, double factor) {
  if (!status_.ok() || factor == 1) return a;
  return factor == -1 ? neg(a) : mul(a, number(factor, a));
}

ValueId GradientContext::zeros(const TensorType& type) {
  if (!status_.ok()) return kNoValue;
  return expand(constant(float_scalar(type.dtype, 0)), type.shape);
}

ValueId GradientContext::reshape(ValueId a, const Shape& to) {
  if (!status_.ok() || shape(a) == to) return a;
  return emit(OpKind::kReshape, {a}, {{"shape", to}});
}

ValueId GradientContext::expand(ValueId a, const Shape& to) {
  if (!status_.ok() || shape(a) == to) return a;
  return emit(OpKind::kExpand, {a}, {{"shape", to}});
}

ValueId GradientContext::sum(ValueId a, std::vector<int64_t> axes, bool keepdims) {
  if (!status_.ok() || axes.empty()) return a;
  return emit(OpKind::kReduceSum, {a}, {{"axes", std::move(axes)}, {"keepdims", int64_t{keepdims}}});
}

ValueId GradientContext::sum_to(ValueId a, const Shape& to) {
  if (!status_.ok() || shape(a) == to) return a;
  std::vector<int64_t> axes;
  const int lead = shape(a).rank() - to.rank();
  for (int i = 0; i < shape(a).rank(); ++i) {
    const int64_t size = shape(a).dim(i);
    if (size != 1 && (i < lead || to.dim(i - lead) != size)) axes.push_back(i);
  }
  return reshape(sum(a, std::move(axes), false), to);
}

GradientSupport gradient_support(OpKind op) {
  const auto rule = op_def(op).gradient;
  if (rule == nullptr) return GradientSupport::kNone;
  return rule == gradients::zero ? GradientSupport::kZero : GradientSupport::kRule;
}

namespace gradients {

void zero(GradientContext&) {}

ValueId choose(GradientContext& g, ValueId condition, ValueId a, ValueId b) {
  return g.emit(OpKind::kWhere, {condition, a, b});
}

ValueId keep_where(GradientContext& g, ValueId condition, ValueId a) {
  return choose(g, condition, a, g.number(0, a));
}

ValueId compare(GradientContext& g, OpKind op, ValueId a, double b) {
  return g.emit(op, {a, g.number(b, a)});
}

ValueId square(GradientContext& g, ValueId a) { return g.mul(a, a); }

ValueId before_activation(GradientContext& g) {
  const Activation act = fused_activation(g.attrs());
  if (act.op == OpKind::kIdentity) return g.dy();
  if (!rules::known_from_output(act)) {
    g.fail(
        unsupported("the gradient of its fused activation '{}' needs what goes into it; differentiate "
                    "before activations are fused",
                    g.attrs().s("act")));
  }
  Attrs attrs{{"from_output", int64_t{1}}};
  set_activation(attrs, act);
  return g.emit(OpKind::kActivationBackward, {g.dy(), g.y()}, std::move(attrs));
}

Attrs without(Attrs attrs, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) attrs.erase(name);
  return attrs;
}

ValueId index_constant(GradientContext& g, const Ints& indices) {
  return g.constant(Tensor::from<int64_t>(indices, Shape{static_cast<int64_t>(indices.size())}));
}

Ints axes_except(int rank, int axis) {
  Ints axes;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes;
}

}  // namespace gradients
}  // namespace limber
