#include "supernet/teach/tune.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/op_def.h"
#include "runtime/compile.h"
#include "train/evaluate.h"

namespace limber {
namespace {

constexpr size_t kTuneArenaBytes = size_t{1}
                                   << 36;  // of addresses; pages become memory when a step uses them

void softmax(std::span<const float> logits, std::span<float> to) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += to[i] = std::exp(logits[i] - largest);
  for (float& p : to) p = static_cast<float>(p / sum);
}

// How far a variant is from the original, by the fastest. What is near has learnt nearly everything: the rate
// that the fastest needs would make it worse, for longer than teaching takes.
double rate_at(double share) { return std::clamp((1 - share) / (1 - kFastestShare), 0.05, 1.0); }

void copy_bytes(const Tensor& from, Tensor to) {
  LIMBER_ASSERT(from.bytes() == to.bytes());
  std::memcpy(to.raw(), from.raw(), from.bytes());
}

}  // namespace

Result<std::unique_ptr<VariantTuner>> VariantTuner::create(
    ElasticModel& model, std::span<const TimedVariant> variants,
    const std::vector<std::shared_ptr<Backend>>& backends, const TuneOptions& options) {
  LIMBER_ASSIGN(const int64_t classes, count_classes(model.base));
  std::unique_ptr<VariantTuner> made(new VariantTuner(options, classes));
  const CompileSettings how = batch_settings(model.base, options.batch, options.threads);
  LIMBER_ASSIGN(auto plan, compile(logits_of(model.base), model.params, backends, how));
  LIMBER_ASSIGN(made->original_, Session::create(std::move(plan)));
  LIMBER_ASSIGN(made->targets_, Tensor::allocate(made->original_->output(0).type()));
  LIMBER_ASSIGN(made->memory_, WorkArena::reserve(kTuneArenaBytes));
  for (const TimedVariant& variant : variants) LIMBER_TRY(made->add(model, variant, backends));
  return made;
}

Status VariantTuner::add(ElasticModel& model, const TimedVariant& timed,
                         const std::vector<std::shared_ptr<Backend>>& backends) {
  LIMBER_ASSIGN(const Graph graph, materialize(model, timed.variant));
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
    if (!trained_.insert(name).second) continue;  // a variant before this one has it, too
    for (const std::string& state : optimizer_state(name)) model.params->erase(state);
  }
  how.choose = [&](const Graph&, const std::vector<std::string>&) { return Result(own); };
  LIMBER_ASSIGN(auto training, TrainingSession::create(logits, model.params, backends, how));
  students_.push_back({std::move(training), rate_at(timed.share)});
  return {};
}

// Of as many equal parts of the variants as take a step, one of each.
std::vector<size_t> VariantTuner::draw() {
  const size_t parts = std::min(options_.at_once, students_.size());
  std::vector<size_t> drawn;
  for (size_t p = 0; p < parts; ++p) {
    const size_t from = p * students_.size() / parts, to = (p + 1) * students_.size() / parts;
    drawn.push_back(from + random_.below(to - from));
  }
  return drawn;
}

Result<double> VariantTuner::step(const Batch& batch, double rate) {
  LIMBER_TRY(set_targets(batch));
  double sum = 0;
  const std::vector<size_t> drawn = draw();
  for (const size_t variant : drawn) {
    TrainingSession& training = *students_[variant].training;
    copy_bytes(batch.images, training.images());
    copy_bytes(targets_, training.targets());
    training.set_rate(rate * students_[variant].rate);
    LIMBER_ASSIGN(const float loss, training.step());
    sum += static_cast<double>(loss);
  }
  return sum / static_cast<double>(drawn.size());
}

Status VariantTuner::set_targets(const Batch& batch) {
  copy_bytes(batch.images, original_->input(0));
  LIMBER_TRY(original_->run());
  const Tensor output = original_->output(0);
  const auto classes = static_cast<size_t>(classes_);
  const auto rest = static_cast<float>(1 - options_.label_share);
  for (size_t i = 0; i < static_cast<size_t>(options_.batch); ++i) {
    const auto row = targets_.data<float>().subspan(i * classes, classes);
    softmax(output.data<float>().subspan(i * classes, classes), row);
    if (options_.label_share <= 0) continue;
    for (float& p : row) p *= rest;
    row[static_cast<size_t>(batch.labels.data<int64_t>()[i])] += 1 - rest;
  }
  return {};
}

void note_tuned(const ElasticModel& model, std::span<const TimedVariant> tuned, TeachingNote& note) {
  note.tuned.clear();
  note.shares.clear();
  for (const TimedVariant& one : tuned) {
    note.tuned.push_back(print(model, one.variant));
    note.shares.push_back(one.share);
  }
}

std::vector<TimedVariant> tuned_chain(const ElasticModel& model, const ElasticInfo& info) {
  const auto note = read_note<TeachingNote>(info.notes);
  std::vector<TimedVariant> chain;
  for (size_t i = 0; i < note.tuned.size(); ++i) {
    const double share = i < note.shares.size() ? note.shares[i] : 0;
    if (auto variant = parse_variant(model, note.tuned[i]); variant.ok())
      chain.push_back({*std::move(variant), share});
  }
  return chain;
}

std::vector<Variant> variants_of(std::span<const TimedVariant> chain) {
  std::vector<Variant> variants;
  for (const TimedVariant& one : chain) variants.push_back(one.variant);
  return variants;
}

std::vector<Variant> tuned_variants(const ElasticModel& model, const ElasticInfo& info) {
  return variants_of(tuned_chain(model, info));
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
