#include "elastic/strategy.h"

#include <algorithm>
#include <set>

namespace limber {
namespace {

// In the order of `tensors`.
std::vector<std::string> keep(const std::vector<std::string>& tensors, const std::set<std::string>& kept) {
  std::vector<std::string> names;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(names),
               [&](const std::string& name) { return kept.count(name) > 0; });
  return names;
}

}  // namespace

std::vector<std::string> last_layer(const Graph& graph, const std::vector<std::string>& tensors) {
  const std::set<std::string> allowed(tensors.begin(), tensors.end());
  std::set<std::string> kept;
  for (size_t n = graph.num_nodes(); n-- > 0;) {
    bool matrix = false;
    for (ValueId v : graph.nodes()[n].inputs) {
      if (v == kNoValue || allowed.count(graph.value(v).name) == 0) continue;
      kept.insert(graph.value(v).name);
      matrix = matrix || graph.type(v).rank() > 1;
    }
    if (matrix) break;
  }
  return keep(tensors, kept);
}

std::vector<std::string> norms_and_biases(const Graph& graph, const std::vector<std::string>& tensors) {
  const std::vector<std::string> last = last_layer(graph, tensors);
  std::set<std::string> kept(last.begin(), last.end());
  for (const std::string& name : tensors) {
    const auto v = graph.find(name);
    if (v && graph.type(*v).rank() == 1) kept.insert(name);
  }
  return keep(tensors, kept);
}

}  // namespace limber
