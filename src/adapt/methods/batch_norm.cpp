#include "adapt/methods/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "passes/classifier.h"
#include "runtime/compile.h"
#include "train/training_graph.h"

namespace limber::adapt {
namespace {

// Rows begin .. begin + count of the images, as a copy.
Result<Tensor> rows_of(const Tensor& images, int64_t begin, int64_t count) {
  TensorType type = images.type();
  type.shape[0] = Dim(count);
  LIMBER_ASSIGN(Tensor rows, Tensor::allocate(type));
  const size_t row = images.bytes() / static_cast<size_t>(images.shape().dim(0));
  std::memcpy(rows.raw(), static_cast<const std::byte*>(images.raw()) + row * static_cast<size_t>(begin),
              rows.bytes());
  return rows;
}

Result<Tensor> copy_of(const Tensor& tensor) {
  LIMBER_ASSIGN(Tensor copy, Tensor::allocate(tensor.type()));
  if (tensor.bytes() > 0) std::memcpy(copy.raw(), tensor.raw(), tensor.bytes());
  return copy;
}

Status not_a_number(int64_t images) {
  return error(Code::kInternal,
               "statistics of {} images make answers that are no numbers; the images may hold some", images);
}

}  // namespace

Result<std::unique_ptr<StatisticsPass>> StatisticsPass::create(const AdaptedModel& model,
                                                               std::string_view method) {
  std::unique_ptr<StatisticsPass> pass(new StatisticsPass(model));
  pass->model_.graph = logits_of(model.graph);
  LIMBER_ASSIGN(pass->norms_, some_norms_of(pass->model_.graph, method));
  return pass;
}

Result<std::unique_ptr<StatisticsPass::Step>> StatisticsPass::compile_step(int64_t batch, double kept) const {
  StepOptions options;
  options.batch = batch;
  LIMBER_ASSIGN(const Graph prepared, prepare_model(model_.graph, options));
  LIMBER_ASSIGN(const Graph graph, statistics_step(prepared, kept));
  LIMBER_ASSIGN(auto plan, compile(graph, model_.weights, model_.backends,
                                   {.threads = model_.threads, .optimize = false}));
  LIMBER_ASSIGN(auto session, Session::create(std::move(plan)));
  return std::make_unique<Step>(Step{kept, std::move(session)});
}

Status StatisticsPass::run(const Tensor& images, double kept) {
  const int64_t count = images.shape().dim(0);
  LIMBER_ASSIGN(Step * step, steps_.get(count, [&] { return compile_step(count, kept); }));
  if (step->kept != kept) {
    LIMBER_ASSIGN(auto other, compile_step(count, kept));
    *step = std::move(*other);
  }
  std::memcpy(step->session->input(0).raw(), images.raw(), images.bytes());
  LIMBER_TRY(step->session->run());
  const Tensor logits = step->session->output(0);
  for (const float x : logits.data<float>()) {
    if (!std::isfinite(x)) return not_a_number(count);
  }
  return {};
}

Result<std::unique_ptr<Strategy>> BatchNormStatistics::create(const AdaptedModel& model,
                                                              const BatchNormOptions& options) {
  if (options.prior < 0) return invalid("the prior of 'bn' is {} images, expected 0 or more", options.prior);
  std::unique_ptr<BatchNormStatistics> made(new BatchNormStatistics(model, options));
  LIMBER_ASSIGN(made->pass_, StatisticsPass::create(model, made->name()));
  LIMBER_TRY(made->reset());
  return std::unique_ptr<Strategy>(std::move(made));
}

Result<bool> BatchNormStatistics::adapt(const Tensor& images) {
  LIMBER_TRY(check_images(model_.graph, images));
  for (const auto& [name, tensor] : source_) {
    LIMBER_ASSIGN(Tensor copy, copy_of(tensor));
    model_.weights->set(name, std::move(copy));
  }
  const auto count = static_cast<double>(images.shape().dim(0));
  LIMBER_TRY(pass_->run(images, options_.prior / (options_.prior + count)));
  return true;
}

Status BatchNormStatistics::reset() {
  for (const NormNames& norm : pass_->norms()) {
    for (const std::string& name : {norm.mean, norm.variance}) {
      LIMBER_ASSIGN(const Tensor tensor, model_.weights->get(name));
      LIMBER_ASSIGN(source_[name], copy_of(tensor));
    }
  }
  return {};
}

Result<std::unique_ptr<Strategy>> Onda::create(const AdaptedModel& model, const OndaOptions& options) {
  if (options.images < 1) return invalid("'onda' moves every {} images, expected 1 or more", options.images);
  if (!(options.momentum > 0 && options.momentum <= 1)) {
    return invalid("the momentum of 'onda' is {}, expected more than 0 and at most 1", options.momentum);
  }
  std::unique_ptr<Onda> made(new Onda(model, options));
  LIMBER_ASSIGN(made->pass_, StatisticsPass::create(model, made->name()));
  return std::unique_ptr<Strategy>(std::move(made));
}

Result<bool> Onda::adapt(const Tensor& images) {
  LIMBER_TRY(check_images(model_.graph, images));
  const int64_t all = images.shape().dim(0);
  for (int64_t begin = 0; begin < all; begin += options_.images) {
    LIMBER_ASSIGN(const Tensor some, rows_of(images, begin, std::min(options_.images, all - begin)));
    LIMBER_TRY(pass_->run(some, 1 - options_.momentum));
  }
  return true;
}

}  // namespace limber::adapt
