#include "jobs/train_settings.h"

#include <array>

#include "elastic/strategy.h"

namespace limber {
namespace {

constexpr int64_t kTrainBatch = 32;  // images; a common size, with which training fits small machines
constexpr double kDefaultRho = 0.5;  // of the time of all: within about a point of it in the benchmarks
constexpr double kMany = 1e9;        // epochs, updates or a norm: no limit that anybody meets

struct Range {
  const char* name;
  double value, low, high;
};

// Not a number is in no range.
Status check_ranges(std::initializer_list<Range> ranges) {
  for (const Range& r : ranges) {
    if (!(r.value >= r.low && r.value <= r.high))
      return invalid("{} is {:g}; it should be {:g} to {:g}", r.name, r.value, r.low, r.high);
  }
  return {};
}

Status check_method(const TrainJobOptions& o) {
  const TrainerOptions& t = o.trainer;
  const OptimizerOptions& optimizer = t.training.step.optimizer;
  return check_ranges({{"lr", o.rate.value_or(1), 1e-12, 1e6},
                       {"weight-decay", o.decay.value_or(0), 0, 100},
                       {"momentum", optimizer.momentum, 0, 1},
                       {"beta1", optimizer.beta1, 0, 1},
                       {"beta2", optimizer.beta2, 0, 1},
                       {"epsilon", optimizer.epsilon, 0, 1},
                       {"clip-norm", optimizer.clip_norm, 0, kMany},
                       {"label-smoothing", t.training.step.loss.label_smoothing, 0, 0.99},
                       {"warmup", t.warm_up_epochs, 0, 1e6},
                       {"final-lr", t.schedule.final_rate, 0, 1e6},
                       {"epochs", static_cast<double>(t.epochs), 1, kMany},
                       {"accumulate", static_cast<double>(t.training.step.micro_batches), 1, 1 << 20},
                       {"eval-every", static_cast<double>(t.evaluate_every), 1, kMany},
                       {"patience", static_cast<double>(t.patience), 0, kMany},
                       {"checkpoint-every", static_cast<double>(t.checkpoint_every), 0, kMany}});
}

Status check_images(const TrainJobOptions& o) {
  const AugmentOptions& a = o.trainer.augmentation;
  return check_ranges({{"batch", static_cast<double>(o.batch), 0, 1 << 20},
                       {"threads", static_cast<double>(o.threads), 0, 1024},
                       {"workers", static_cast<double>(o.trainer.workers), kAutoWorkers, 256},
                       {"val-share", o.validation_share, 0.001, 0.9},
                       {"padding", static_cast<double>(a.padding), 0, 1024},
                       {"min-area", a.min_area, 0.01, 1},
                       {"flip", a.flip, 0, 1},
                       {"brightness", a.brightness, 0, 1},
                       {"contrast", a.contrast, 0, 1},
                       {"saturation", a.saturation, 0, 1},
                       {"cutout", static_cast<double>(a.cutout), 0, 4096},
                       {"mixup", o.trainer.mixup, 0, 100}});
}

Strategy chosen(const TrainJobOptions& o) {
  if (o.strategy != Strategy::kAuto) return o.strategy;
  return o.rho || o.time || o.speedup ? Strategy::kElastic : Strategy::kFull;
}

bool chooses(Strategy strategy) { return strategy == Strategy::kElastic || strategy == Strategy::kPrune; }

// Without a share of its own, elastic training within a time takes what lowers the loss fastest.
bool by_rate(const TrainJobOptions& o) {
  return chosen(o) == Strategy::kElastic && !o.rho && (o.time || o.speedup);
}

bool begins_with_all(const TrainJobOptions& o) {
  return chosen(o) == Strategy::kFull || chosen(o) == Strategy::kFreeze || by_rate(o);
}

Status check_strategy(const TrainJobOptions& o) {
  if (o.time && o.speedup) return invalid("give time or speedup, not both");
  if (o.rho && o.speedup)
    return invalid("give rho or speedup, not both: a fixed share of each step, or a time for the whole");
  const Strategy strategy = chosen(o);
  if (o.rho && !chooses(strategy)) {
    return invalid("rho is for the strategies elastic and prune; '{}' trains what it trains",
                   strategy_name(strategy));
  }
  if (o.speedup && !begins_with_all(o)) {
    return invalid(
        "speedup is measured by training everything, which '{}' never does; give it a time, or a share (rho)",
        strategy_name(strategy));
  }
  if (!o.elastic.always.empty() && !chooses(strategy))
    return invalid("always-train is for the strategies elastic and prune; for '{}' say what to train",
                   strategy_name(strategy));
  return check_ranges({{"rho", o.rho.value_or(kDefaultRho), 0.01, 1},
                       {"speedup", o.speedup.value_or(1), 1, 100},
                       {"time", o.time.value_or(1), 0.1, kMany},
                       {"interval", o.elastic.interval_epochs, 0.01, 1e6},
                       {"interval-steps", static_cast<double>(o.elastic.interval_steps), 0, kMany},
                       {"early", o.elastic.early, 0, 0.9}});
}

// What is trained at first: within a share of the time little, since whatever is trained once needs memory.
void choose_first(const TrainJobOptions& o, TrainingOptions& training) {
  const Strategy strategy = chosen(o);
  using Names = std::vector<std::string>;
  if (strategy == Strategy::kLastLayer) {
    training.choose = [](const Graph& graph, const Names& names) -> Result<Names> {
      return last_layer(graph, names);
    };
  } else if (strategy == Strategy::kNormsAndBiases) {
    training.choose = [](const Graph& graph, const Names& names) -> Result<Names> {
      return norms_and_biases(graph, names);
    };
  } else if (chooses(strategy) || strategy == Strategy::kFreeze) {
    if (!begins_with_all(o))
      training.choose = [](const Graph&, const Names& names) -> Result<Names> { return Names{names.back()}; };
    training.step.optimizer.effects = chooses(strategy);
    training.forget_state = true;
    training.many_sets = true;
    const size_t phases = training.step.micro_batches > 1 ? 3 : 1;
    // Choices hardly ever return as a whole, and plans take memory; that of everything comes back as a probe.
    training.max_plans = (begins_with_all(o) ? 3 : 2) * phases;
  }
}

TrainerOptions settle_trainer(const TrainJobOptions& o) {
  TrainerOptions t = o.trainer;
  t.time = {o.time.value_or(0), o.speedup.value_or(0)};
  t.seed = o.seed;
  t.training.threads = thread_count(build_spec(o, false));
  t.training.step.batch = o.batch > 0 ? o.batch : kTrainBatch;
  OptimizerOptions& optimizer = t.training.step.optimizer;
  const bool sgd = optimizer.kind == OptimizerKind::kSgd, adamw = optimizer.kind == OptimizerKind::kAdamW;
  optimizer.decay = o.decay.value_or(sgd ? 5e-4 : adamw ? 0.01 : 0);
  t.schedule.rate = o.rate.value_or(sgd ? 0.01 : 0.001);
  if (!varies_images(t).empty()) t.training.feature_bytes = 0;
  choose_first(o, t.training);
  return t;
}

}  // namespace

std::string_view strategy_name(Strategy strategy) {
  constexpr std::array<std::string_view, 7> kNames = {"auto",   "full",    "elastic", "prune",
                                                      "freeze", "bn-bias", "last"};
  return kNames[static_cast<size_t>(strategy)];
}

Status check(const TrainJobOptions& o) {
  if (o.model.empty()) return invalid("which model? None is named");
  if (o.data.empty()) return invalid("which images? No data are named");
  if (o.output.empty()) return invalid("where to? No output folder is named");
  LIMBER_TRY(check_strategy(o));
  LIMBER_TRY(check_method(o));
  return check_images(o);
}

TrainSettings settle(const TrainJobOptions& o) {
  TrainSettings settings{.strategy = chosen(o)};
  settings.trainer = settle_trainer(o);
  if (!chooses(settings.strategy)) return settings;
  ElasticOptions elastic = o.elastic;
  elastic.rho = by_rate(o) ? std::nullopt : std::optional(o.rho.value_or(kDefaultRho));
  elastic.train = o.trainer.train;
  elastic.freeze = o.trainer.freeze;
  elastic.one_way = settings.strategy == Strategy::kPrune;
  settings.elastic = elastic;
  return settings;
}

std::string_view varies_images(const TrainerOptions& trainer) {
  return trainer.mixup > 0 ? "mixup" : random_change(trainer.augmentation);
}

OptionTexts describe(const TrainSettings& settings) {
  OptionTexts texts = describe(settings.trainer);
  if (settings.elastic) {
    texts.merge(describe(*settings.elastic));
  } else {
    texts["strategy"] = strategy_name(settings.strategy);
  }
  return texts;
}

}  // namespace limber
