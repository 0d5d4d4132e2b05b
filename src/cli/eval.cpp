// limber eval: how good a classifier is on a data set.
#include "base/show.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/elastic_arguments.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/table.h"
#include "jobs/eval_page.h"
#include "jobs/json.h"
#include "jobs/output.h"
#include "jobs/scores.h"

namespace limber {
namespace {

struct EvalCommand : EvalJobOptions {
  bool json = false, details = false;
  std::string labels, page;
};

Json details_json(const EvaluationRecord& record) {
  Json classes = Json::array();
  const auto counts = record.by_class();
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto& one = counts[i];
    if (one.images == 0 && one.predicted == 0) continue;
    classes.push(Json::object({{"class", i},
                               {"name", record.classes[i]},
                               {"images", one.images},
                               {"right", one.correct},
                               {"claimed", one.predicted}}));
  }
  const auto cell = [](const EvaluationRecord::Cell& of) {
    return Json::object({{"label", of.truth}, {"claimed", of.predicted}, {"images", of.count}});
  };
  const auto mistake = [](const EvaluationRecord::Mistake& of) {
    return Json::object(
        {{"image", of.image}, {"label", of.truth}, {"claimed", of.predicted}, {"confidence", of.confidence}});
  };
  const auto bin = [](const EvaluationRecord::Bin& of) {
    return Json::object({{"images", of.images}, {"right", of.correct}, {"confidence_sum", of.confidence}});
  };
  return Json::object({{"classes", classes},
                       {"confusions", Json::list(record.confusion, cell)},
                       {"worst", Json::list(record.worst, mistake)},
                       {"calibration_error", record.calibration_error()},
                       {"confidence", Json::list(record.bins, bin)}});
}

void report_json(const EvalCommand& options, const EvalResult& result) {
  const Evaluation& e = result.evaluation;
  Json out = Json::object({{"model", options.model},
                           {"data", options.data},
                           {"images", e.images},
                           {"judged_on", result.judged.images.text()},
                           {"accuracy", e.top1},
                           {"accuracy_95", interval_json(interval_of(e.top1, e.images))},
                           {"top5", e.top5},
                           {"loss", e.loss},
                           {"skipped", e.skipped},
                           {"seconds", e.seconds},
                           {"images_per_s", static_cast<double>(e.images) / std::max(e.seconds, 1e-9)}});
  if (options.details) out.set("details", details_json(result.record));
  fmt::print("{}\n", out.text());
}

void print_classes(const EvaluationRecord& record) {
  Table table({{"class"}, {"images", true}, {"right", true}, {"accuracy", true}, {"of those claimed", true}});
  const auto share = [](int64_t part, int64_t of) {
    return of > 0 ? show_percent(static_cast<double>(part) / static_cast<double>(of)) : "-";
  };
  const auto counts = record.by_class();
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto& one = counts[i];
    if (one.images == 0) continue;
    table.add({record.classes[i], std::to_string(one.images), std::to_string(one.correct),
               share(one.correct, one.images), share(one.correct, one.predicted)});
  }
  fmt::print("\n{}", table.text());
}

void print_details(const EvaluationRecord& record) {
  constexpr size_t kPairs = 10;  // a screen has room for all of it
  print_classes(record);
  fmt::print("\ncalibration error {:.1f} %: how far confidence and accuracy are apart\n",
             100 * record.calibration_error());
  const auto& names = record.classes;
  const auto pairs = record.mistaken();
  if (!pairs.empty()) fmt::print("\nmost often confused\n");
  for (size_t i = 0; i < std::min(pairs.size(), kPairs); ++i)
    fmt::print("  {:>5}  {} taken for {}\n", pairs[i].count, names[pairs[i].truth],
               names[pairs[i].predicted]);
  if (!record.worst.empty()) fmt::print("\nworst mistakes\n");
  for (const auto& mistake : record.worst)
    fmt::print("  {:>6.2f} %  {}: {} taken for {}\n", 100 * mistake.confidence, mistake.image,
               names[mistake.truth], names[mistake.predicted]);
}

void report_text(const EvalCommand& options, const EvalResult& result) {
  const Evaluation& e = result.evaluation;
  fmt::print("{} on {} in {} ({:.0f} images/s)\n", options.model, result.judged.images.text(),
             show_seconds(e.seconds), static_cast<double>(e.images) / std::max(e.seconds, 1e-9));
  fmt::print("accuracy   {}\n", show_accuracy(e.top1, e.images));
  if (result.record.classes.size() > 5) fmt::print("top 5      {}\n", show_accuracy(e.top5, e.images));
  fmt::print("loss       {:.4f}\n", e.loss);
  if (e.skipped > 0) fmt::print("skipped    {} images that cannot be read\n", e.skipped);
  if (options.details) print_details(result.record);
}

Result<int> evaluate(EvalCommand& options) {
  if (!options.labels.empty()) {
    LIMBER_ASSIGN(options.classes, read_labels(options.labels));
  }
  if (!options.page.empty()) LIMBER_TRY(check_output_file(options.page, options.model));
  LIMBER_ASSIGN(const auto result, on_console(run_eval, options));
  if (!result) return stopped();
  options.json ? report_json(options, *result) : report_text(options, *result);
  if (!options.page.empty()) LIMBER_TRY(write_eval_page(*result, options.page));
  return kExitDone;
}

}  // namespace

void add_eval(CommandLine& line) {
  auto options = std::make_shared<EvalCommand>();
  EvalCommand& o = *options;
  Arguments arguments = line.add("eval", "Accuracy and loss of a classifier on labelled images",
                                 [options] { return evaluate(*options); });
  add_common(arguments, o, o.json);
  arguments.text("-d,--data", o.data, "DATA", "A folder, file or 'synthetic'; see docs/training.md",
                 Arguments::Need::kRequired);
  arguments.choice("--split", o.split, {{"train", Split::kTrain}, {"test", Split::kTest}},
                   "Which part, where the data has parts; default test");
  arguments.flag("--details", o.details, "Each class, which are confused, calibration, the worst mistakes");
  arguments.text("--page", o.page, "FILE",
                 "Also write these as an HTML page, with the worst mistakes as pictures");
  arguments.text("--labels", o.labels, "FILE",
                 "Names of the model's classes, one per line, when the data has only some of them");
  add_image_arguments(arguments, o.image);
  add_bad_images_argument(arguments, o.on_bad_image);
  add_workers_argument(arguments, o.workers);
  arguments.footer(
      "A training's folder stands for its best checkpoint, which also says how images are prepared.\n"
      "Examples:\n"
      "  limber eval model.onnx --data photos --size 256 --crop 224 --mean 0.485,0.456,0.406 --std "
      "0.229,0.224,0.225\n"
      "  limber eval RUN --data photos/test --details");
}

}  // namespace limber
