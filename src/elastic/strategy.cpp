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

Status FreezeTrainer::on_begin(TrainingSession& session, const TrainingState& /*state*/,
                               const TrainingLength& length) {
  length_ = &length;
  tensors_ = session.trained();
  return {};
}

Status FreezeTrainer::on_step_begin(TrainingSession& session, const TrainingState& /*state*/) {
  constexpr double kAllUntil = 0.5;  // share of the training
  constexpr size_t kSets = 8;        // each is compiled once
  const double late = std::max(0.0, (length_->done - kAllUntil) / (1 - kAllUntil));
  const size_t set = std::min(kSets - 1, static_cast<size_t>(late * kSets));
  const size_t frozen = set * tensors_.size() / kSets;
  if (session.trained().size() == tensors_.size() - frozen) return {};
  return session.set_trained(std::span(tensors_).subspan(frozen));
}

}  // namespace limber
