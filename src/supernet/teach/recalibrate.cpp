#include "supernet/teach/recalibrate.h"

#include <algorithm>
#include <cstring>

#include "train/evaluate.h"
#include "train/training_session.h"
#include "variant/elastic_model.h"

namespace limber {
namespace {

constexpr size_t kMinUpdates =
    64;  // steps, after which running statistics of momentum 0.9 keep 0.1 % of what they were

Result<std::shared_ptr<Parameters>> copy_of(const Graph& graph, const Parameters& params) {
  auto made = std::make_shared<Parameters>();
  for (const std::string& name : parameters_of(graph)) {
    LIMBER_ASSIGN(const Tensor tensor, params.get(name));
    LIMBER_ASSIGN(Tensor copy, Tensor::allocate(tensor.type()));
    if (tensor.bytes() > 0) std::memcpy(copy.raw(), tensor.raw(), tensor.bytes());
    made->set(name, std::move(copy));
  }
  return made;
}

bool has_statistics(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op == OpKind::kBatchNorm; });
}

}  // namespace

double recalibration_images(int64_t batch) {
  return static_cast<double>(kMinUpdates) * static_cast<double>(batch);
}

Result<std::shared_ptr<Parameters>> recalibrate(const Graph& graph, const Parameters& params,
                                                const std::vector<std::shared_ptr<Backend>>& backends,
                                                std::span<const Tensor> batches, int threads) {
  if (batches.empty()) return invalid("there are no images to measure statistics on");
  if (!has_statistics(graph)) return invalid("the model has no normalisation with statistics of its own");
  LIMBER_ASSIGN(auto own, copy_of(graph, params));
  // A training step that changes no weight: its rate is 0.
  TrainingOptions how{.threads = threads};
  how.step = {.batch = batches[0].shape().dim(0),
              .loss = {.kind = LossKind::kEntropy},
              .optimizer = {.momentum = 0, .decay = 0},
              .batch_norm = BatchNormMode::kBatch};
  how.choose = [](const Graph&, const std::vector<std::string>& names) {
    return Result(std::vector{names.back()});
  };
  LIMBER_ASSIGN(const auto session, TrainingSession::create(logits_of(graph), own, backends, how));
  session->set_rate(0);
  const size_t updates = std::max(kMinUpdates, batches.size());
  for (size_t i = 0; i < updates; ++i) {
    const Tensor& images = batches[i % batches.size()];
    if (images.type() != session->images().type())
      return invalid("batches of {} do not fit the model's input {}", images.type().to_string(),
                     session->images().type().to_string());
    std::memcpy(session->images().raw(), images.raw(), images.bytes());
    LIMBER_TRY(session->step().status());
  }
  return own;
}

}  // namespace limber
