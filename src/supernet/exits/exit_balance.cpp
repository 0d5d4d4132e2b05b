#include "supernet/exits/exit_balance.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "passes/classifier.h"
#include "supernet/exits/exit_graph.h"

namespace limber {
namespace {

// From four times as unsure to twice as sure, in steps of about a fifth: exits that were taught beside a
// model are mostly too sure. What one is given changes what suits the others, so all are gone over twice.
constexpr std::array<double, 11> kFactors = {0.25, 0.35, 0.5, 0.6, 0.7, 0.85, 1, 1.2, 1.4, 1.7, 2};
constexpr int kRounds = 2;

std::vector<double> confidences(const std::vector<float>& logits, size_t classes, double factor) {
  std::vector<double> sure;
  std::vector<float> row(classes);
  for (size_t at = 0; at < logits.size(); at += classes) {
    for (size_t c = 0; c < classes; ++c) row[c] = logits[at + c] * static_cast<float>(factor);
    sure.push_back(confidence_of(row));
  }
  return sure;
}

// What exits give for all images. Logarithms of probabilities are logits too.
Result<std::vector<std::vector<float>>> logits_of_exits(ExitRunner& runner, const EvaluationSet& set) {
  constexpr float kLeast = 1e-30F;  // a probability that was rounded to 0 still has a logarithm
  std::vector<std::vector<float>> logits(runner.endings() - 1);
  for (const Tensor& images : set.images) {
    LIMBER_ASSIGN(const std::vector<Tensor> answers, runner.run_all(images));
    for (size_t e = 0; e < logits.size(); ++e) {
      const auto values = answers[e].data<float>();
      const size_t width = values.size() / static_cast<size_t>(answers[e].shape().dim(0));
      const auto rows = values.first(width * static_cast<size_t>(images.shape().dim(0)));
      for (const float x : rows)
        logits[e].push_back(runner.gives_probabilities() ? std::log(std::max(x, kLeast)) : x);
    }
  }
  return logits;
}

Status scale_classifier(Parameters& params, const Exit& exit, double factor) {
  const std::vector<std::string> names = {fmt::format("{}{}/classifier.weight", kExitPrefix, exit.name),
                                          fmt::format("{}{}/classifier.bias", kExitPrefix, exit.name)};
  for (const std::string& name : names) {
    LIMBER_ASSIGN(Tensor tensor, params.writable(name));
    for (float& x : tensor.data<float>()) x *= static_cast<float>(factor);
  }
  params.mark_changed(names);
  return {};
}

}  // namespace

std::vector<double> balance_factors(std::span<const std::vector<float>> logits, size_t classes,
                                    ExitOutcomes outcomes, double least_accuracy) {
  std::vector<double> factors(logits.size(), 1);
  for (size_t e = 0; e < logits.size(); ++e)
    outcomes.endings[e].confidence = confidences(logits[e], classes, 1);
  double best = calibrate_exits(outcomes, least_accuracy).seconds;
  for (int round = 0; round < kRounds; ++round) {
    for (size_t e = 0; e < logits.size(); ++e) {
      for (const double factor : kFactors) {
        outcomes.endings[e].confidence = confidences(logits[e], classes, factor);
        const double seconds = calibrate_exits(outcomes, least_accuracy).seconds;
        if (seconds >= best) continue;
        best = seconds;
        factors[e] = factor;
      }
      outcomes.endings[e].confidence = confidences(logits[e], classes, factors[e]);
    }
  }
  return factors;
}

Status balance_exits(ElasticModel& model, const Variant& blocks, const EvaluationSet& set,
                     const std::vector<std::shared_ptr<Backend>>& backends, const MeasureOptions& timing,
                     double max_drop) {
  if (set.images.empty()) return invalid("no images to balance exits with");
  const int64_t batch = set.images[0].shape().dim(0);
  LIMBER_ASSIGN(const auto runner,
                ExitRunner::create(model, blocks, backends, {.batch = batch, .threads = timing.threads}));
  LIMBER_ASSIGN(ExitOutcomes outcomes, judge_exits(*runner, set));
  LIMBER_TRY(time_exits(model, blocks, *runner, backends, timing, outcomes));
  LIMBER_ASSIGN(const auto logits, logits_of_exits(*runner, set));
  if (logits.empty()) return {};
  const size_t classes = logits[0].size() / outcomes.images();
  const double least = share_correct(outcomes.endings.back()) - max_drop;
  const std::vector<double> factors = balance_factors(logits, classes, outcomes, least);
  for (size_t e = 0; e < factors.size(); ++e)
    LIMBER_TRY(
        scale_classifier(*model.params, model.exits[static_cast<size_t>(runner->exit(e))], factors[e]));
  return {};
}

}  // namespace limber
