#include "passes/match.h"

#include <cmath>

namespace limber {

std::optional<double> scalar_constant(const Graph& graph, ValueId v) {
  if (v == kNoValue) return std::nullopt;
  const Value& value = graph.value(v);
  if (value.role != Role::kConstant || value.constant.elements() != 1) return std::nullopt;
  return element_as_double(value.constant, 0);
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)); }

bool is_constant_close_to(const Graph& graph, ValueId v, double expected) {
  const auto value = scalar_constant(graph, v);
  return value && close(*value, expected);
}

Result<ValueId> add_scalar(Rewriter& r, DType dtype, double value, std::string_view name) {
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate({dtype, {}}));
  const auto store = [&](auto typed) { std::memcpy(tensor.raw(), &typed, sizeof(typed)); };
  switch (dtype) {
    case DType::kF32:
      store(static_cast<float>(value));
      break;
    case DType::kF64:
      store(value);
      break;
    case DType::kF16:
      store(float_to_half(static_cast<float>(value)));
      break;
    case DType::kBF16:
      store(float_to_bfloat16(static_cast<float>(value)));
      break;
    default:
      LIMBER_UNREACHABLE();
  }
  return r.graph().add_constant(name, std::move(tensor));
}

ValueId other_operand(const Rewriter& r, NodeId binary, ValueId v) {
  const auto& inputs = r.node(binary).inputs;
  if (inputs[0] == v) return inputs[1];
  return inputs[1] == v ? inputs[0] : kNoValue;
}

namespace {

// The operand of `n` that has the type of the result, when the other is a scalar constant.
std::optional<std::pair<ValueId, double>> with_scalar(const Rewriter& r, NodeId n, bool commutes) {
  for (size_t i = 0; i < (commutes ? 2u : 1u); ++i) {
    const ValueId x = r.input(n, i);
    const auto c = scalar_constant(r.graph(), r.input(n, 1 - i));
    if (c && r.graph().type(x) == r.graph().type(r.output(n))) return std::pair(x, *c);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Scaled> as_scaled(const Rewriter& r, ValueId v) {
  if (!is_float(r.graph().type(v).dtype)) return std::nullopt;
  if (const NodeId n = r.producer(v, OpKind::kMul); n != kNoNode) {
    if (const auto m = with_scalar(r, n, true)) return Scaled{m->first, m->second};
  }
  if (const NodeId n = r.producer(v, OpKind::kDiv); n != kNoNode) {
    const auto m = with_scalar(r, n, false);
    if (m && m->second != 0) return Scaled{m->first, 1 / m->second};
  }
  return std::nullopt;
}

std::optional<Shifted> as_shifted(const Rewriter& r, ValueId v) {
  const NodeId n = r.producer(v, OpKind::kAdd);
  if (n == kNoNode) return std::nullopt;
  const auto m = with_scalar(r, n, true);
  return m ? std::optional(Shifted{m->first, m->second}) : std::nullopt;
}

std::optional<Shape> without_leading_ones(const Shape& shape, int rank) {
  const int extra = std::max(0, shape.rank() - rank);
  for (int i = 0; i < extra; ++i) {
    if (shape[i] != Dim(1)) return std::nullopt;
  }
  return Shape(std::vector<Dim>(shape.begin() + extra, shape.end()));
}

}  // namespace limber
