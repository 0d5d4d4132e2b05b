#include "adapt/master/statistics.h"

#include <algorithm>
#include <cstring>

#include "passes/classifier.h"
#include "runtime/compile.h"
#include "runtime/session.h"
#include "train/training_graph.h"

namespace limber::adapt {
namespace {

// About a thousand images of 64 at a time: more change nothing that could be measured. Larger images take
// more memory, so there are fewer of them.
constexpr size_t kMostBatches = 16, kFewestBatches = 4;
constexpr size_t kMostBytes = size_t{128} << 20;

struct NormStatistics {
  std::string mean, variance;          // names
  std::vector<double> means, squares;  // sums over batches, by channel
};

std::vector<NormStatistics> statistics_of(const Graph& graph) {
  std::vector<NormStatistics> found;
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kBatchNorm) continue;
    const Value &mean = graph.value(node.inputs[3]), &variance = graph.value(node.inputs[4]);
    if (mean.role != Role::kParameter || variance.role != Role::kParameter) continue;
    const auto channels = static_cast<size_t>(mean.type.shape.dim(0));
    found.push_back({mean.name, variance.name, std::vector<double>(channels), std::vector<double>(channels)});
  }
  return found;
}

// Weights whose running statistics are those of the last batch, while `batches` run.
Result<std::shared_ptr<Parameters>> own_weights(const AdaptedModel& model,
                                                const std::vector<NormStatistics>& norms) {
  LIMBER_ASSIGN(WeightSnapshot weights, model.weights->snapshot());
  auto own = std::make_shared<Parameters>(weights);
  for (const NormStatistics& norm : norms) {
    for (const std::string& name : {norm.mean, norm.variance}) LIMBER_TRY(own->writable(name).status());
  }
  return own;
}

Status add_batch(const Parameters& weights, std::vector<NormStatistics>& norms) {
  for (NormStatistics& norm : norms) {
    LIMBER_ASSIGN(const Tensor mean, weights.get(norm.mean));
    LIMBER_ASSIGN(const Tensor variance, weights.get(norm.variance));
    for (size_t c = 0; c < norm.means.size(); ++c) {
      const auto m = static_cast<double>(mean.data<float>()[c]);
      norm.means[c] += m;
      norm.squares[c] += static_cast<double>(variance.data<float>()[c]) + m * m;
    }
  }
  return {};
}

Result<Tensor> tensor_of(const std::vector<double>& values) {
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate({DType::kF32, Shape{static_cast<int64_t>(values.size())}}));
  std::transform(values.begin(), values.end(), tensor.data<float>().begin(),
                 [](double x) { return static_cast<float>(x); });
  return tensor;
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
  std::vector<NormStatistics> norms = statistics_of(model.graph);
  if (norms.empty()) return {};
  if (batches.empty()) return invalid("there are no images to measure statistics on");
  LIMBER_ASSIGN(const auto own, own_weights(model, norms));
  StepOptions options;
  options.batch = batches[0].shape().dim(0);
  LIMBER_ASSIGN(const Graph prepared, prepare_model(logits_of(model.graph), options));
  LIMBER_ASSIGN(const Graph step, statistics_step(prepared, 0));
  LIMBER_ASSIGN(auto plan, compile(step, own, model.backends, {.threads = model.threads, .optimize = false}));
  LIMBER_ASSIGN(const auto session, Session::create(std::move(plan)));
  for (const Tensor& images : batches) {
    LIMBER_ASSERT(images.bytes() == session->input(0).bytes());
    std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
    LIMBER_TRY(session->run());
    LIMBER_TRY(add_batch(*own, norms));
  }
  const auto count = static_cast<double>(batches.size());
  for (NormStatistics& norm : norms) {
    for (size_t c = 0; c < norm.means.size(); ++c) {
      norm.means[c] /= count;
      norm.squares[c] = std::max(0.0, norm.squares[c] / count - norm.means[c] * norm.means[c]);
    }
    LIMBER_ASSIGN(Tensor mean, tensor_of(norm.means));
    LIMBER_ASSIGN(Tensor variance, tensor_of(norm.squares));
    model.weights->set(norm.mean, std::move(mean));
    model.weights->set(norm.variance, std::move(variance));
  }
  return {};
}

}  // namespace limber::adapt
