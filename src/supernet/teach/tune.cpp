#include "supernet/teach/tune.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/op_def.h"
#include "record/elastic_records.h"
#include "runtime/compile.h"
#include "supernet/search/search.h"
#include "train/evaluate.h"

namespace limber {
namespace {

constexpr size_t kTuneArenaBytes = size_t{1}
                                   << 36;  // of addresses; pages become memory when a step uses them
constexpr double kNearLimit = 0.95;        // of a share of the latency: times are never quite the same again

void softmax(std::span<const float> logits, std::span<float> to) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += to[i] = std::exp(logits[i] - largest);
  for (float& p : to) p = static_cast<float>(p / sum);
}

}  // namespace

Result<std::unique_ptr<VariantTuner>> VariantTuner::create(
    ElasticModel& model, std::span<const Variant> variants,
    const std::vector<std::shared_ptr<Backend>>& backends, const TuneOptions& options) {
  LIMBER_ASSIGN(const int64_t classes, count_classes(model.base));
  std::unique_ptr<VariantTuner> made(new VariantTuner(options, classes));
  const CompileSettings how = batch_settings(model.base, options.batch, options.threads);
  LIMBER_ASSIGN(auto plan, compile(logits_of(model.base), model.params, backends, how));
  LIMBER_ASSIGN(made->original_, Session::create(std::move(plan)));
  LIMBER_ASSIGN(made->memory_, WorkArena::reserve(kTuneArenaBytes));
  for (const Variant& variant : variants) LIMBER_TRY(made->add(model, variant, backends));
  return made;
}

Status VariantTuner::add(ElasticModel& model, const Variant& variant,
                         const std::vector<std::shared_ptr<Backend>>& backends) {
  LIMBER_ASSIGN(const Graph graph, materialize(model, variant));
  TrainingOptions how{.threads = options_.threads, .memory = memory_};
  how.step = {.batch = options_.batch,
              .soft_targets = true,
              .optimizer = options_.optimizer,
              .batch_norm = BatchNormMode::kFrozen};
  const Graph logits = logits_of(graph);
  LIMBER_ASSIGN(const Graph prepared, prepare_model(logits, how.step));
  std::vector<std::string> own;
  for (const std::string& name : trainable_parameters(prepared)) {
    if (!model.base.find(name)) own.push_back(name);
  }
  if (own.empty()) return {};
  // What the optimiser remembers of teaching belongs to another loss.
  for (const std::string& name : own) {
    for (const std::string& state : optimizer_state(name)) model.params->erase(state);
  }
  how.choose = [&](const Graph&, const std::vector<std::string>&) { return Result(own); };
  LIMBER_ASSIGN(auto training, TrainingSession::create(logits, model.params, backends, how));
  trainings_.push_back(std::move(training));
  return {};
}

Result<double> VariantTuner::step(const Batch& batch, double rate) {
  TrainingSession& training = *trainings_[next_];
  next_ = (next_ + 1) % trainings_.size();
  LIMBER_ASSERT(batch.images.bytes() == training.images().bytes());
  std::memcpy(training.images().raw(), batch.images.raw(), batch.images.bytes());
  LIMBER_TRY(set_targets(batch, training.targets()));
  training.set_rate(rate);
  LIMBER_ASSIGN(const float loss, training.step());
  return static_cast<double>(loss);
}

Status VariantTuner::set_targets(const Batch& batch, Tensor targets) {
  std::memcpy(original_->input(0).raw(), batch.images.raw(), batch.images.bytes());
  LIMBER_TRY(original_->run());
  const Tensor output = original_->output(0);
  const auto classes = static_cast<size_t>(classes_);
  const auto rest = static_cast<float>(1 - options_.label_share);
  for (size_t i = 0; i < static_cast<size_t>(options_.batch); ++i) {
    const auto row = targets.data<float>().subspan(i * classes, classes);
    softmax(output.data<float>().subspan(i * classes, classes), row);
    if (options_.label_share <= 0) continue;
    for (float& p : row) p *= rest;
    row[static_cast<size_t>(batch.labels.data<int64_t>()[i])] += 1 - rest;
  }
  return {};
}

Result<std::vector<Variant>> promising_variants(const SearchSpace& space, std::span<const double> shares) {
  const double original = space.cost(space.original()).seconds;
  std::vector<Variant> variants;
  for (const double share : shares) {
    Random random(0);
    const auto found = price_seeds(space, {.high = kNearLimit * share * original}, 1, random);
    if (found.status().code() == Code::kInvalidArgument) continue;  // none is so fast
    if (!found.ok()) return found.status();
    for (const Variant& variant : *found) {
      if (std::find(variants.begin(), variants.end(), variant) == variants.end()) variants.push_back(variant);
    }
  }
  return variants;
}

std::vector<Variant> tuned_variants(const ElasticModel& model, const ElasticInfo& info) {
  std::vector<Variant> variants;
  for (const std::string& text : read_note<TeachingNote>(info.notes).tuned) {
    if (auto variant = parse_variant(model, text); variant.ok()) variants.push_back(*std::move(variant));
  }
  return variants;
}

std::vector<std::vector<bool>> used_by(const ElasticModel& model, std::span<const Variant> variants) {
  std::vector<std::vector<bool>> used;
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    used.emplace_back(model.blocks[b].alternatives.size(), false);
    for (const Variant& variant : variants) {
      if (variant.choices[b] != Variant::kCovered) used[b][static_cast<size_t>(variant.choices[b])] = true;
    }
  }
  return used;
}

}  // namespace limber
