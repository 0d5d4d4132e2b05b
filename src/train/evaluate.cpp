#include "train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "base/median.h"
#include "ops/op_def.h"
#include "runtime/compile.h"

namespace limber {
namespace {

// -log softmax(logits)[label]
double cross_entropy(std::span<const float> logits, int64_t label) {
  const double peak = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - peak);
  return std::log(sum) + peak - static_cast<double>(logits[static_cast<size_t>(label)]);
}

struct Sums {
  double loss = 0;
  int64_t top1 = 0, top5 = 0, images = 0, not_numbers = 0;

  void add(std::span<const float> logits, int64_t label) {
    loss += cross_entropy(logits, label);
    top1 += among_best(logits, label, 1) ? 1 : 0;
    top5 += among_best(logits, label, 5) ? 1 : 0;
    not_numbers += std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }) ? 1 : 0;
    ++images;
  }
};

Result<std::shared_ptr<const Plan>> compile_batch(const Graph& model, std::shared_ptr<Parameters> params,
                                                  std::vector<std::shared_ptr<Backend>> backends,
                                                  const EvaluationOptions& options) {
  const CompileSettings how = batch_settings(model, options.batch, options.threads);
  return compile(logits_of(model), std::move(params), std::move(backends), how);
}

Status check_input(const Session& session, const Preprocess& input) {
  if (session.plan().graph.inputs().size() != 1)
    return invalid("the model has {} inputs; images go into exactly one",
                   session.plan().graph.inputs().size());
  const TensorType type = session.input(0).type();
  const bool fits = type.dtype == DType::kF32 && type.rank() == 4 && type.shape.dim(1) == input.channels &&
                    type.shape.dim(2) == input.height && type.shape.dim(3) == input.width;
  if (fits) return {};
  return invalid("images of {}x{}x{} do not fit the model's input {}; choose another size", input.channels,
                 input.height, input.width, type.to_string());
}

}  // namespace

Status check_labels(const Dataset& data, int64_t classes) {
  for (size_t i = 0; i < data.size(); ++i) {
    if (const int64_t label = data.label(i); label < 0 || label >= classes) {
      return invalid(
          "{}: its class is number {} (counted from 0), the model has {} classes; replace the "
          "classifier (head: new) or correct the label",
          data.name(i), label, classes);
    }
  }
  return {};
}

Result<std::unique_ptr<Evaluator>> Evaluator::create(const Graph& model, std::shared_ptr<Parameters> params,
                                                     std::vector<std::shared_ptr<Backend>> backends,
                                                     std::shared_ptr<const Dataset> data,
                                                     const EvaluationOptions& options) {
  LIMBER_ASSIGN(const int64_t classes, count_classes(model));
  LIMBER_TRY(check_labels(*data, classes));
  LIMBER_ASSIGN(auto plan, compile_batch(model, std::move(params), std::move(backends), options));
  LIMBER_ASSIGN(auto session, Session::create(std::move(plan), options.memory));
  session->suspend();
  LIMBER_TRY(check_input(*session, options.input));
  LoaderOptions how;
  how.batch = session->input(0).shape().dim(0);
  how.shuffle = how.augment = false;
  how.workers = options.workers;
  how.threads = options.threads;
  how.input = options.input;
  how.on_bad_image = options.on_bad_image;
  LIMBER_ASSIGN(auto loader, Loader::make(std::move(data), how));
  return std::unique_ptr<Evaluator>(new Evaluator(std::move(session), std::move(loader), options.each));
}

Result<std::optional<Evaluation>> Evaluator::run(const std::atomic<bool>* stop) {
  auto evaluation = evaluate(stop);
  session_->suspend();
  return evaluation;
}

Result<double> Evaluator::estimate_seconds() {
  LIMBER_TRY(loader_->start_epoch(0));
  std::vector<double> taken;
  for (int64_t i = 0; i < std::min<int64_t>(4, loader_->batches()); ++i) {
    const double start = now_seconds();
    LIMBER_ASSIGN(const Batch batch, loader_->next());
    std::memcpy(session_->input(0).raw(), batch.images.raw(), batch.images.bytes());
    LIMBER_TRY(session_->run());
    taken.push_back(now_seconds() - start);
  }
  session_->suspend();
  if (taken.empty()) return 0.0;
  if (taken.size() > 1) taken.erase(taken.begin());  // its memory was new
  return median(std::move(taken)) * static_cast<double>(loader_->batches());
}

Result<InputVerdict> Evaluator::judge() {
  const AnswerImages answer = [this](const Tensor& images) -> Result<Tensor> {
    std::memcpy(session_->input(0).raw(), images.raw(), images.bytes());
    LIMBER_TRY(session_->run());
    return session_->output(0);
  };
  const LoaderOptions& how = loader_->options();
  auto verdict = judge_input(loader_->dataset(), how.input, answer, {.batch = how.batch});
  session_->suspend();
  return verdict;
}

Result<std::optional<Evaluation>> Evaluator::evaluate(const std::atomic<bool>* stop) {
  const double start = now_seconds();
  LIMBER_TRY(loader_->start_epoch(0));
  Sums sums;
  for (;;) {
    if (stop != nullptr && stop->load()) return std::optional<Evaluation>();
    LIMBER_ASSIGN(const Batch batch, loader_->next());
    if (batch.size == 0) break;
    // Rows do not depend on each other: what is left in those behind a short batch does no harm.
    std::memcpy(session_->input(0).raw(), batch.images.raw(), batch.images.bytes());
    LIMBER_TRY(session_->run());
    const Tensor output = session_->output(0);
    const auto logits = output.data<float>();
    const size_t classes = logits.size() / static_cast<size_t>(output.shape().dim(0));
    for (size_t i = 0; i < static_cast<size_t>(batch.size); ++i) {
      const auto row = logits.subspan(i * classes, classes);
      const int64_t label = batch.labels.data<int64_t>()[i];
      sums.add(row, label);
      if (each_) each_(batch.samples[i], label, row);
    }
  }
  const auto count = static_cast<double>(sums.images);
  return std::optional(Evaluation{.loss = sums.loss / count,
                                  .top1 = static_cast<double>(sums.top1) / count,
                                  .top5 = static_cast<double>(sums.top5) / count,
                                  .images = sums.images,
                                  .not_numbers = sums.not_numbers,
                                  .skipped = loader_->skipped(),
                                  .seconds = now_seconds() - start});
}

}  // namespace limber
