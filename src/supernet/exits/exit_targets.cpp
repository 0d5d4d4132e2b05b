#include "supernet/exits/exit_targets.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/op_def.h"
#include "runtime/compile.h"
#include "train/evaluate.h"

namespace limber {
namespace {

constexpr size_t kMostAnswers = size_t{1} << 28;  // bytes of answers that are kept

void softmax_into(std::span<const float> logits, float* to) {
  const float peak = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += to[i] = std::exp(logits[i] - peak);
  for (size_t i = 0; i < logits.size(); ++i) to[i] /= sum;
}

}  // namespace

Result<std::unique_ptr<ExitTargets>> ExitTargets::create(
    const ElasticModel& model, const std::vector<std::shared_ptr<Backend>>& backends,
    const Options& options) {
  std::unique_ptr<ExitTargets> made(new ExitTargets(options));
  LIMBER_ASSIGN(made->classes_, count_classes(model.base));
  const CompileSettings how = batch_settings(model.base, options.batch, options.threads);
  LIMBER_ASSIGN(auto plan, compile(logits_of(model.base), model.params, backends, how));
  LIMBER_ASSIGN(made->model_, Session::create(std::move(plan)));
  const auto classes = static_cast<size_t>(made->classes_);
  const bool keeps = options.samples * classes * sizeof(float) <= kMostAnswers;
  made->known_.resize(keeps ? options.samples : 0, false);
  made->answers_.resize(made->known_.size() * classes);
  made->targets_.resize(static_cast<size_t>(options.batch) * classes);
  return made;
}

// Into the batch's targets, which is all there is when too many would have to be kept.
Status ExitTargets::ask_model(const Batch& batch) {
  Tensor input = model_->input(0);
  if (batch.images.bytes() != input.bytes())
    return invalid("images {} do not fit {}", batch.images.type().to_string(), input.type().to_string());
  std::memcpy(input.raw(), batch.images.raw(), input.bytes());
  LIMBER_TRY(model_->run());
  const auto classes = static_cast<size_t>(classes_);
  const Tensor output = model_->output(0);
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    softmax_into(output.data<float>().subspan(i * classes, classes), &targets_[i * classes]);
    const uint32_t sample = batch.samples[i];
    if (sample >= known_.size()) continue;
    known_[sample] = true;
    std::copy_n(&targets_[i * classes], classes, &answers_[sample * classes]);
  }
  return {};
}

Result<std::span<const float>> ExitTargets::of(const Batch& batch) {
  const auto known = [&](uint32_t sample) { return sample < known_.size() && known_[sample]; };
  const bool asks = options_.distill > 0 && !std::all_of(batch.samples.begin(), batch.samples.end(), known);
  if (asks) LIMBER_TRY(ask_model(batch));
  const auto classes = static_cast<size_t>(classes_);
  const auto distill = static_cast<float>(options_.distill);
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    float* const row = &targets_[i * classes];
    if (options_.distill > 0 && known(batch.samples[i]))
      std::copy_n(&answers_[batch.samples[i] * classes], classes, row);
    for (size_t c = 0; c < classes; ++c) row[c] *= distill;
    if (options_.distill >= 1) continue;
    const int64_t label = batch.labels.data<int64_t>()[i];
    if (label < 0 || label >= classes_)
      return invalid("class {} of an image, the model has {} classes", label, classes_);
    row[label] += 1 - distill;
  }
  return std::span<const float>(targets_);
}

}  // namespace limber
