#include "adapt/master/statistics.h"

#include <algorithm>

#include "supernet/teach/recalibrate.h"

namespace limber::adapt {
namespace {

// More batches change nothing that could be measured; images of 224 pixels take half a megabyte each.
constexpr size_t kMostBatches = 24, kFewestBatches = 4;
constexpr size_t kMostBytes = size_t{128} << 20;

std::vector<std::string> statistics_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kBatchNorm) continue;
    for (size_t i : {3, 4}) {
      const Value& value = graph.value(node.inputs[i]);
      if (value.role == Role::kParameter || value.role == Role::kState) names.push_back(value.name);
    }
  }
  return names;
}

}  // namespace

Result<std::vector<Tensor>> statistics_images(Loader& loader) {
  LIMBER_TRY(loader.start_epoch(0));
  std::vector<Tensor> batches;
  size_t most = kMostBatches;
  while (batches.size() < most) {
    LIMBER_ASSIGN(const Batch batch, loader.next());
    if (batch.size == 0) break;
    batches.push_back(batch.images);
    most = std::clamp(kMostBytes / batch.images.bytes(), kFewestBatches, kMostBatches);
  }
  return batches;
}

Status measure_statistics(const AdaptedModel& model, const std::vector<Tensor>& batches) {
  const std::vector<std::string> names = statistics_of(model.graph);
  if (names.empty()) return {};
  LIMBER_ASSIGN(const auto measured,
                recalibrate(model.graph, *model.weights, model.backends, batches, model.threads));
  for (const std::string& name : names) {
    LIMBER_ASSIGN(Tensor tensor, measured->get(name));
    model.weights->set(name, std::move(tensor));
  }
  return {};
}

}  // namespace limber::adapt
