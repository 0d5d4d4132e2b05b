#include <fmt/format.h>

#include "train/trainer.h"

namespace limber {
namespace {

std::string channels(const std::array<float, 3>& x) { return fmt::format("{},{},{}", x[0], x[1], x[2]); }

void describe_data(const Preprocess& input, const AugmentOptions& a, OptionTexts& texts) {
  texts["size"] = fmt::format("{}x{}x{}", input.channels, input.height, input.width);
  texts["resize"] = fmt::format("{}", input.resize);
  texts["mean"] = channels(input.normalisation.mean);
  texts["std"] = channels(input.normalisation.std);
  texts["padding"] = fmt::format("{}", a.padding);
  texts["min-area"] = fmt::format("{}", a.min_area);
  texts["flip"] = fmt::format("{}", a.flip);
  texts["jitter"] = fmt::format("{},{},{}", a.brightness, a.contrast, a.saturation);
  texts["cutout"] = fmt::format("{}", a.cutout);
}

void describe_optimizer(const OptimizerOptions& o, OptionTexts& texts) {
  texts["optimizer"] = optimizer_name(o.kind);
  texts["momentum"] = fmt::format("{}", o.momentum);
  texts["nesterov"] = fmt::format("{}", o.nesterov);
  texts["weight-decay"] = fmt::format("{}{}", o.decay, o.decoupled ? " decoupled" : "");
  texts["betas"] = fmt::format("{},{},{}", o.beta1, o.beta2, o.epsilon);
  texts["clip-norm"] = fmt::format("{}", o.clip_norm);
}

void describe_schedule(const TrainerOptions& options, OptionTexts& texts) {
  const ScheduleOptions& s = options.schedule;
  texts["lr"] = fmt::format("{}", s.rate);
  texts["schedule"] = schedule_name(s.kind);
  texts["warmup"] = fmt::format("{}", options.warm_up_epochs);
  if (s.kind == ScheduleKind::kStep)
    texts["milestones"] = fmt::format("{} at {}", s.step_factor, fmt::join(s.milestones, ","));
  if (s.kind == ScheduleKind::kCosine) texts["final-lr"] = fmt::format("{}", s.final_rate);
}

}  // namespace

OptionTexts describe(const TrainerOptions& options) {
  const StepOptions& step = options.training.step;
  OptionTexts texts;
  describe_data(options.input, options.augmentation, texts);
  describe_optimizer(step.optimizer, texts);
  describe_schedule(options, texts);
  texts["batch"] = fmt::format("{}", step.batch);
  texts["accumulate"] = fmt::format("{}", step.micro_batches);
  texts["threads"] = fmt::format("{}", options.training.threads);
  if (options.time.seconds <= 0) texts["epochs"] = fmt::format("{}", options.epochs);
  if (options.time.seconds > 0) texts["time"] = fmt::format("{}", options.time.seconds);
  if (options.time.speedup > 0) texts["speedup"] = fmt::format("{}", options.time.speedup);
  texts["seed"] = fmt::format("{}", options.seed);
  texts["loss"] = loss_name(step.loss.kind);
  texts["label-smoothing"] = fmt::format("{}", step.loss.label_smoothing);
  texts["mixup"] = fmt::format("{}", options.mixup);
  if (options.training.feature_bytes > 0) texts["cache-features"] = "on";
  texts["bn"] = batch_norm_name(step.batch_norm);
  texts["train"] = fmt::format("{}", fmt::join(options.train, " "));
  texts["freeze"] = fmt::format("{}", fmt::join(options.freeze, " "));
  texts["bad-images"] = options.on_bad_image == OnBadImage::kSkip ? "skip" : "fail";
  return texts;
}

}  // namespace limber
