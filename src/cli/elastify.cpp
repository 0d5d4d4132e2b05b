// limber elastify: from a model to one that can change its shape.
#include <fmt/core.h>

#include <sstream>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/elastic_arguments.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/table.h"
#include "jobs/elastify_job.h"
#include "jobs/json.h"
#include "jobs/master_job.h"
#include "supernet/expand/own_copy.h"

namespace limber {
namespace {

constexpr size_t kFewVariants = 4;  // of which names are printed; of more only what they are good for

struct ElastifyCommand {
  ElastifyJobOptions job;
  bool gates = false;
  bool json = false;
};

void print_blocks(const ElasticModel& model, bool taught) {
  Table table({{"block"}, {"alternative"}, {"blocks", true}, {"error", true}});
  for (const Block& block : model.blocks) {
    for (const Alternative& alternative : block.alternatives) {
      if (alternative.name == "original") continue;
      table.add({block.name, alternative.name, fmt::format("{}", alternative.span),
                 is_copy(alternative) || !taught ? "-" : fmt::format("{:.4f}", alternative.error)});
    }
  }
  fmt::print("{}", table.text());
}

void print_json(const ElastifyOutcome& outcome) {
  const auto judged = [&](const TunedVariant& one) {
    return Json::object({{"variant", print(outcome.folder.model, one.variant)},
                         {"share", one.share},
                         {"accuracy", one.accuracy}});
  };
  const Json out = Json::object({{"folder", outcome.folder.path},
                                 {"blocks", outcome.folder.model.blocks.size()},
                                 {"alternatives", outcome.alternatives},
                                 {"variants", count_variants(outcome.folder.model)},
                                 {"size_ratio", outcome.size_ratio},
                                 {"taught_s", outcome.taught_s},
                                 {"seconds", outcome.seconds},
                                 {"stopped", outcome.stopped},
                                 {"images", outcome.images.count},
                                 {"range_accuracy", outcome.range_accuracy},
                                 {"judged_on", outcome.judged.empty() ? "" : outcome.images.text()},
                                 {"tuned", Json::list(outcome.judged, judged)}});
  fmt::print("{}\n", out.text());
}

void print_tables(const ElastifyJobOptions& job, const ElastifyOutcome& outcome) {
  const ElasticModel& model = outcome.folder.model;
  print_blocks(model, outcome.taught_s > 0);
  fmt::print("{} blocks, {} alternatives, {:.3g} variants; {:.2f} times the size of the model\n",
             model.blocks.size(), outcome.alternatives, count_variants(model), outcome.size_ratio);
  if (!outcome.judged.empty()) {
    const int64_t images = outcome.images.count;
    const bool few = outcome.judged.size() <= kFewVariants;
    std::vector<Column> columns = {{"latency", true}, {"accuracy", true}};
    if (few) columns.push_back({"variant"});
    Table table(columns);
    for (const TunedVariant& one : outcome.judged) {
      std::vector<std::string> row = {one.share > 0 ? show_percent(one.share) : "-",
                                      show_accuracy(one.accuracy, images)};
      if (few) row.push_back(print(outcome.folder.model, one.variant));
      table.add(row);
    }
    fmt::print("\n{}over the range of latencies {:.1f} % on average; accuracies are of {}\n", table.text(),
               100 * outcome.range_accuracy, outcome.images.text());
  }
  fmt::print("next: limber search {} --data {} --latency 60%\n", job.output, job.data);
}

// "80%,60%"
std::string parse_shares(const std::string& text, std::vector<double>& to) {
  to.clear();
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    double seconds = 0, share = 0;
    if (!parse_latency(word, seconds, share).empty() || share == 0)
      return fmt::format("'{}' should be a share of the original's latency, as in 60%", word);
    to.push_back(share);
  }
  return to.empty() ? "there should be a share of the original's latency, as in 60%" : "";
}

// With --gates there are no alternatives, and nothing is tuned.
Status refuse_with_gates(const ElastifyJobOptions& job) {
  const ElastifyJobOptions usual;
  const auto useless = [](const char* option) {
    return invalid("--gates makes no alternatives: {} is of no use with it; leave one of them out", option);
  };
  if (!job.teach_data.empty()) return useless("--teach-on");
  if (!job.operators.empty()) return useless("--operators");
  if (job.shares != usual.shares) return useless("--tune-for");
  if (job.tune_rate != usual.tune_rate) return useless("--tune-lr");
  if (job.size_limit != usual.size_limit) return useless("--size-limit");
  if (job.answers.value_or(Answers::kClasses) != Answers::kClasses)
    return invalid("--gates is for classifiers; leave --answers out");
  if (job.budget == 0) return invalid("--gates trains the gates; give it a --budget");
  return {};
}

MasterJobOptions master_job(const ElastifyJobOptions& job) {
  MasterJobOptions master;
  static_cast<JobOptions&>(master) = job;
  master.data = job.data;
  master.output = job.output;
  master.resume = job.resume;
  master.budget = job.budget;
  master.image = job.image;
  master.changes = job.changes;
  master.rate = job.rate;
  master.learn_from = job.tune_to;
  master.on_bad_image = job.on_bad_image;
  master.workers = job.workers;
  return master;
}

void print_master_json(const MasterOutcome& made) {
  const auto level = [](const MasterLevel& one) {
    return Json::object({{"share", one.share},
                         {"operations", one.operations},
                         {"accuracy", one.accuracy},
                         {"by_size", one.by_size}});
  };
  fmt::print("{}\n", Json::object({{"folder", made.folder.path},
                                   {"blocks", made.folder.model.blocks.size()},
                                   {"trained_s", made.note.trained_s},
                                   {"seconds", made.seconds},
                                   {"stopped", made.stopped},
                                   {"images", made.note.count},
                                   {"judged_on", made.note.images},
                                   {"levels", Json::list(made.note.levels, level)}})
                         .text());
}

void print_master(const MasterOutcome& made) {
  if (made.note.levels.empty()) return;
  Table table({{"filters", true}, {"operations", true}, {"accuracy", true}, {"by size of weights", true}});
  for (const MasterLevel& level : made.note.levels) {
    table.add({show_percent(level.share), show_percent(level.operations),
               show_accuracy(level.accuracy, made.note.count),
               show_accuracy(level.by_size, made.note.count)});
  }
  fmt::print("{}accuracies are of {}, without any training of what was cut\n", table.text(),
             made.note.images);
}

int stopped_after(double seconds) {
  say("limber: stopped after {:.0f} s of teaching; the same command with --resume goes on\n", seconds);
  return kExitFailed;
}

Result<int> make_master(const ElastifyCommand& options) {
  LIMBER_TRY(refuse_with_gates(options.job));
  LIMBER_ASSIGN(const MasterOutcome made, on_console(run_master, master_job(options.job)));
  options.json ? print_master_json(made) : print_master(made);
  return made.stopped ? stopped_after(made.note.trained_s) : kExitDone;
}

Result<int> elastify(const ElastifyCommand& options) {
  if (options.gates) return make_master(options);
  LIMBER_ASSIGN(const ElastifyOutcome made, on_console(run_elastify, options.job));
  options.json ? print_json(made) : print_tables(options.job, made);
  return made.stopped ? stopped_after(made.taught_s) : kExitDone;
}

}  // namespace

void add_elastify(CommandLine& line) {
  auto options = std::make_shared<ElastifyCommand>();
  ElastifyJobOptions& job = options->job;
  Arguments arguments =
      line.add("elastify", "Give a model's blocks cheaper alternatives, taught by the model",
               [options] { return elastify(*options); });
  add_common(arguments, job, options->json);
  arguments.text("-d,--data", job.data, "DATA", "Images, with labels or without. See docs/training.md",
                 Arguments::Need::kRequired);
  arguments.text("--teach-on", job.teach_data, "DATA",
                 "Images that alternatives are taught on, without their labels, before variants are tuned on "
                 "--data: of a model that was trained in two steps those of the first. Default: --data");
  arguments.text("-o,--output", job.output, "DIR", "Folder of the elastic model", Arguments::Need::kRequired);
  arguments.flag("--resume", job.resume, "Go on with what is in DIR");
  arguments.flag("--gates", options->gates,
                 "Make a master instead: gates behind the filters, trained so that any share of them works, "
                 "and no alternatives. See docs/adaptation-master.md");
  arguments.parsed("--budget", "TIME",
                   "How long all takes, from loading to judging, as in 90s or 20min; default 10min. none: "
                   "alternatives are made, and nothing is taught",
                   [&job](const std::string& text) {
                     if (text != "none") return parse_seconds(text, job.budget);
                     job.budget = 0;
                     return std::string();
                   });
  arguments.number("--lr", job.rate, 1e-7, 1.0, "Learning rate of teaching at the beginning; default 0.001");
  arguments.number("--tune-lr", job.tune_rate, 1e-7, 1.0,
                   "The same of tuning, for the fastest variant; default 0.0015");
  arguments.parsed(
      "--tune-for", "SHARES",
      "Shares of the latency for which variants are tuned, as in 80%,60%; default: all from 95% to 30%",
      [&job](const std::string& text) { return parse_shares(text, job.shares); });
  arguments.choice<TuneTo>(
      "--labels", job.tune_to,
      {{"auto", TuneTo::kAuto}, {"data", TuneTo::kLabels}, {"original", TuneTo::kOriginal}},
      "What variants are tuned to: labels and the model's answers, or its answers alone; auto "
      "(default): labels where the data have the model's classes");
  arguments.choice<std::optional<Answers>>(
      "--answers", job.answers,
      {{"auto", std::nullopt},
       {"classes", Answers::kClasses},
       {"places", Answers::kPlaces},
       {"values", Answers::kValues}},
      "What the model says of an image: a class; the class of every place, as in segmentation; or values, in "
      "any number of outputs, as of detectors. auto (default): classes where it is a classifier, else "
      "values. "
      "What is no class is learnt from the model, and accuracy is how near variants are to it");
  arguments.number("--padding", job.changes.padding, 0, 1024,
                   "Pixels a random cut may reach beyond the image");
  arguments.number("--flip", job.changes.flip, 0.0, 1.0, "Probability of mirroring an image");
  arguments.texts("--operators", job.operators, "NAME", "Kinds of alternatives to try; default all");
  arguments.number("--size-limit", job.size_limit, 1.0, 100.0,
                   "All parameters together by those of the model; default 2.7");
  add_image_arguments(arguments, job.image);
  add_bad_images_argument(arguments, job.on_bad_image);
  add_workers_argument(arguments, job.workers);
  arguments.footer(
      "The model's own blocks stay as they are. Alternatives that are not faster on this machine are left "
      "out.\n"
      "Variants are judged by the test part of DATA, or else by a tenth of it that is held out.\n"
      "Ctrl-C stops after the batch under way and keeps what was taught.\n"
      "Examples:\n"
      "  limber elastify model.onnx --data photos -o elastic --budget 20min\n"
      "  limber elastify model.onnx --data photos -o elastic --budget 20min --resume\n"
      "  limber elastify model.onnx --data photos -o master --gates --padding 4 --flip 0.5");
}

}  // namespace limber
