// limber train: fits a classifier to labelled images.
#include <csignal>

#include "base/file.h"
#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/train_arguments.h"
#include "jobs/json.h"
#include "jobs/train_hooks.h"

namespace limber {
namespace {

// A line for each epoch.
class EpochLines : public TrainerHook {
 public:
  EpochLines(Console& console, const TrainCommand& options) : console_(console), options_(options) {}
  Status on_epoch_end(const EpochReport& report) override;

 private:
  Console& console_;
  const TrainCommand& options_;
};

Status EpochLines::on_epoch_end(const EpochReport& report) {
  std::string validation;
  if (report.validation) {
    validation = fmt::format("  val loss {:.4f}  val accuracy {}{}", report.validation->loss,
                             show_accuracy(report.validation->top1, report.validation->images),
                             report.best ? " (best)" : "");
  }
  console_.clear();
  say("epoch {}  loss {:.4f}  accuracy {:.2f} % in training{}  lr {:.3g}  {:.1f} s  {:.0f} images/s{}\n",
      epoch_text(report.epoch, options_.time || options_.speedup ? 0 : options_.trainer.epochs), report.loss,
      100 * report.accuracy, validation, report.rate, report.seconds, report.images_per_second,
      report.skipped > 0 ? fmt::format("  {} image{} skipped", report.skipped, report.skipped == 1 ? "" : "s")
                         : "");
  return {};
}

std::atomic<bool> hung_up{false};

void note_hang_up(int) { hung_up = true; }

// On SIGHUP, reads a new share of the time from the file RUN/rho, which holds one number; without such a file
// the training stops, as it does for SIGTERM.
std::optional<double> new_rho(const std::string& run) {
  constexpr size_t kMaxFile = 4096;  // bytes: it holds one number
  if (!hung_up.exchange(false)) return std::nullopt;
  auto text = os_files().read(run + "/rho", kMaxFile);
  if (!text.ok()) {
    stop_asked() = true;
    return std::nullopt;
  }
  while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  const std::vector<double> numbers = parse_numbers(*text);
  return numbers.size() == 1 ? numbers[0] : 0;  // 0 is refused, saying so
}

// A training that has no such share to change stops. Stands behind those who ask for the share.
class StopWhenHungUp : public TrainerHook {
 public:
  Status on_step_begin(TrainingSession& /*session*/, const TrainingState& /*state*/) override {
    if (hung_up.exchange(false)) stop_asked() = true;
    return {};
  }
};

void listen_for_hang_ups() {
  struct sigaction action {};
  action.sa_handler = note_hang_up;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, nullptr);
}

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

std::string validated_on(const TrainResult& result) {
  switch (result.validated_on) {
    case ValidatedOn::kNothing:
      return "nothing";
    case ValidatedOn::kGiven:
      return "given images";
    case ValidatedOn::kTestPart:
      return "test part";
    case ValidatedOn::kHeldOut:
      return "held out";
  }
  LIMBER_UNREACHABLE();
}

void report_json(const TrainCommand& options, const TrainResult& result) {
  const TrainingSummary& summary = result.summary;
  Json out = Json::object({{"run", options.output},
                           {"ending", ending_name(summary.ending)},
                           {"step", summary.state.step},
                           {"epoch", summary.state.epoch},
                           {"images", result.images},
                           {"validation_images", result.validation_images},
                           {"validated_on", validated_on(result)},
                           {"seconds", result.seconds},
                           {"skipped", summary.skipped}});
  if (result.time_limit_s > 0) out.set("time_limit_s", result.time_limit_s);
  if (result.full_s > 0) out.set("full_s", result.full_s);
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

void report_text(const TrainCommand& options, const TrainResult& result) {
  const TrainingState& state = result.summary.state;
  if (result.summary.ending == Ending::kPatience)
    fmt::print("ended early: no better evaluation in the last {}\n", options.trainer.patience);
  fmt::print("{} epoch{}, {} updates on {} images", state.epoch, state.epoch == 1 ? "" : "s", state.step,
             result.images);
  if (state.best_epoch >= 0) {
    fmt::print("; best accuracy {} on {} other images ({}), after epoch {}",
               show_accuracy(state.best_accuracy, result.validation_images), result.validation_images,
               validated_on(result), state.best_epoch + 1);
  }
  if (result.time_limit_s > 0)
    fmt::print("; {:.1f} s of {:.1f} s{}", result.seconds, result.time_limit_s,
               result.full_s > 0
                   ? fmt::format(", all epochs with everything would have taken {:.1f} s", result.full_s)
                   : "");
  fmt::print("\nrun: {}; next: limber eval {} --data ..., limber export {} -o model.onnx\n", options.output,
             options.output, options.output);
}

Result<int> train(const TrainCommand& options) {
  if (const Status status = check(options); !status.ok()) return usage_error(status);
  ConsoleControl console;
  EpochLines lines(console.console, options);
  StopWhenHungUp hang_ups;
  listen_for_hang_ups();
  const TrainWatch watch{.hooks = {&lines, &hang_ups}, .new_rho = [&] { return new_rho(options.output); }};
  auto result = run_train(options, console.control, watch);
  console.console.clear();
  LIMBER_TRY(result.status());
  const TrainingSummary& summary = result->summary;
  if (options.json) {
    report_json(options, *result);
  } else if (summary.ending != Ending::kStopped) {
    report_text(options, *result);
  }
  if (summary.ending != Ending::kStopped) return kExitDone;
  say("limber: stopped after step {}; the same command with --resume goes on\n", summary.state.step);
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
