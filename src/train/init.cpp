#include "train/init.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/hash.h"
#include "base/random.h"

namespace limber {
namespace {

constexpr double kEmbeddingDeviation = 0.02;  // as BERT and ViT initialise theirs
constexpr float kPreluSlope = 0.25F;          // of the paper (He et al. 2015), as in PyTorch

Random stream(std::string_view name, uint64_t seed) { return Random(Hasher().add(seed).add(name).digest()); }

class Initialiser {
 public:
  Initialiser(const Graph& graph, Parameters& params, uint64_t seed)
      : graph_(graph), params_(params), seed_(seed) {}

  Result<int64_t> run() {
    for (const Node& node : graph_.nodes()) LIMBER_TRY(set_node(node));
    return static_cast<int64_t>(done_.size());
  }

 private:
  Status set_node(const Node& node) {
    switch (node.op) {
      case OpKind::kConv:
      case OpKind::kConvTranspose:
        LIMBER_TRY(set_conv(node));
        return constant(node, 2, 0.F);
      case OpKind::kGemm:
      case OpKind::kMatMul:
        return set_product(node);
      case OpKind::kBatchNorm:
        LIMBER_TRY(constant(node, 3, 0.F));
        LIMBER_TRY(constant(node, 4, 1.F));
        [[fallthrough]];
      case OpKind::kLayerNorm:
      case OpKind::kGroupNorm:
      case OpKind::kInstanceNorm:
        LIMBER_TRY(constant(node, 1, 1.F));
        return constant(node, 2, 0.F);
      case OpKind::kPRelu:
        return constant(node, 1, kPreluSlope);
      case OpKind::kMul:
        return set_operands(node, 1.F);
      case OpKind::kAdd:
        return set_operands(node, 0.F);
      default:
        return {};
    }
  }

  // Whether input `i` is a float parameter that has no new value yet.
  bool wanted(const Node& node, size_t i) {
    if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return false;
    const Value& value = graph_.value(node.inputs[i]);
    return value.role == Role::kParameter && value.type.dtype == DType::kF32 &&
           value.type.shape.elements() > 0 && done_.insert(node.inputs[i].index).second;
  }

  template <typename Draw>
  Status fill(const Node& node, size_t i, const Draw& draw) {
    const Value& value = graph_.value(node.inputs[i]);
    LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(value.type));
    Random random = stream(value.name, seed_);
    for (float& x : tensor.data<float>()) x = static_cast<float>(draw(random));
    params_.set(value.name, std::move(tensor));
    return {};
  }

  Status constant(const Node& node, size_t i, float x) {
    return wanted(node, i) ? fill(node, i, [x](Random&) { return x; }) : Status();
  }

  Status set_conv(const Node& node) {
    if (!wanted(node, 1)) return {};
    const Shape& w = graph_.type(node.inputs[1]).shape;
    int64_t fan_in = w.elements() / w.dim(0);
    if (node.op == OpKind::kConvTranspose) fan_in = w.elements() / w.dim(1) / node.attrs.i("groups", 1);
    const double deviation = std::sqrt(2.0 / static_cast<double>(std::max<int64_t>(1, fan_in)));
    return fill(node, 1, [deviation](Random& random) { return deviation * random.normal(); });
  }

  Status set_product(const Node& node) {
    if (!wanted(node, 1)) return constant(node, 2, 0.F);
    const Value& weight = graph_.value(node.inputs[1]);
    const int rank = weight.type.rank();
    const bool transposed = node.attrs.i("trans_b", 0) != 0;
    const int64_t fan_in = weight.type.shape.dim(rank == 1 ? 0 : transposed ? rank - 1 : rank - 2);
    LIMBER_ASSIGN(Tensor tensor, uniform_init(weight.type, fan_in, weight.name, seed_));
    params_.set(weight.name, std::move(tensor));
    return constant(node, 2, 0.F);
  }

  // Parameters next to an activation. Single numbers are part of a formula and stay.
  Status set_operands(const Node& node, float x) {
    for (size_t i = 0; i < 2; ++i) {
      const Value& other = graph_.value(node.inputs[1 - i]);
      const Value& value = graph_.value(node.inputs[i]);
      if (other.role != Role::kActivation || !value.type.shape.is_constant()) continue;
      if (value.role != Role::kParameter || value.type.shape.elements() < 2 || !wanted(node, i)) continue;
      const Shape& shape = value.type.shape;
      const auto wide = std::count_if(shape.begin(), shape.end(), [](const Dim& d) { return d.value() > 1; });
      const bool embedding = node.op == OpKind::kAdd && wide > 1;
      LIMBER_TRY(fill(node, i, [&](Random& r) { return embedding ? kEmbeddingDeviation * r.normal() : x; }));
    }
    return {};
  }

  const Graph& graph_;
  Parameters& params_;
  const uint64_t seed_;
  std::set<uint32_t> done_;
};

}  // namespace

Result<Tensor> uniform_init(const TensorType& type, int64_t fan_in, std::string_view name, uint64_t seed) {
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(type));
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, fan_in)));
  Random random = stream(name, seed);
  for (float& x : tensor.data<float>()) x = static_cast<float>(random.uniform(-bound, bound));
  return tensor;
}

Result<int64_t> initialise(const Graph& graph, Parameters& params, uint64_t seed) {
  return Initialiser(graph, params, seed).run();
}

}  // namespace limber
