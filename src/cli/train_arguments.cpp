#include "cli/train_arguments.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/units.h"
#include "cli/image_arguments.h"
#include "cli/options.h"

namespace limber {
namespace {

constexpr int64_t kMany = 1'000'000'000;  // epochs or updates: more than anybody waits for

// "0.2" for all three or "0.4,0.4,0.2".
std::string parse_jitter(const std::string& text, AugmentOptions& to) {
  const std::vector<double> values = parse_numbers(text);
  const bool inside = std::all_of(values.begin(), values.end(), [](double x) { return x >= 0 && x <= 1; });
  if (!inside || (values.size() != 1 && values.size() != 3))
    return fmt::format("'{}' should be one number or three in 0..1: brightness, contrast, saturation", text);
  to.brightness = values[0];
  to.contrast = values[values.size() / 2];
  to.saturation = values.back();
  return {};
}

std::string parse_validation(const std::string& text, TrainCommand& to) {
  to.validate = text != "none";
  to.validation = to.validate ? text : "";
  return {};
}

void declare_data(Arguments& arguments, TrainCommand& o) {
  using Need = Arguments::Need;
  arguments.text("-d,--data", o.data, "DATA",
                 "Labelled images: a folder, a file, IMAGES,LABELS or 'synthetic'", Need::kRequired);
  arguments.parsed(
      "--val", "DATA",
      "Images to evaluate on; default the test part of --data, else a part of its images that is "
      "then not trained on; none: no evaluation",
      [&o](const std::string& text) { return parse_validation(text, o); });
  arguments.number("--val-share", o.validation_share, 0.001, 0.9,
                   "Of --data without a test part, the share held out to evaluate on; default 0.1");
  add_image_arguments(arguments, o.image);
  AugmentOptions& a = o.trainer.augmentation;
  arguments.number("--padding", a.padding, 0, 1024, "Pixels a random cut may reach beyond the image");
  arguments.number("--min-area", a.min_area, 0.01, 1.0,
                   "Train on random parts of at least this share of the area");
  arguments.number("--flip", a.flip, 0.0, 1.0, "Probability of mirroring an image");
  arguments.parsed("--jitter", "B[,C,S]", "Random change of brightness, contrast, saturation, each 0..1",
                   [&a](const std::string& text) { return parse_jitter(text, a); });
  arguments.number("--cutout", a.cutout, 0, 4096, "Side of a random square that is blanked");
  arguments.number("--mixup", o.trainer.mixup, 0.0, 100.0, "Blend pairs of images, by Beta(N, N)");
  add_bad_images_argument(arguments, o.trainer.on_bad_image);
  add_workers_argument(arguments, o.trainer.workers);
}

void declare_method(Arguments& arguments, TrainCommand& o) {
  TrainerOptions& t = o.trainer;
  OptimizerOptions& optimizer = t.training.step.optimizer;
  arguments.number("--epochs", t.epochs, 1, kMany, "Times through the data; default 10");
  arguments.choice(
      "--optimizer", optimizer.kind,
      {{"sgd", OptimizerKind::kSgd}, {"adam", OptimizerKind::kAdam}, {"adamw", OptimizerKind::kAdamW}},
      "Default sgd");
  arguments.number("--lr", o.rate, 1e-12, 1e6,
                   "Learning rate; default 0.01 for sgd, 0.001 for adam and adamw");
  arguments.number("--momentum", optimizer.momentum, 0.0, 1.0, "Of sgd; default 0.9");
  arguments.flag("--nesterov", optimizer.nesterov, "Nesterov's momentum");
  arguments.number("--weight-decay", o.decay, 0.0, 100.0, "Default 5e-4 for sgd, 0 for adam, 0.01 for adamw");
  arguments.choice("--schedule", t.schedule.kind,
                   {{"constant", ScheduleKind::kConstant},
                    {"step", ScheduleKind::kStep},
                    {"cosine", ScheduleKind::kCosine}},
                   "Learning rate over time; step: a tenth after 1/2 and 3/4; default cosine, down to 0");
  arguments.number("--warmup", t.warm_up_epochs, 0.0, 1e6, "Epochs, or part of one, in which the rate grows");
  arguments.number("--label-smoothing", t.training.step.loss.label_smoothing, 0.0, 0.99, "Default 0");
  arguments.number("--clip-norm", optimizer.clip_norm, 0.0, 1e9,
                   "Largest norm of all gradients; 0 (default): any");
  arguments.number("--accumulate", t.training.step.micro_batches, 1, 1 << 20, "Batches that make one update");
}

void declare_model(Arguments& arguments, TrainCommand& o) {
  TrainerOptions& t = o.trainer;
  arguments.choice("--init", o.from_scratch, {{"model", false}, {"random", true}},
                   "Start from the model's weights (default) or from scratch");
  arguments.choice("--head", o.head,
                   {{"auto", HeadChoice::kAuto}, {"keep", HeadChoice::kKeep}, {"new", HeadChoice::kNew}},
                   "The classifier; auto (default): a new one when the number of classes differs");
  arguments.choice(
      "--bn", t.training.step.batch_norm,
      {{"auto", BatchNormMode::kAuto}, {"batch", BatchNormMode::kBatch}, {"frozen", BatchNormMode::kFrozen}},
      "Statistics of normalisation: as is below the first trained layer and of the batch above (default), of "
      "the batch everywhere, or as is");
  arguments.texts("--train", t.train, "PATTERN",
                  "Train only parameters with such names, as in 'classifier.*'");
  arguments.texts("--freeze", t.freeze, "PATTERN", "Do not train parameters with such names");
  arguments.parsed("--memory-limit", "BYTES", "What training may add to the process, as in 512M or 2G",
                   [&t](const std::string& text) { return parse_bytes(text, t.training.memory_limit); });
  arguments.parsed(
      "--cache-features", "BYTES",
      "Keep what the part below the first trained layer makes of each image, up to so much; images "
      "are then cut from the middle",
      [&t](const std::string& text) { return parse_bytes(text, t.training.feature_bytes); });
}

void declare_elastic(Arguments& arguments, TrainCommand& o) {
  arguments.choice(
      "--strategy", o.strategy,
      {{"auto", Strategy::kAuto},
       {"full", Strategy::kFull},
       {"elastic", Strategy::kElastic},
       {"prune", Strategy::kPrune},
       {"freeze", Strategy::kFreeze},
       {"bn-bias", Strategy::kNormsAndBiases},
       {"last", Strategy::kLastLayer}},
      "What is trained: all tensors; those worth most for their time, chosen again and again (or "
      "within --rho); those within --rho without return; all, then fewer and fewer from the input "
      "upwards; norms and biases; the last layer. auto: elastic when --time, --speedup or --rho is "
      "given, else full");
  arguments.parsed(
      "--time", "TIME",
      "Wall clock of the whole command, as in 90s or 10min, in which the training does what it can",
      [&o](const std::string& text) { return parse_seconds(text, o.time.emplace()); });
  arguments.number("--rho", o.rho, 0.01, 1.0,
                   "Time of each step as a share of that of training everything, fixed");
  arguments.number("--speedup", o.speedup, 1.0, 100.0,
                   "The time that training everything for --epochs would take, by this, as --time");
  arguments.number("--interval", o.elastic.interval_epochs, 0.01, 1e6,
                   "With --rho, epochs from one choice of tensors to the next; default 3");
  arguments.number("--interval-steps", o.elastic.interval_steps, 0, kMany, "The same in updates");
  arguments.number("--early", o.elastic.early, 0.0, 0.9,
                   "Spend more of the time early: the share falls from 1+N to 1-N times --rho; default 0.5");
  arguments.choice("--importance", o.elastic.importance,
                   {{"gain", ImportanceKind::kGain},
                    {"gradient-norm", ImportanceKind::kGradientNorm},
                    {"magnitude", ImportanceKind::kMagnitude}},
                   "What a tensor is worth: gradient times update (default), or to compare with");
  arguments.texts("--always-train", o.elastic.always, "PATTERN", "Tensors that are part of every choice");
}

void declare_run(Arguments& arguments, TrainCommand& o) {
  TrainerOptions& t = o.trainer;
  arguments.text("-o,--output", o.output, "RUN", "Folder for checkpoints and history.jsonl",
                 Arguments::Need::kRequired);
  arguments.flag("--resume", o.resume, "Go on where RUN stopped; from the start when it has not begun");
  arguments.number("--checkpoint-every", t.checkpoint_every, 0, kMany,
                   "Updates from one checkpoint to the next; one is written after every epoch, too");
  arguments.number("--eval-every", t.evaluate_every, 1, kMany,
                   "Epochs from one evaluation to the next; default 1");
  arguments.number("--patience", t.patience, 0, kMany, "End after so many evaluations without a better one");
  arguments.footer(
      "Ctrl-C stops after the step under way and writes a checkpoint; a second one ends at once.\n"
      "Examples:\n"
      "  limber train model.onnx --data photos -o run                     fine-tune on folders of images\n"
      "  limber train model.onnx --data photos -o run --train 'fc.*'      only the classifier\n"
      "  limber train model.onnx --data photos -o run --time 10min        the best of ten minutes\n"
      "  limber train builtin:resnet8 --data synthetic -o run --init random --epochs 5\n"
      "  limber train model.onnx --data photos -o run --resume            go on after an interruption\n"
      "  limber eval run --data photos/test; limber export run -o tuned.onnx");
}

}  // namespace

void declare_train(Arguments& arguments, TrainCommand& options) {
  add_common(arguments, options, options.json);
  declare_data(arguments, options);
  declare_method(arguments, options);
  declare_model(arguments, options);
  declare_elastic(arguments, options);
  declare_run(arguments, options);
}

}  // namespace limber
