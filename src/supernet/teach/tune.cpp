#include "supernet/teach/tune.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/op_def.h"
#include "runtime/compile.h"
#include "train/evaluate.h"
#include "variant/rows.h"

namespace limber {
namespace {

// Of addresses; pages become memory when a step uses them.
constexpr size_t kTuneArenaBytes = size_t{1} << 36;

// Over the classes of one place, `step` elements from one to the next.
void softmax(std::span<const float> logits, std::span<float> to, size_t place, size_t step) {
  float largest = logits[place];
  for (size_t i = place; i < logits.size(); i += step) largest = std::max(largest, logits[i]);
  double sum = 0;
  for (size_t i = place; i < logits.size(); i += step) sum += to[i] = std::exp(logits[i] - largest);
  for (size_t i = place; i < to.size(); i += step) to[i] = static_cast<float>(to[i] / sum);
}

// By element of a sample the scale of the output it is of.
Tensor spread_out(std::span<const float> scales, std::span<const int64_t> sizes) {
  std::vector<float> all;
  for (size_t o = 0; o < sizes.size(); ++o) all.insert(all.end(), static_cast<size_t>(sizes[o]), scales[o]);
  return Tensor::from(std::span<const float>(all), {1, static_cast<int64_t>(all.size())});
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
  LIMBER_TRY(check_answers(model.base, options.answers));
  std::unique_ptr<VariantTuner> made(new VariantTuner(options));
  const CompileSettings how = batch_settings(model.base, options.batch, options.threads);
  const Graph original = answers_of(model.base, options.answers);
  LIMBER_ASSIGN(auto plan, compile(original, model.params, backends, how));
  LIMBER_ASSIGN(made->original_, Session::create(std::move(plan)));
  LIMBER_ASSIGN(made->targets_, Tensor::allocate(made->original_->output(0).type()));
  if (options.answers == Answers::kValues) LIMBER_TRY(made->measure_spread(model.base));
  LIMBER_ASSIGN(made->memory_, WorkArena::reserve(kTuneArenaBytes));
  for (const TimedVariant& variant : variants) LIMBER_TRY(made->add(model, variant, backends));
  return made;
}

// One by the standard deviation of what the original says.
Status VariantTuner::measure_spread(const Graph& base) {
  sizes_ = output_sizes(base);
  const std::vector<int64_t>& sizes = sizes_;
  std::vector<double> sums(sizes.size(), 0), squares(sizes.size(), 0), counts(sizes.size(), 0);
  for (const Tensor& images : options_.examples) {
    LIMBER_TRY(feed(images, original_->input(0)));
    LIMBER_TRY(original_->run());
    const auto values = original_->output(0).data<float>();
    for (size_t at = 0; at < values.size();) {
      for (size_t o = 0; o < sizes.size(); ++o) {
        for (const size_t end = at + static_cast<size_t>(sizes[o]); at < end; ++at) {
          sums[o] += static_cast<double>(values[at]);
          squares[o] += static_cast<double>(values[at]) * static_cast<double>(values[at]);
          ++counts[o];
        }
      }
    }
  }
  scales_.assign(sizes.size(), 1.F);
  for (size_t o = 0; o < sizes.size(); ++o) {
    if (counts[o] == 0) continue;
    const double variance = squares[o] / counts[o] - sums[o] / counts[o] * (sums[o] / counts[o]);
    if (variance > 1e-12) scales_[o] = static_cast<float>(1 / std::sqrt(variance));
  }
  return {};
}

// What the loss is computed from: answers, of values such that all outputs spread alike.
Result<Graph> VariantTuner::learnt(const Graph& variant) const {
  Graph graph = answers_of(variant, options_.answers);
  if (options_.answers != Answers::kValues) return graph;
  const Output output = graph.outputs()[0];
  const std::vector<int64_t> sizes = output_sizes(graph);
  const Tensor scales = sizes.size() > 1 ? spread_out(scales_, sizes) : Tensor::scalar(scales_[0]);
  LIMBER_ASSIGN(const ValueId scaled,
                emit(graph, OpKind::kMul, {output.value, graph.add_constant("tuning/scales", scales)}, {},
                     "tuning/scaled"));
  graph.mutable_outputs()[0].value = scaled;
  return graph;
}

Status VariantTuner::add(ElasticModel& model, const TimedVariant& timed,
                         const std::vector<std::shared_ptr<Backend>>& backends) {
  LIMBER_ASSIGN(const Graph graph, materialize(model, timed.variant));
  TrainingOptions how{.threads = options_.threads, .memory = memory_};
  const bool values = options_.answers == Answers::kValues;
  how.step = {.batch = options_.batch,
              .loss = {.kind = values ? LossKind::kMse : LossKind::kCrossEntropy},
              .soft_targets = true,
              .optimizer = options_.optimizer,
              .batch_norm = BatchNormMode::kFrozen};
  LIMBER_ASSIGN(const Graph logits, learnt(graph));
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
  if (options_.answers != Answers::kValues) {
    set_class_targets(batch, output);
    return {};
  }
  const auto from = output.data<float>();
  const auto to = targets_.data<float>();
  for (size_t at = 0; at < from.size();) {
    for (size_t o = 0; o < sizes_.size(); ++o) {
      for (const size_t end = at + static_cast<size_t>(sizes_[o]); at < end; ++at)
        to[at] = from[at] * scales_[o];
    }
  }
  return {};
}

// Of every place of every image.
void VariantTuner::set_class_targets(const Batch& batch, const Tensor& output) {
  const auto classes = static_cast<size_t>(output.shape().dim(1));
  const auto rest = static_cast<float>(1 - options_.label_share);
  for (size_t i = 0; i < static_cast<size_t>(options_.batch); ++i) {
    const size_t width = targets_.data<float>().size() / static_cast<size_t>(options_.batch);
    const auto row = targets_.data<float>().subspan(i * width, width);
    const size_t places = width / classes;
    for (size_t p = 0; p < places; ++p)
      softmax(output.data<float>().subspan(i * width, width), row, p, places);
    if (options_.label_share <= 0 || options_.answers != Answers::kClasses) continue;
    for (float& p : row) p *= rest;
    row[static_cast<size_t>(batch.labels.data<int64_t>()[i])] += 1 - rest;
  }
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
