// limber train: fits a classifier to labelled images.
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/train_work.h"

namespace limber {
namespace {

const char* ending_name(Ending ending) {
  switch (ending) {
    case Ending::kFinished:
      return "finished";
    case Ending::kPatience:
      return "patience";
    case Ending::kStopped:
      return "stopped";
  }
  LIMBER_UNREACHABLE();
}

void report_json(const TrainCommand& options, const TrainingSummary& summary) {
  Json out = Json::object({{"run", options.output},
                           {"ending", ending_name(summary.ending)},
                           {"step", summary.state.step},
                           {"epoch", summary.state.epoch},
                           {"skipped", summary.skipped}});
  if (summary.state.best_epoch >= 0) {
    out.set("best_epoch", summary.state.best_epoch + 1);
    out.set("best_accuracy", summary.state.best_accuracy);
    out.set("best_loss", summary.state.best_loss);
  }
  if (!summary.epochs.empty()) {
    out.set("loss", summary.epochs.back().loss);
    out.set("accuracy", summary.epochs.back().accuracy);
    out.set("images_per_s", summary.epochs.back().images_per_second);
  }
  fmt::print("{}\n", out.text());
}

void report_text(const TrainCommand& options, const TrainingSummary& summary) {
  const TrainingState& state = summary.state;
  if (summary.ending == Ending::kPatience)
    fmt::print("ended early: no better evaluation in the last {}\n", options.trainer.patience);
  fmt::print("{} epochs, {} updates", state.epoch, state.step);
  if (state.best_epoch >= 0)
    fmt::print("; best accuracy {:.2f} % after epoch {}", 100 * state.best_accuracy, state.best_epoch + 1);
  fmt::print("\nrun: {}; next: limber eval {} --data ..., limber export {} -o model.onnx\n", options.output,
             options.output, options.output);
}

Result<int> train(TrainCommand& options) {
  if (const Status status = complete(options); !status.ok()) return usage_error(status);
  LIMBER_ASSIGN(const TrainingSummary summary, run_training(options));
  if (options.json) {
    report_json(options, summary);
  } else if (summary.ending != Ending::kStopped) {
    report_text(options, summary);
  }
  if (summary.ending != Ending::kStopped) return kExitDone;
  fmt::print(stderr, "limber: stopped after step {}; the same command with --resume goes on\n",
             summary.state.step);
  return kExitFailed;
}

}  // namespace

void add_train(CommandLine& line) {
  auto options = std::make_shared<TrainCommand>();
  Arguments arguments = line.add("train", "Train or fine-tune a classifier on labelled images",
                                 [options] { return train(*options); });
  declare_train(arguments, *options);
}

}  // namespace limber
