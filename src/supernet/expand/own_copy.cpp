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

// Before those for exits, which come and go.
Result<size_t> add_copy(ElasticModel& model, Block& block, const std::string& name) {
  const size_t place = find_alternative(block, kTunedAlternative);
  Alternative copy{.name = name, .error = kCopyError};
  LIMBER_ASSIGN(copy.graph, own_copy(block, name, *model.params));
  block.alternatives.insert(block.alternatives.begin() + static_cast<std::ptrdiff_t>(place), std::move(copy));
  return place;
}

}  // namespace

std::string copy_prefix(const Block& block, std::string_view alternative) {
  return fmt::format("alt/{}/{}/", block.name, alternative);
}

Result<Graph> own_copy(const Block& block, std::string_view alternative, Parameters& params) {
  Graph graph = block.alternatives[0].graph;
  const std::string prefix = copy_prefix(block, alternative);
  for (const std::string& name : parameters_of(graph)) {
    if (params.contains(prefix + name)) continue;
    LIMBER_ASSIGN(const Tensor original, params.get(name));
    LIMBER_ASSIGN(Tensor copy, original.copy());
    params.set(prefix + name, std::move(copy));
  }
  rename_parameters(graph, prefix);
  return graph;
}

Result<std::vector<Variant>> copy_originals(ElasticModel& model, std::span<const Variant> variants,
                                            double size_limit) {
  std::vector<Variant> changed(variants.begin(), variants.end());
  auto room = static_cast<int64_t>(size_limit * static_cast<double>(parameter_elements(model.base))) -
              all_elements(model);
  for (size_t v = 0; v < changed.size(); ++v) {
    const std::string name = fmt::format("{}{}", kCopyAlternative, v + 1);
    for (size_t b = first_change(changed[v]); b < model.blocks.size(); ++b) {
      Block& block = model.blocks[b];
      const int64_t own = parameter_elements(block.alternatives[0].graph);
      if (changed[v].choices[b] != 0 || own == 0) continue;
      size_t copy = find_alternative(block, name);
      if (copy == block.alternatives.size()) {
        if (own > room) continue;
        room -= own;
        LIMBER_ASSIGN(copy, add_copy(model, block, name));
      }
      changed[v].choices[b] = static_cast<int>(copy);
    }
  }
  return changed;
}

}  // namespace limber
