#include "supernet/operators/layer_rewrite.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "ops/op_def.h"
#include "runtime/choice.h"
#include "supernet/operators/work.h"

namespace limber {
namespace {

// Layers with less work than this share of the block's largest stay as they are: squeeze-and-excite.
constexpr double kWorthChanging = 0.1;

// Multiply-adds of one sample. Axes of unknown size count once.
double layer_work(const Graph& graph, const Node& node) {
  const Shape& out = graph.type(node.outputs[0]).shape;
  const bool conv = node.op == OpKind::kConv || node.op == OpKind::kConvTranspose;
  const int channels = conv ? 1 : out.rank() - 1;
  double work = static_cast<double>(graph.type(node.inputs[1]).shape.elements());
  for (int axis = 1; axis < out.rank(); ++axis) {
    if (axis != channels && out[axis].is_constant()) work *= static_cast<double>(out.dim(axis));
  }
  return work;
}

// The second operand of a product, or what it is the transpose of.
struct StoredWeight {
  ValueId parameter;
  bool turned = false;
};
StoredWeight stored_weight(const Graph& graph, const Node& node) {
  StoredWeight stored{node.inputs[1], node.op != OpKind::kConv && node.attrs.i("trans_b", 0) == 1};
  const NodeId producer = graph.value(stored.parameter).producer;
  if (producer == kNoNode || graph.node(producer).op != OpKind::kTranspose) return stored;
  if (graph.node(producer).attrs.ints("perm") != std::vector<int64_t>{1, 0}) return stored;
  return {graph.node(producer).inputs[0], !stored.turned};
}

bool may_be_replaced(const Graph& graph, const Node& node) {
  const Value& weight = graph.value(stored_weight(graph, node).parameter);
  if (weight.role != Role::kParameter || weight.type.dtype != DType::kF32) return false;
  switch (node.op) {
    case OpKind::kConv:
      return node.attrs.i("groups", 1) == 1 && weight.type.rank() > 2;
    case OpKind::kGemm:
      return node.attrs.i("trans_a", 0) == 0;
    case OpKind::kMatMul:
      return weight.type.rank() == 2 && node.attrs.i("trans_a", 0) == 0 &&
             graph.type(node.inputs[0]).rank() >= 2;
    default:
      return false;
  }
}

// By node: is it a layer to replace?
std::vector<bool> layers_to_replace(const Graph& graph) {
  const std::vector<bool> statics = static_values(graph);
  std::vector<double> work(graph.num_nodes(), 0);
  double largest = 0;
  for (size_t n = 0; n < work.size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (!is_layer(graph, node, statics) || !graph.type(node.inputs[1]).shape.is_constant()) continue;
    work[n] = layer_work(graph, node);
    largest = std::max(largest, work[n]);
  }
  std::vector<bool> chosen(graph.num_nodes(), false);
  for (size_t n = 0; n < work.size(); ++n) {
    chosen[n] =
        work[n] > 0 && work[n] >= kWorthChanging * largest && may_be_replaced(graph, graph.nodes()[n]);
  }
  return chosen;
}

Result<WeightLayer> describe_layer(const BlockView& view, const Node& node) {
  const Graph& graph = view.graph();
  const StoredWeight stored = stored_weight(graph, node);
  const Value& weight = graph.value(stored.parameter);
  WeightLayer layer{.graph = graph, .node = node, .weight = weight.name};
  LIMBER_ASSIGN(layer.weights, view.params.get(weight.name));
  if (layer.weights.type() != weight.type) {
    return invalid("parameter '{}' has type {}, the graph expects {}", weight.name,
                   layer.weights.type().to_string(), weight.type.to_string());
  }
  layer.conv = node.op == OpKind::kConv;
  layer.turned = stored.turned;
  const Shape& shape = weight.type.shape;
  layer.outputs = shape.dim(layer.conv || layer.turned ? 0 : 1);
  layer.inputs = shape.dim(layer.conv || layer.turned ? 1 : 0);
  for (int axis = 2; axis < shape.rank(); ++axis) layer.window *= shape.dim(axis);
  return layer;
}

}  // namespace

Matrix WeightLayer::matrix() const {
  const bool as_stored = conv || turned;
  Matrix m(as_stored ? outputs : inputs, as_stored ? inputs * window : outputs);
  const auto values = weights.data<float>();
  std::copy(values.begin(), values.end(), m.data.begin());
  return as_stored ? m : transposed(m);
}

Matrix WeightLayer::by_input() const {
  Matrix m(inputs, outputs * window);
  const auto values = weights.data<float>();
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t c = 0; c < inputs; ++c) {
      const auto from = values.begin() + (o * inputs + c) * window;
      std::copy(from, from + window, m.row(c) + o * window);
    }
  }
  return m;
}

const Factors& WeightLayer::factors(FactorCache& cache) const {
  return cache.get(weight, [this] { return matrix(); });
}

const Factors& WeightLayer::input_factors(FactorCache& cache) const {
  return cache.get(weight + "/by_input", [this] { return by_input(); });
}

bool WeightLayer::is_centred() const {
  const Shape& shape = weights.shape();
  const auto& pads = node.attrs.ints("pads");
  const auto& dilations = node.attrs.ints("dilations");
  const size_t rank = dilations.size();
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = shape.dim(static_cast<int>(i) + 2);
    const int64_t reach = dilations[i] * (size - 1) / 2;
    if (size % 2 == 0 || pads[i] != reach || pads[i + rank] != reach) return false;
  }
  return true;
}

int64_t WeightLayer::input_places() const {
  const auto& strides = node.attrs.ints("strides");
  return std::accumulate(strides.begin(), strides.end(), int64_t{1}, std::multiplies<>());
}

LayerRewriter::LayerRewriter(const BlockView& view, Replacement& result)
    : view_(view), result_(result), copy_(view.graph(), result.graph) {}

ValueId LayerRewriter::add_weight(const WeightLayer& layer, std::string_view suffix, const Matrix& values,
                                  Shape shape) {
  std::vector<float> floats(values.data.begin(), values.data.end());
  const ValueId v = graph().add_parameter(fmt::format("{}.{}", layer.weight, suffix), {DType::kF32, shape});
  result_.tensors.set(graph().value(v).name, Tensor::from(std::span<const float>(floats), std::move(shape)));
  return v;
}

Result<ValueId> LayerRewriter::convolve(ValueId x, ValueId w, Attrs attrs, std::string_view name) {
  return emit(graph(), OpKind::kConv, {x, w}, std::move(attrs), name);
}

Result<ValueId> LayerRewriter::finish(const WeightLayer& layer, ValueId x, ValueId w, Attrs attrs) {
  for (const char* name : {"act", "act_alpha", "act_beta"}) {
    if (const AttrValue* value = layer.node.attrs.find(name)) attrs.set(name, *value);
  }
  std::vector<ValueId> inputs{x, w};
  for (size_t i = 2; i < layer.node.inputs.size(); ++i) inputs.push_back(copy_.value(layer.node.inputs[i]));
  return emit(graph(), layer.node.op, std::move(inputs), std::move(attrs), layer.node.name);
}

Attrs pointwise_attrs(int spatial_rank) {
  const auto rank = static_cast<size_t>(spatial_rank);
  return {{"strides", std::vector<int64_t>(rank, 1)},
          {"pads", std::vector<int64_t>(2 * rank, 0)},
          {"dilations", std::vector<int64_t>(rank, 1)}};
}

Attrs window_attrs(const WeightLayer& layer, int64_t groups) {
  Attrs attrs;
  for (const char* name : {"strides", "pads", "dilations"}) attrs.set(name, layer.node.attrs.ints(name));
  if (groups != 1) attrs.set("groups", groups);
  return attrs;
}

Result<ReplacementPtr> rewrite_layers(const BlockView& view, const LayerRule& rule) {
  const Graph& block = view.graph();
  const std::vector<bool> chosen = layers_to_replace(block);
  if (std::none_of(chosen.begin(), chosen.end(), [](bool c) { return c; })) return ReplacementPtr();
  auto result = std::make_unique<Replacement>();
  LayerRewriter rewriter(view, *result);
  const ValueId input = block.inputs()[0];
  rewriter.copy_.stand_for(input, result->graph.add_input(block.value(input).name, block.type(input)));
  LIMBER_TRY(rewriter.copy_.share_parameters());
  bool changed = false;
  for (size_t n = 0; n < block.num_nodes(); ++n) {
    const Node& node = block.nodes()[n];
    ValueId in_place = kNoValue;
    if (chosen[n]) {
      LIMBER_ASSIGN(const WeightLayer layer, describe_layer(view, node));
      LIMBER_ASSIGN(in_place, rule(rewriter, layer));
    }
    if (in_place == kNoValue) {
      rewriter.copy_.node(node);
      continue;
    }
    rewriter.copy_.stand_for(node.outputs[0], in_place);
    changed = true;
  }
  if (!changed) return ReplacementPtr();
  result->graph.add_output(rewriter.copy_.value(block.outputs()[0].value), block.outputs()[0].name);
  result->graph.compact();
  return result;
}

}  // namespace limber
