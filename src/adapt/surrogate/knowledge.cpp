#include "adapt/surrogate/knowledge.h"

#include <Eigen/LU>
#include <algorithm>

#include "io/model_folder.h"

namespace limber::adapt {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Doubles = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Doubles rows_of(const Tensor& tensor) {
  const int64_t rows = tensor.shape().dim(0);
  return Eigen::Map<const RowMajor>(tensor.data<float>().data(), rows, tensor.elements() / rows)
      .cast<double>();
}

Result<Tensor> tensor_of(const Doubles& matrix, const TensorType& type) {
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(type));
  Eigen::Map<RowMajor>(tensor.data<float>().data(), matrix.rows(), matrix.cols()) = matrix.cast<float>();
  return tensor;
}

Doubles spread_of(const Doubles& filters, double spread) {
  Doubles unit = filters;
  for (Eigen::Index i = 0; i < unit.rows(); ++i) {
    if (const double norm = unit.row(i).norm(); norm > 0) unit.row(i) /= norm;
  }
  Doubles likeness = (unit * unit.transpose()).cwiseMax(0);
  likeness.diagonal().setZero();
  for (Eigen::Index i = 0; i < likeness.rows(); ++i) {
    if (const double sum = likeness.row(i).sum(); sum > 0) likeness.row(i) /= sum;
  }
  return Doubles::Identity(likeness.rows(), likeness.cols()) + spread * likeness;
}

}  // namespace

Result<Knowledge> Knowledge::create(const PlainMaster& plain, Parameters& weights,
                                    const KnowledgeOptions& options) {
  if (!(options.spread >= 0 && options.spread < 1))
    return invalid("the spread of knowledge is {}, expected 0 or more and less than 1", options.spread);
  Knowledge knowledge(options);
  if (options.spread == 0) return knowledge;
  for (const CutLayer& cut : plain.layers) {
    if (knowledge.layers_.contains(cut.weight)) continue;
    LIMBER_ASSIGN(const Tensor now, weights.get(cut.weight));
    Layer layer;
    const TensorType square{DType::kF32, {cut.filters, cut.filters}};
    LIMBER_ASSIGN(layer.spread, tensor_of(spread_of(rows_of(now), options.spread), square));
    const Doubles w = rows_of(layer.spread);
    LIMBER_ASSIGN(layer.base, tensor_of(w.partialPivLu().solve(rows_of(now)), now.type()));
    LIMBER_ASSIGN(Tensor made, tensor_of(w * rows_of(layer.base), now.type()));
    weights.set(cut.weight, std::move(made));
    knowledge.layers_.emplace(cut.weight, std::move(layer));
  }
  return knowledge;
}

Status Knowledge::learn(const std::string& name, const Tensor& change, Parameters& weights) {
  const auto found = layers_.find(name);
  if (found == layers_.end()) {
    LIMBER_ASSIGN(const Tensor now, weights.get(name));
    LIMBER_ASSIGN(Tensor next, now.copy());
    const auto add = change.data<float>();
    for (size_t i = 0; i < add.size(); ++i) next.data<float>()[i] += add[i];
    weights.set(name, std::move(next));
    return {};
  }
  Layer& layer = found->second;
  const Doubles w = rows_of(layer.spread);
  LIMBER_ASSIGN(layer.base, tensor_of(rows_of(layer.base) + w.transpose() * rows_of(change), change.type()));
  LIMBER_ASSIGN(Tensor next, tensor_of(w * rows_of(layer.base), change.type()));
  weights.set(name, std::move(next));
  return {};
}

std::map<std::string, Tensor> Knowledge::tensors() const {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, layer] : layers_) {
    tensors.emplace("spread/" + name, layer.spread);
    tensors.emplace("base/" + name, layer.base);
  }
  return tensors;
}

Status Knowledge::restore(const std::map<std::string, Tensor>& tensors) {
  std::map<std::string, Layer> layers = layers_;
  if (tensors.size() != 2 * layers.size())
    return corrupt("knowledge has {} tensors, expected {}", tensors.size(), 2 * layers.size());
  for (auto& [name, layer] : layers) {
    for (auto& [prefix, to] : {std::pair<std::string, Tensor*>{"spread/", &layer.spread},
                               std::pair<std::string, Tensor*>{"base/", &layer.base}}) {
      const auto found = tensors.find(prefix + name);
      if (found == tensors.end()) return corrupt("knowledge has no tensor '{}{}'", prefix, name);
      if (found->second.type() != to->type()) {
        return corrupt("knowledge: '{}{}' is {}, expected {}", prefix, name, found->second.type().to_string(),
                       to->type().to_string());
      }
      LIMBER_ASSIGN(*to, found->second.copy());
    }
  }
  layers_ = std::move(layers);
  return {};
}

}  // namespace limber::adapt
