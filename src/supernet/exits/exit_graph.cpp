#include "supernet/exits/exit_graph.h"

#include <algorithm>
#include <array>
#include <set>

#include "ops/op_def.h"
#include "supernet/exits/exit_layer.h"
#include "train/evaluate.h"
#include "train/init.h"
#include "train/optimizer.h"

namespace limber {
namespace {

constexpr int64_t kMinSide = 4;     // maps smaller than this are pooled as they are
constexpr int64_t kLargeSide = 16;  // maps of this side or more are halved once more
constexpr double kEpsilon = 1e-5;   // of normalisation, as frameworks have it

bool is_map(const TensorType& type) { return type.rank() == 4; }
int64_t channels_of(const TensorType& type) { return type.shape[type.rank() == 3 ? 2 : 1].value(); }
int64_t least_side(const TensorType& type) { return std::min(type.shape.dim(2), type.shape.dim(3)); }
bool can_convolve(const TensorType& type) { return is_map(type) && least_side(type) >= kMinSide; }

// Depthwise 3x3, 1x1, a normalisation behind each.
int64_t separable_elements(int64_t in, int64_t out) { return (9 + 4) * in + (in + 4) * out; }

// Sparse: weights and the numbers of the features they are for.
int64_t linear_elements(int64_t width, int64_t classes, double kept) {
  const int64_t each = kept < 1 ? 2 * features_read(width, kept) : width;
  return (each + 1) * classes;
}

class ExitBuilder {
 public:
  ExitBuilder(const ElasticModel& model, std::string_view name) : model_(model), prefix_(kExitPrefix) {
    prefix_ += name;
    graph_.name = fmt::format("exit {}", name);
  }

  Result<Graph> build(const TensorType& features, int64_t classes, const ExitDesign& design) {
    ValueId x = graph_.add_input("features", features);
    if (design.channels > 0) {
      LIMBER_ASSIGN(x, separable(x, design.channels, 2, "first"));
    }
    for (int b = 0; b < design.blocks; ++b) {
      const bool halve = b == 0 && least_side(graph_.type(x)) >= kLargeSide;
      LIMBER_ASSIGN(x, separable(x, design.channels, halve ? 2 : 1, fmt::format("block{}", b)));
    }
    LIMBER_ASSIGN(x, pooled(x));
    LIMBER_ASSIGN(x, classified(x, classes));
    graph_.add_output(x, model_.base.outputs()[0].name);
    LIMBER_TRY(verify(graph_));
    return std::move(graph_);
  }

 private:
  ValueId parameter(std::string_view name, Shape shape) {
    return graph_.add_parameter(fmt::format("{}/{}", prefix_, name), {DType::kF32, std::move(shape)});
  }

  Result<ValueId> norm(ValueId x, const std::string& name) {
    const int64_t channels = channels_of(graph_.type(x));
    std::vector<ValueId> inputs = {x};
    for (const char* part : {"scale", "bias", "mean", "var"})
      inputs.push_back(parameter(fmt::format("{}.{}", name, part), {channels}));
    return emit(graph_, OpKind::kBatchNorm, std::move(inputs), {{"epsilon", kEpsilon}}, name);
  }

  Result<ValueId> convolution(ValueId x, int64_t out, int64_t kernel, int64_t stride, int64_t groups,
                              const std::string& name) {
    const int64_t in = channels_of(graph_.type(x)), pad = kernel / 2;
    const ValueId w = parameter(name + ".weight", {out, in / groups, kernel, kernel});
    LIMBER_ASSIGN(x, emit(graph_, OpKind::kConv, {x, w},
                          {{"strides", std::vector<int64_t>{stride, stride}},
                           {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                           {"dilations", std::vector<int64_t>{1, 1}},
                           {"groups", groups}},
                          name));
    return norm(x, name + ".norm");
  }

  // With a residual connection where the type stays.
  Result<ValueId> separable(ValueId x, int64_t out, int64_t stride, const std::string& name) {
    const int64_t in = channels_of(graph_.type(x));
    LIMBER_ASSIGN(ValueId y, convolution(x, in, 3, stride, in, name + ".depthwise"));
    LIMBER_ASSIGN(y, convolution(y, out, 1, 1, 1, name + ".pointwise"));
    if (graph_.type(y) == graph_.type(x)) {
      LIMBER_ASSIGN(y, emit(graph_, OpKind::kAdd, {y, x}, {}, name + ".add"));
    }
    return emit(graph_, OpKind::kRelu, {y}, {}, name + ".relu");
  }

  // [N, channels]
  Result<ValueId> pooled(ValueId x) {
    const TensorType type = graph_.type(x);
    const int64_t channels = channels_of(type);
    if (is_map(type)) {
      LIMBER_ASSIGN(x, emit(graph_, OpKind::kGlobalAveragePool, {x}, {}, "pool"));
      return emit(graph_, OpKind::kReshape, {x}, {{"shape", Shape{type.shape[0], channels}}}, "flatten");
    }
    if (type.rank() == 3) {
      LIMBER_ASSIGN(x, emit(graph_, OpKind::kReduceMean, {x},
                            {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}}, "pool"));
    }
    const ValueId scale = parameter("norm.scale", {channels}), bias = parameter("norm.bias", {channels});
    return emit(graph_, OpKind::kLayerNorm, {x, scale, bias}, {{"axis", int64_t{1}}, {"epsilon", kEpsilon}},
                "norm");
  }

  // As the model gives it.
  Result<ValueId> classified(ValueId x, int64_t classes) {
    const int64_t width = graph_.type(x).shape.dim(1);
    const ValueId w = parameter("classifier.weight", {classes, width}),
                  b = parameter("classifier.bias", {classes});
    LIMBER_ASSIGN(
        x, emit(graph_, OpKind::kGemm, {x, w, b}, {{"trans_b", int64_t{1}}}, std::string(kClassifierName)));
    const Output& output = model_.base.outputs()[0];
    const TensorType& wanted = model_.base.type(output.value);
    if (wanted.rank() != 2) {
      LIMBER_ASSIGN(x, emit(graph_, OpKind::kReshape, {x}, {{"shape", wanted.shape}}, "shape"));
    }
    const NodeId last = model_.base.value(output.value).producer;
    if (last == kNoNode) return x;
    const Node& node = model_.base.node(last);
    if (node.op != OpKind::kSoftmax && node.op != OpKind::kLogSoftmax) return x;
    return emit(graph_, node.op, {x}, node.attrs, "probabilities");
  }

  const ElasticModel& model_;
  std::string prefix_;
  Graph graph_;
};

Status check_design(const ElasticModel& model, int after, const ExitDesign& design, std::string_view name) {
  if (after < 0 || static_cast<size_t>(after) >= model.blocks.size())
    return invalid("exit '{}' after {} blocks, expected 0..{}", name, after, model.blocks.size() - 1);
  const TensorType& features = features_after(model, after);
  if (!fits_exit(features))
    return invalid("exit '{}' would read {}, expected f32 maps [N,C,H,W], tokens [N,T,C] or [N,C]", name,
                   features.to_string());
  if (design.channels < 0 || design.blocks < 0 || (design.channels == 0 && design.blocks > 0))
    return invalid("exit '{}' with {} blocks of {} channels", name, design.blocks, design.channels);
  if (design.channels > 0 && !can_convolve(features))
    return invalid("exit '{}' has convolutions, but would read {}", name, features.to_string());
  const auto taken = [&](const Exit& exit) { return exit.name == name; };
  if (name.empty() || std::any_of(model.exits.begin(), model.exits.end(), taken))
    return invalid("the name of exit '{}' is empty or taken", name);
  return {};
}

}  // namespace

bool fits_exit(const TensorType& features) {
  if (features.dtype != DType::kF32 || features.rank() < 2 || features.rank() > 4) return false;
  for (int axis = 1; axis < features.rank(); ++axis) {
    if (!features.shape[axis].is_constant() || features.shape[axis].value() < 1) return false;
  }
  return true;
}

int64_t exit_elements(const TensorType& features, int64_t classes, const ExitDesign& design) {
  const int64_t in = channels_of(features);
  const int64_t norm = is_map(features) ? 0 : 2 * in;
  const int64_t width = design.channels > 0 ? design.channels : in;
  int64_t sum = norm + linear_elements(width, classes, design.kept);
  if (design.channels > 0) sum += separable_elements(in, width);
  return sum + design.blocks * separable_elements(width, width);
}

std::optional<ExitDesign> design_exit(const TensorType& features, int64_t classes, int64_t max_elements,
                                      double kept) {
  // Each two thirds or three quarters of the one before.
  constexpr std::array<int64_t, 9> kChannels = {128, 96, 64, 48, 32, 24, 16, 12, 8};
  constexpr int kBlocks = 3;  // at most: an exit is to be small beside what it saves
  if (!fits_exit(features)) return std::nullopt;
  const auto fits = [&](const ExitDesign& design) {
    return exit_elements(features, classes, design) <= max_elements;
  };
  // Deep rather than wide: a block more is worth more than channels, down to a number that says little.
  for (int blocks = kBlocks; can_convolve(features) && blocks >= 0; --blocks) {
    for (const int64_t channels : kChannels) {
      if (channels < 24 && blocks > 0) break;
      if (fits({channels, blocks, kept})) return ExitDesign{channels, blocks, kept};
    }
  }
  const ExitDesign linear{.kept = kept};
  return fits(linear) ? std::optional(linear) : std::nullopt;
}

const TensorType& features_after(const ElasticModel& model, int after) {
  if (after == 0) return model.base.type(model.base.inputs()[0]);
  const Graph& before = model.blocks[static_cast<size_t>(after) - 1].alternatives[0].graph;
  return before.type(before.outputs()[0].value);
}

Result<Exit> make_exit(ElasticModel& model, int after, const ExitDesign& design, std::string_view name,
                       uint64_t seed) {
  LIMBER_ASSIGN(const int64_t classes, count_classes(model.base));
  LIMBER_TRY(check_design(model, after, design, name));
  Exit exit{std::string(name), after, {}};
  LIMBER_ASSIGN(exit.graph, ExitBuilder(model, name).build(features_after(model, after), classes, design));
  LIMBER_TRY(initialise(exit.graph, *model.params, seed).status());
  return exit;
}

void forget_parameters(ElasticModel& model, const Exit& exit) {
  for (const std::string& name : parameters_of(exit.graph)) {
    if (!name.starts_with(kExitPrefix)) continue;  // a block's
    for (const std::string& state : optimizer_state(name)) model.params->erase(state);
    model.params->erase(name);
  }
}

Result<double> storage_of(const ElasticModel& model, const std::set<std::string>& parameters) {
  double bytes = 0;
  for (const std::string& name : parameters) {
    LIMBER_ASSIGN(const TensorType type, model.params->type(name));
    bytes += static_cast<double>(type.bytes());
  }
  LIMBER_ASSIGN(const GraphCost base, cost_of(model.base));
  return bytes / static_cast<double>(base.parameter_bytes);
}

Result<double> exit_storage(const ElasticModel& model) {
  std::set<std::string> names;
  for (const Exit& exit : model.exits) {
    for (std::string& name : parameters_of(exit.graph)) {
      if (name.starts_with(kExitPrefix)) names.insert(std::move(name));
    }
  }
  return storage_of(model, names);
}

}  // namespace limber
