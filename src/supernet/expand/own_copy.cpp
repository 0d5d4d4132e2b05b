#include "supernet/expand/own_copy.h"

#include <algorithm>
#include <set>

#include "passes/slice_channels.h"
#include "supernet/operators/work.h"

namespace limber {
namespace {

int64_t all_elements(const ElasticModel& model) {
  std::set<std::string> seen;
  int64_t sum = 0;
  for (const Block& block : model.blocks) {
    for (const Alternative& alternative : block.alternatives) {
      for (const std::string& name : parameters_of(alternative.graph)) {
        if (!seen.insert(name).second) continue;
        if (const auto type = model.params->type(name); type.ok()) sum += type->shape.elements();
      }
    }
  }
  return sum;
}

// Where the alternative is, or the number of alternatives.
size_t find_alternative(const Block& block, std::string_view name) {
  const auto at = std::find_if(block.alternatives.begin(), block.alternatives.end(),
                               [&](const Alternative& a) { return a.name == name; });
  return static_cast<size_t>(at - block.alternatives.begin());
}

size_t first_change(const Variant& variant) {
  const auto at = std::find_if(variant.choices.begin(), variant.choices.end(), [](int c) { return c != 0; });
  return static_cast<size_t>(at - variant.choices.begin());
}

bool is_stored(const Value& value) { return value.role == Role::kParameter || value.role == Role::kState; }

// Scales, shifts, statistics, biases: about a hundredth of the parameters.
bool is_per_channel(const Value& value) { return value.type.shape.rank() <= 1; }

// What a copy has as `value`.
std::string copied_name(const Block& block, std::string_view alternative, std::string_view weights,
                        const Value& value) {
  return copy_prefix(block, is_per_channel(value) ? alternative : weights) + value.name;
}

// That a copy would add.
int64_t new_elements(const Block& block, const std::string& alternative, const Parameters& params) {
  int64_t sum = 0;
  for (const Value& value : block.alternatives[0].graph.values()) {
    if (!is_stored(value)) continue;
    if (params.contains(copied_name(block, alternative, kCopyAlternative, value))) continue;
    sum += value.type.shape.elements();
  }
  return sum;
}

// Before those for exits, which come and go.
Result<size_t> add_copy(ElasticModel& model, Block& block, const std::string& name) {
  const size_t place = find_alternative(block, kTunedAlternative);
  Alternative copy{.name = name, .error = kCopyError};
  LIMBER_ASSIGN(copy.graph, own_copy(block, name, *model.params, kCopyAlternative));
  block.alternatives.insert(block.alternatives.begin() + static_cast<std::ptrdiff_t>(place), std::move(copy));
  return place;
}

}  // namespace

std::string copy_prefix(const Block& block, std::string_view alternative) {
  return fmt::format("alt/{}/{}/", block.name, alternative);
}

Result<Graph> own_copy(const Block& block, std::string_view alternative, Parameters& params,
                       std::string_view weights) {
  if (weights.empty()) weights = alternative;
  Graph graph = block.alternatives[0].graph;
  for (const Value& value : graph.values()) {
    if (!is_stored(value)) continue;
    const std::string name = copied_name(block, alternative, weights, value);
    if (params.contains(name)) continue;
    LIMBER_ASSIGN(const Tensor original, params.get(value.name));
    LIMBER_ASSIGN(Tensor copy, original.copy());
    params.set(name, std::move(copy));
  }
  rename_parameters(graph, copy_prefix(block, alternative), is_per_channel);
  rename_parameters(graph, copy_prefix(block, weights),
                    [](const Value& value) { return !is_per_channel(value); });
  return graph;
}

Result<std::vector<Variant>> copy_originals(ElasticModel& model, std::span<const Variant> variants,
                                            double size_limit) {
  std::vector<Variant> changed(variants.begin(), variants.end());
  auto room = static_cast<int64_t>(size_limit * static_cast<double>(parameter_elements(model.base))) -
              all_elements(model);
  for (size_t v = 0; v < changed.size(); ++v) {
    const std::string name = fmt::format("{}{}", kCopyAlternative, part_of(v, changed.size()) + 1);
    for (size_t b = first_change(changed[v]); b < model.blocks.size(); ++b) {
      Block& block = model.blocks[b];
      if (changed[v].choices[b] != 0 || parameter_elements(block.alternatives[0].graph) == 0) continue;
      size_t copy = find_alternative(block, name);
      if (copy == block.alternatives.size()) {
        const int64_t own = new_elements(block, name, *model.params);
        if (own > room) continue;
        room -= own;
        LIMBER_ASSIGN(copy, add_copy(model, block, name));
      }
      changed[v].choices[b] = static_cast<int>(copy);
    }
  }
  return changed;
}

size_t part_of(size_t variant, size_t count) { return variant * std::min(kCopyParts, count) / count; }

}  // namespace limber
