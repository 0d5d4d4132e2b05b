#include "adapt/surrogate/cut.h"

#include <algorithm>

namespace limber::adapt {
namespace {

// `tensor` with its part along axis 0 multiplied.
Result<Tensor> multiplied(const Tensor& tensor, const std::vector<float>& factors) {
  LIMBER_ASSIGN(Tensor product, tensor.copy());
  const auto to = product.data<float>();
  const size_t row = to.size() / factors.size();
  for (size_t i = 0; i < to.size(); ++i) to[i] *= factors[i / row];
  return product;
}

std::map<std::string, std::vector<float>> factors_of(const PlainMaster& plain, const FilterValues& gates) {
  std::map<std::string, std::vector<float>> factors;
  for (size_t l = 0; l < plain.layers.size(); ++l) {
    const CutLayer& layer = plain.layers[l];
    const bool open = std::all_of(gates[l].begin(), gates[l].end(), [](double gate) { return gate == 1; });
    if (open) continue;
    const std::vector<float> values(gates[l].begin(), gates[l].end());
    if (!layer.norm) factors[layer.weight] = values;
    if (layer.norm) factors[layer.norm->scale] = factors[layer.norm->bias] = values;
  }
  return factors;
}

}  // namespace

const SlicedTensor* CutNetwork::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const SlicedTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Result<CutNetwork> cut_network(const PlainMaster& plain, const AdaptedModel& master,
                               std::span<const std::vector<int64_t>> kept, const FilterValues& gates) {
  LIMBER_ASSERT(gates.size() == plain.layers.size());
  LIMBER_ASSIGN(SlicedGraph sliced, slice_channels(plain.graph, plain.groups, kept));
  CutNetwork cut{master, std::move(sliced.tensors), factors_of(plain, gates)};
  cut.model.graph = std::move(sliced.graph);
  cut.model.weights = std::make_shared<Parameters>();
  for (const Value& value : cut.model.graph.values()) {
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    LIMBER_ASSIGN(Tensor tensor, master.weights->get(value.name));
    if (const auto by = cut.factors.find(value.name); by != cut.factors.end()) {
      LIMBER_ASSIGN(tensor, multiplied(tensor, by->second));
    }
    const SlicedTensor* slice = cut.find(value.name);
    LIMBER_ASSIGN(tensor, slice != nullptr ? take(*slice, tensor) : tensor.copy());
    cut.model.weights->set(value.name, std::move(tensor));
  }
  return cut;
}

}  // namespace limber::adapt
