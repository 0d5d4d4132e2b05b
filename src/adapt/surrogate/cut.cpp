#include "adapt/surrogate/cut.h"

#include <algorithm>

#include "adapt/surrogate/unit_probe.h"

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

// The lists for the groups of another graph of the same layers, by name; a group of its own keeps everything.
std::vector<std::vector<int64_t>> for_groups(const ChannelGroups& groups, const PlainMaster& plain,
                                             std::span<const std::vector<int64_t>> kept) {
  std::vector<std::vector<int64_t>> lists = all_units(groups);
  for (size_t i = 0; i < lists.size(); ++i) {
    for (size_t g = 0; g < kept.size(); ++g) {
      if (plain.groups.groups[g].name == groups.groups[i].name) lists[i] = kept[g];
    }
  }
  return lists;
}

// Filters of a convolution that are left, ascending: layers of several groups are of one convolution.
std::vector<int64_t> filters_left(const PlainMaster& plain, const std::string& weight,
                                  std::span<const std::vector<int64_t>> kept) {
  std::vector<bool> gone;
  for (const CutLayer& layer : plain.layers) {
    if (layer.weight != weight) continue;
    gone.resize(static_cast<size_t>(layer.filters), false);
    const auto& units = kept[layer.group];
    for (size_t i = 0; i < layer.of_units.size(); ++i) {
      const auto unit = static_cast<int64_t>(i) / layer.per_unit;
      if (!std::binary_search(units.begin(), units.end(), unit))
        gone[static_cast<size_t>(layer.of_units[i])] = true;
    }
  }
  std::vector<int64_t> left;
  for (size_t f = 0; f < gone.size(); ++f) {
    if (!gone[f]) left.push_back(static_cast<int64_t>(f));
  }
  return left;
}

}  // namespace

Result<FilterValues> gates_of_cut(const PlainMaster& plain, const AdaptedModel& gated,
                                  std::span<const std::vector<int64_t>> kept, const Tensor& images) {
  const ChannelGroups groups = channel_groups(gated.graph);
  LIMBER_ASSIGN(SlicedGraph sliced,
                slice_channels(gated.graph, groups, for_groups(groups, plain, kept)));
  AdaptedModel small = gated;
  small.weights = std::make_shared<Parameters>();
  LIMBER_TRY(slice_parameters(sliced, *gated.weights, *small.weights));
  small.graph = std::move(sliced.graph);
  LIMBER_ASSIGN(const GateReading reading, read_gates(small, plain, images));
  FilterValues gates;
  for (size_t l = 0; l < plain.layers.size(); ++l) {
    const CutLayer& layer = plain.layers[l];
    const std::vector<int64_t> left = filters_left(plain, layer.weight, kept);
    std::vector<double>& values = gates.emplace_back(static_cast<size_t>(layer.filters),
                                                     reading.gates[l].empty() ? 1.0 : 0.0);
    for (const auto& image : reading.gates[l]) {
      for (size_t i = 0; i < left.size(); ++i)
        values[static_cast<size_t>(left[i])] += image[i] / static_cast<double>(reading.gates[l].size());
    }
  }
  return gates;
}

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
