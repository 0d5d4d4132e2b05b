// limber exits: gives an elastic model exits, and finds the confidence at which they may be taken.
#include "supernet/exits/exits.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cli/commands.h"
#include "cli/exit_report.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/search_work.h"
#include "cli/signals.h"
#include "cli/units.h"
#include "data/subset.h"
#include "supernet/exits/exit_tuning.h"
#include "supernet/exits/subnet_exit.h"
#include "supernet/teach/tune.h"
#include "variant/elastic_folder.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

constexpr std::string_view kBlocksNote = "exits blocks";  // the variant whose blocks they are for
constexpr std::string_view kHeldNote =
    "exits held out";  // "COUNT SEED": images that exits were not taught on

struct ExitsCommand : CommonOptions {
  std::string data, calibration, labels = "data", bad_images = "fail", blocks = "frozen";
  int count = 2;
  bool again = false;
  double budget = 600, rate = 3e-3, tuning_rate = 1e-3, flip = 0, max_drop = 1, storage = 3;
  double latency = 0, latency_share = 0;
  int64_t held = 0, images = 200;
  int workers = kAutoWorkers, padding = 0;
};

struct HeldOut {
  size_t count = 0;
  uint64_t seed = 0;
};

struct ExitsWork {
  const ExitsCommand& options;
  ElasticFolder folder;
  std::vector<std::shared_ptr<Backend>> backends;
  int threads = 1;
  std::shared_ptr<const Dataset> teaching;  // what exits are taught on
  EvaluationSet held, test;                 // the latter may be empty
  Variant blocks;                           // whose exits these are
  ExitReport report;                        // of exits that were made now
  bool made = false;

  const ElasticModel& model() const { return folder.model; }
};

// Of images in memory, so many at most.
size_t most_images(const Preprocess& input, size_t wanted) {
  constexpr size_t kMostBytes = size_t{1} << 30;
  const auto side = static_cast<size_t>(input.height) * static_cast<size_t>(input.width);
  const size_t bytes = side * static_cast<size_t>(input.channels) * sizeof(float);
  return std::clamp<size_t>(kMostBytes / std::max<size_t>(1, bytes), 1, wanted);
}

// What the folder says, as exits there have seen the other images; or a tenth, as far as that is needed.
HeldOut held_out(const ExitsWork& work, size_t size) {
  const ExitsCommand& o = work.options;
  HeldOut held{static_cast<size_t>(o.held), o.seed};
  if (held.count == 0)
    held.count = std::clamp<size_t>(size / 10, 1, most_images(work.folder.info.input, 5000));
  const auto note = work.folder.info.notes.find(std::string(kHeldNote));
  if (work.model().exits.empty() || o.again || note == work.folder.info.notes.end()) return held;
  const std::string& text = note->second;
  const auto first = std::from_chars(text.data(), text.data() + text.size(), held.count);
  const char* const second = first.ptr == text.data() + text.size() ? first.ptr : first.ptr + 1;
  std::from_chars(second, text.data() + text.size(), held.seed);
  return held;
}

// In an order that mixes classes, always the same.
Result<EvaluationSet> load_set(const ExitsWork& work, std::shared_ptr<const Dataset> data, size_t most) {
  const ExitsCommand& o = work.options;
  LoaderOptions how;
  how.batch = std::min<int64_t>(o.batch, static_cast<int64_t>(data->size()));
  how.augment = false;
  how.workers = o.workers;
  how.threads = work.threads;
  how.input = work.folder.info.input;
  how.on_bad_image = o.bad_images == "skip" ? OnBadImage::kSkip : OnBadImage::kFail;
  LIMBER_ASSIGN(const auto loader, Loader::make(std::move(data), how));
  LIMBER_ASSIGN(EvaluationSet set, load_evaluation_set(*loader, static_cast<int64_t>(most)));
  if (o.labels == "data") return set;
  LIMBER_ASSIGN(const auto runner, BlockRunner::create(work.model(), work.backends,
                                                       {.batch = how.batch, .threads = work.threads}));
  LIMBER_TRY(runner->label_by_original(set));
  return set;
}

// What the confidence is found on: images that are given, or part of the others.
Status load_calibration(ExitsWork& work, const std::shared_ptr<const Dataset>& data) {
  const ExitsCommand& o = work.options;
  if (!o.calibration.empty()) {
    const OpenOptions open{.split = Split::kTrain, .expected = work.folder.info.classes};
    LIMBER_ASSIGN(std::shared_ptr<const Dataset> given, open_dataset(o.calibration, open));
    const size_t most = most_images(work.folder.info.input, given->size());
    work.teaching = data;
    LIMBER_ASSIGN(work.held, load_set(work, std::move(given), most));
    return {};
  }
  const HeldOut how = held_out(work, data->size());
  LIMBER_ASSIGN(const SplitDataset split, hold_out(data, how.count, how.seed));
  work.teaching = split.rest;
  work.folder.info.notes[std::string(kHeldNote)] = fmt::format("{} {}", how.count, how.seed);
  LIMBER_ASSIGN(work.held, load_set(work, split.held, how.count));
  return {};
}

Status load_images(ExitsWork& work) {
  OpenOptions open{.split = Split::kTrain, .expected = work.folder.info.classes};
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data, open_dataset(work.options.data, open));
  LIMBER_TRY(load_calibration(work, data));
  open.split = Split::kTest;
  open.need_split = true;
  auto test = open_dataset(work.options.data, open);
  if (!test.ok()) return test.status().code() == Code::kNotFound ? Status() : test.status();
  LIMBER_ASSIGN(work.test, load_set(work, *std::move(test), most_images(work.folder.info.input, 10000)));
  return {};
}

ExitOptions exit_options(const ExitsWork& work, ProgressLine& line) {
  const ExitsCommand& o = work.options;
  ExitOptions how{.max_exits = o.count, .storage = o.storage / 100, .max_drop = o.max_drop / 100};
  how.teaching.trainer.batch = std::min<int64_t>(o.batch, static_cast<int64_t>(work.teaching->size()));
  how.teaching.trainer.threads = work.threads;
  if (o.labels == "model") how.distill = 1;
  how.teaching.seconds = o.budget;
  how.teaching.rate = o.rate;
  how.teaching.seed = o.seed;
  how.teaching.input = work.folder.info.input;
  how.teaching.augmentation.flip = o.flip;
  how.teaching.augmentation.padding = o.padding;
  how.tune = o.blocks == "tuned";
  how.tuning_rate = o.tuning_rate;
  how.teaching.on_bad_image = o.bad_images == "skip" ? OnBadImage::kSkip : OnBadImage::kFail;
  how.teaching.workers = o.workers;
  how.teaching.stop = &stop_asked();
  how.progress = [&line](ExitPhase phase, const ExitProgress& p) {
    const std::string what = fmt::format("{} {}", phase_name(phase), progress_bar(p.seconds / p.of_seconds));
    line.show(phase == ExitPhase::kTiming ? what
                                          : fmt::format("{} {:.0f} of {:.0f} s  {} images  loss {:.4f}", what,
                                                        p.seconds, p.of_seconds, p.images, p.loss));
  };
  return how;
}

Status find_blocks(ExitsWork& work) {
  work.blocks = original_variant(work.model());
  const auto note = work.folder.info.notes.find(std::string(kBlocksNote));
  if (note == work.folder.info.notes.end()) return {};
  LIMBER_ASSIGN(work.blocks, parse_variant(note->second));
  return check_variant(work.model(), work.blocks)
      .in(fmt::format("{}: note '{}'; --again makes exits anew", work.folder.path, kBlocksNote));
}

// The best of those that elastify tuned.
Result<ExitReport> find_subnet(ExitsWork& work) {
  const std::vector<Variant> subnets = tuned_variants(work.model(), work.folder.info);
  if (subnets.empty())
    return invalid("{} has no tuned subnet; give 'limber elastify' more --budget, and --tune-for 40%",
                   work.folder.path);
  const MeasureOptions timing{.threads = work.threads, .seconds = 0.1};
  return add_subnet_exit(work.folder.model, subnets, work.held, work.backends, timing,
                         work.options.max_drop / 100);
}

// Unless the folder has some.
Status make_exits(ExitsWork& work) {
  if (!work.model().exits.empty() && !work.options.again) return find_blocks(work);
  ProgressLine line;
  const ExitOptions how = exit_options(work, line);
  auto report = work.options.blocks == "subnet"
                    ? find_subnet(work)
                    : add_exits(work.folder.model, work.teaching, work.held, work.backends, how);
  line.clear();
  if (!report.ok()) return report.status();
  work.report = *std::move(report);
  work.blocks = work.report.variant;
  work.folder.info.notes[std::string(kBlocksNote)] = print(work.blocks);
  work.made = true;
  if (work.model().exits.empty()) return error(Code::kResourceExhausted, "stopped before there was an exit");
  return save_elastic(work.folder.path, work.model(), work.folder.info);
}

// What endings say about the images of a set, and how often the model itself is right. Times are those of
// `timed`, when it is given.
Result<ExitOutcomes> judge(const ExitsWork& work, const EvaluationSet& set, const ExitOutcomes* timed,
                           double& original, std::vector<int>& exits) {
  const int64_t batch = set.images[0].shape().dim(0);
  LIMBER_ASSIGN(const auto blocks,
                BlockRunner::create(work.model(), work.backends, {.batch = batch, .threads = work.threads}));
  const Variant model = original_variant(work.model());
  LIMBER_ASSIGN(const auto correct, blocks->count_correct(std::span(&model, 1), set));
  original = static_cast<double>(correct[0]) / static_cast<double>(set.count());
  LIMBER_ASSIGN(const auto runner, ExitRunner::create(work.model(), work.blocks, work.backends,
                                                      {.batch = batch, .threads = work.threads}));
  exits.clear();
  for (size_t e = 0; e + 1 < runner->endings(); ++e) exits.push_back(runner->exit(e));
  LIMBER_ASSIGN(ExitOutcomes outcomes, judge_exits(*runner, set));
  if (timed != nullptr) {
    for (size_t e = 0; e < outcomes.endings.size(); ++e) {
      outcomes.endings[e].seconds = timed->endings[e].seconds;
      outcomes.endings[e].forced_seconds = timed->endings[e].forced_seconds;
    }
    return outcomes;
  }
  const MeasureOptions timing{.threads = work.threads, .seconds = 0.1};
  LIMBER_TRY(time_exits(work.model(), work.blocks, *runner, work.backends, timing, outcomes));
  return outcomes;
}

Result<ExitFindings> calibrate(const ExitsWork& work) {
  ExitFindings out{.folder = work.folder.path, .model = work.model(), .report = work.report};
  LIMBER_ASSIGN(out.held, judge(work, work.held, nullptr, out.original, out.exits));
  // The model may know the images held out from its own training, which tuned blocks have forgotten.
  const double end = outcome_at(out.held, 0).accuracy;
  out.point = calibrate_exits(out.held, std::min(out.original, end) - work.options.max_drop / 100);
  out.variant = work.blocks;
  out.variant.confidence = out.point.confidence;
  const bool tested = !work.test.images.empty();
  if (tested) {
    LIMBER_ASSIGN(out.test, judge(work, work.test, &out.held, out.test_original, out.exits));
    out.test_point = outcome_at(out.test, out.point.confidence);
  }
  LIMBER_ASSIGN(out.real, measure_real_latency(work.model(), out.variant, tested ? work.test : work.held,
                                               work.options.images, work.backends, work.threads));
  LIMBER_ASSIGN(out.storage, exit_storage(work.model()));
  LIMBER_ASSIGN(out.tuned_storage, tuned_storage(work.model()));
  return out;
}

// What is known of variants with exits that are not there any more.
Status forget_exits(VariantTable& table) {
  LIMBER_ASSIGN(const auto index, table.index());
  for (const std::string& context : index->contexts()) {
    for (const VariantRecord& record : index->all(context)) {
      if (record.variant.exit < 0 && record.variant.confidence <= 0) continue;
      LIMBER_TRY(table.erase(context, record.variant));
    }
  }
  return {};
}

// The variant with the confidence, and one for each exit that always ends it.
Status keep_records(const ExitsWork& work, const ExitFindings& found) {
  LIMBER_ASSIGN(const auto table, VariantTable::open(variants_in(work.folder.path)));
  if (work.made) LIMBER_TRY(forget_exits(*table));
  std::vector<VariantRecord> records;
  const auto add = [&](const Variant& variant, double predicted, double accuracy) -> Status {
    LIMBER_ASSIGN(const GraphCost cost, cost_of(work.model(), variant));
    records.push_back({.context = machine_context(work.threads),
                       .variant = variant,
                       .predicted_s = predicted,
                       .accuracy = accuracy,
                       .images = work.held.count(),
                       .parameter_bytes = cost.parameter_bytes,
                       .flops = cost.flops});
    return {};
  };
  LIMBER_TRY(add(found.variant, found.point.seconds, found.point.accuracy));
  records.back().measured_s = found.real.seconds;
  for (size_t e = 0; e < found.exits.size(); ++e) {
    Variant forced = work.blocks;
    forced.exit = found.exits[e];
    const ExitOutcomes::Ending& ending = found.held.endings[e];
    LIMBER_TRY(add(forced, ending.forced_seconds, share_correct(ending)));
  }
  return table->put(records);
}

Result<int> run_exits(ExitsCommand& options) {
  if (options.batch == 0) options.batch = 64;
  if (!std::filesystem::exists(options.model + "/manifest.json"))
    return usage_error(invalid("{} is no elastic model; 'limber elastify' makes one", options.model));
  LIMBER_ASSIGN(ElasticFolder folder, load_elastic(options.model));
  const BuildSpec spec = build_spec(options, false);
  ExitsWork work{options, std::move(folder), make_backends(spec), thread_count(spec), nullptr, {}, {}, {},
                 {}};
  catch_stop_signals();
  LIMBER_TRY(load_images(work));
  LIMBER_TRY(make_exits(work));
  LIMBER_ASSIGN(const ExitFindings found, calibrate(work));
  LIMBER_TRY(keep_records(work, found));
  if (options.json) {
    print_json(found);
  } else {
    print_tables(found, options.latency > 0 ? options.latency : options.latency_share * found.full_seconds());
  }
  if (!work.report.stopped) return kExitDone;
  fmt::print(stderr, "limber: stopped before exits were taught to the end; --again starts over\n");
  return kExitFailed;
}

}  // namespace

void add_exits_command(CommandLine& line) {
  auto options = std::make_shared<ExitsCommand>();
  ExitsCommand& o = *options;
  Arguments arguments = line.add("exits", "Give an elastic model exits that easy images leave by",
                                 [options] { return run_exits(*options); });
  add_common(arguments, o, Arguments::Need::kRequired, kElasticModelHelp);
  arguments.text("-d,--data", o.data, "DATA", "Images that exits are taught on, and judged by those held out",
                 Arguments::Need::kRequired);
  arguments.text(
      "--calibration", o.calibration, "DATA",
      "Images that the confidence is found on; best such that the model was not trained on. Default: "
      "some of --data, held out");
  arguments.number("--max-drop", o.max_drop, 0.0, 100.0, "Points of accuracy that may be lost; default 1");
  arguments.number("--exits", o.count, 1, 16, "How many exits at most; default 2");
  arguments.number("--storage", o.storage, 0.01, 100.0,
                   "Parameters of all exits, in % of the model's, at most; default 3");
  arguments.parsed("--budget", "TIME", "How long exits are taught, as in 90s or 20min; default 10min",
                   [&o](const std::string& text) { return parse_seconds(text, o.budget); });
  arguments.flag("--again", o.again, "Make exits anew where there are some");
  arguments.parsed("--latency", "LIMIT", "Also name the best exit within this, as in 60% or 12ms",
                   [&o](const std::string& text) { return parse_latency(text, o.latency, o.latency_share); });
  arguments.choice(
      "--blocks", o.blocks, {"frozen", "tuned", "subnet"},
      "What runs before an exit: the model's own blocks (default), copies tuned with exits, or a "
      "subnet that elastify tuned, after which unsure images start again with the model");
  arguments.choice("--labels", o.labels, {"data", "model"},
                   "Whose labels count: the data's (default), or what the model says");
  arguments.number("--held", o.held, int64_t{0}, int64_t{1000000},
                   "Images held out for calibration; default a tenth, at most 5000");
  arguments.number("--images", o.images, int64_t{1}, int64_t{1000000},
                   "Images that are timed one by one; default 200");
  arguments.number("--lr", o.rate, 1e-7, 1.0, "Learning rate of exits at the beginning; default 0.003");
  arguments.number("--lr-blocks", o.tuning_rate, 1e-7, 1.0, "The same of tuned blocks; default 0.001");
  arguments.number("--flip", o.flip, 0.0, 1.0, "Probability of mirroring an image");
  arguments.number("--padding", o.padding, 0, 1024, "Pixels a random cut may reach beyond the image");
  arguments.choice("--bad-images", o.bad_images, {"fail", "skip"},
                   "Images that cannot be read; default fail");
  add_workers_argument(arguments, o.workers);
  arguments.footer(
      "MODEL is the folder that 'limber elastify' made; it gets the exits, unless it has some. The "
      "confidence\n"
      "is found on images that exits were not taught on, and is kept in the variant table.\n"
      "Examples:\n"
      "  limber exits elastic --data photos --max-drop 1\n"
      "  limber exits elastic --data photos --calibration more-photos --blocks subnet\n"
      "  limber exits elastic --data photos --exits 3 --budget 20min --again --json");
}

}  // namespace limber
