#include "porting/workshop.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "data/subset.h"
#include "ops/op_def.h"
#include "runtime/compile.h"
#include "variant/elastic_model.h"

namespace limber {
namespace {

Status stopped_early() { return error(Code::kResourceExhausted, "stopped"); }

}  // namespace

Result<Model> own_copy_of(const Model& model) {
  Model own = model;
  std::vector<std::string> names = parameters_of(model.graph);
  LIMBER_ASSIGN(const WeightSnapshot weights, model.params->snapshot(names));
  own.params = std::make_shared<Parameters>(weights);
  own.origin = nullptr;
  return own;
}

Result<double> memory_of(const Workshop& shop, const Model& model) {
  LIMBER_ASSIGN(const GraphCost cost, cost_of(model.graph));
  const CompileSettings how = batch_settings(model.graph, 1, shop.threads);
  LIMBER_ASSIGN(const auto plan, compile(model.graph, model.params, shop.backends, how));
  return static_cast<double>(plan->arena_bytes + cost.parameter_bytes);
}

Result<PortCost> cost_of(const Workshop& shop, const Model& model) {
  LIMBER_ASSIGN(const GraphCost cost, cost_of(model.graph));
  LIMBER_ASSIGN(const double memory, memory_of(shop, model));
  return PortCost{cost.flops, cost.moved_bytes, memory,
                  static_cast<double>(cost.parameter_bytes) / kParameterBytes};
}

Status train(const Workshop& shop, Model& model, const TrainingRun& run) {
  if (run.epochs < 1) return {};
  TrainerOptions how = shop.training;
  how.epochs = run.epochs;
  how.evaluate_every = run.epochs;
  how.seed = run.seed;
  TrainerInputs inputs{.graph = model.graph,
                       .params = model.params,
                       .data = shop.data,
                       .backends = shop.backends,
                       .hooks = run.hooks,
                       .stop = shop.stop};
  if (run.images > 0 && run.images < shop.data->size()) {
    std::vector<uint32_t> order(shop.data->size());
    std::iota(order.begin(), order.end(), 0U);
    Random random(run.seed);
    for (size_t i = 0; i < run.images; ++i) std::swap(order[i], order[i + random.below(order.size() - i)]);
    order.resize(std::max(run.images, static_cast<size_t>(how.training.step.batch)));
    LIMBER_ASSIGN(inputs.data, make_subset(shop.data, std::move(order)));
  }
  LIMBER_ASSIGN(const auto trainer, Trainer::create(std::move(inputs), how));
  LIMBER_ASSIGN(const TrainingSummary summary, trainer->run());
  if (summary.ending == Ending::kStopped) return stopped_early();
  // Without what belongs to the optimiser.
  LIMBER_ASSIGN(const WeightSnapshot weights, trainer->session().snapshot());
  model.params = std::make_shared<Parameters>(weights);
  return {};
}

Result<double> accuracy_of(const Workshop& shop, const Model& model) {
  const EvaluationOptions how{.threads = shop.threads,
                              .workers = shop.training.workers,
                              .input = shop.training.input,
                              .on_bad_image = shop.training.on_bad_image};
  LIMBER_ASSIGN(const auto evaluator,
                Evaluator::create(model.graph, model.params, shop.backends, shop.judged, how));
  LIMBER_ASSIGN(const auto found, evaluator->run(shop.stop));
  if (!found) return stopped_early();
  return found->top1;
}

}  // namespace limber
