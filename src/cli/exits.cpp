// limber exits: gives an elastic model exits, and finds the confidence at which they may be taken.
#include "supernet/exits.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/units.h"
#include "data/subset.h"
#include "device/cpu.h"
#include "supernet/exit_runner.h"
#include "variant/elastic_folder.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

constexpr std::string_view kBlocksNote = "exits blocks";  // the variant whose blocks they are for
constexpr std::string_view kHeldNote =
    "exits held out";  // "COUNT SEED": images that exits were not taught on

struct ExitsCommand : CommonOptions {
  std::string data, labels = "data", bad_images = "fail", blocks = "tuned";
  int count = 2;
  bool again = false;
  double budget = 600, rate = 3e-3, tuning_rate = 1e-3, flip = 0, max_drop = 1, storage = 3;
  double latency = 0, latency_share = 0;
  int64_t held = 0, images = 200;
  int workers = 1, padding = 0;
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

// What the folder says, as exits there have seen the other images; or a tenth, as far as that is needed.
HeldOut held_out(const ExitsWork& work, size_t size) {
  const ExitsCommand& o = work.options;
  HeldOut held{static_cast<size_t>(o.held), o.seed};
  if (held.count == 0) held.count = std::clamp<size_t>(size / 10, 1, 5000);
  const auto note = work.folder.info.notes.find(std::string(kHeldNote));
  if (work.model().exits.empty() || o.again || note == work.folder.info.notes.end()) return held;
  const std::string& text = note->second;
  const auto first = std::from_chars(text.data(), text.data() + text.size(), held.count);
  const char* const second = first.ptr == text.data() + text.size() ? first.ptr : first.ptr + 1;
  std::from_chars(second, text.data() + text.size(), held.seed);
  return held;
}

Result<EvaluationSet> load_set(const ExitsWork& work, std::shared_ptr<const Dataset> data) {
  const ExitsCommand& o = work.options;
  LoaderOptions how;
  how.batch = std::min<int64_t>(o.batch, static_cast<int64_t>(data->size()));
  how.shuffle = how.augment = false;
  how.workers = o.workers;
  how.augmentation = work.folder.info.input;
  how.on_bad_image = o.bad_images == "skip" ? OnBadImage::kSkip : OnBadImage::kFail;
  LIMBER_ASSIGN(const auto loader, Loader::make(std::move(data), how));
  LIMBER_ASSIGN(EvaluationSet set, load_evaluation_set(*loader));
  if (o.labels == "data") return set;
  LIMBER_ASSIGN(const auto runner, BlockRunner::create(work.model(), work.backends,
                                                       {.batch = how.batch, .threads = work.threads}));
  LIMBER_TRY(runner->label_by_original(set));
  return set;
}

Status load_images(ExitsWork& work) {
  OpenOptions open{.split = Split::kTrain, .expected = work.folder.info.classes};
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data, open_dataset(work.options.data, open));
  const HeldOut how = held_out(work, data->size());
  LIMBER_ASSIGN(const SplitDataset split, hold_out(data, how.count, how.seed));
  work.teaching = split.rest;
  work.folder.info.notes[std::string(kHeldNote)] = fmt::format("{} {}", how.count, how.seed);
  LIMBER_ASSIGN(work.held, load_set(work, split.held));
  open.split = Split::kTest;
  open.need_split = true;
  auto test = open_dataset(work.options.data, open);
  if (!test.ok()) return test.status().code() == Code::kNotFound ? Status() : test.status();
  LIMBER_ASSIGN(work.test, load_set(work, *std::move(test)));
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
  how.teaching.input.flip = o.flip;
  how.teaching.input.padding = o.padding;
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

// Exits of their own need teaching; what was found out with others does not hold any more.
Status make_exits(ExitsWork& work) {
  if (!work.model().exits.empty() && !work.options.again) return find_blocks(work);
  ProgressLine line;
  const ExitOptions how = exit_options(work, line);
  auto report = add_exits(work.folder.model, work.teaching, work.held, work.backends, how);
  line.clear();
  if (!report.ok()) return report.status();
  work.report = *std::move(report);
  work.blocks = work.report.variant;
  work.folder.info.notes[std::string(kBlocksNote)] = print(work.blocks);
  work.made = true;
  if (work.model().exits.empty()) return error(Code::kResourceExhausted, "stopped before there was an exit");
  return save_elastic(work.folder.path, work.model(), work.folder.info);
}

struct Calibrated {
  ExitOutcomes held, test;  // the latter without endings when there are no such images
  ExitPoint point, test_point;
  double original = 0, test_original = 0;  // accuracies of the model
  Variant variant;                         // the blocks with the confidence
  std::vector<int> exits;
  RealLatency real;
  double storage = 0;
};

// What endings say about the images of a set, and how often the model itself is right.
Result<ExitOutcomes> judge(const ExitsWork& work, const EvaluationSet& set, double& original,
                           std::vector<int>& exits) {
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
  LIMBER_TRY(outcomes.check());
  const MeasureOptions timing{.threads = work.threads, .seconds = 0.1};
  LIMBER_TRY(time_exits(work.model(), work.blocks, *runner, work.backends, timing, outcomes));
  return outcomes;
}

Result<Calibrated> calibrate(const ExitsWork& work) {
  Calibrated out;
  LIMBER_ASSIGN(out.held, judge(work, work.held, out.original, out.exits));
  // The model may know the images held out from its own training, which tuned blocks have forgotten.
  const double end = outcome_at(out.held, 0).accuracy;
  out.point = calibrate_exits(out.held, std::min(out.original, end) - work.options.max_drop / 100);
  out.variant = work.blocks;
  out.variant.confidence = out.point.confidence;
  const bool tested = !work.test.images.empty();
  if (tested) {
    LIMBER_ASSIGN(out.test, judge(work, work.test, out.test_original, out.exits));
    out.test_point = outcome_at(out.test, out.point.confidence);
  }
  LIMBER_ASSIGN(out.real, measure_real_latency(work.model(), out.variant, tested ? work.test : work.held,
                                               work.options.images, work.backends, work.threads));
  LIMBER_ASSIGN(out.storage, exit_storage(work.model()));
  return out;
}

std::string machine(const ExitsWork& work) {
  std::string name = cpu_info().name;
  name.resize(std::min(name.size(), kMaxContext - 32));
  return fmt::format("{}, {} threads", name, work.threads);
}

// The variant with the confidence, and one for each exit that always ends it.
Status keep_records(const ExitsWork& work, const Calibrated& found) {
  LIMBER_ASSIGN(const auto table, VariantTable::open(variants_in(work.folder.path)));
  if (work.made) LIMBER_TRY(table->erase_all());
  std::vector<VariantRecord> records;
  const auto add = [&](const Variant& variant, double predicted, double accuracy) -> Status {
    LIMBER_ASSIGN(const GraphCost cost, cost_of(work.model(), variant));
    records.push_back({.context = machine(work),
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
    const auto& correct = found.held.endings[e].correct;
    const auto right = static_cast<double>(std::count(correct.begin(), correct.end(), true));
    LIMBER_TRY(
        add(forced, found.held.endings[e].forced_seconds, right / static_cast<double>(correct.size())));
  }
  return table->put(records);
}

Json point_json(const ExitPoint& point, double full) {
  Json shares = Json::array();
  for (const double share : point.shares) shares.push(share);
  Json out = Json::object({{"confidence", point.confidence},
                           {"accuracy", point.accuracy},
                           {"mean_s", point.seconds},
                           {"of_full", point.seconds / full}});
  out.set("shares", std::move(shares));
  return out;
}

Json exits_json(const ExitsWork& work, const Calibrated& found) {
  Json exits = Json::array();
  for (size_t e = 0; e < found.exits.size(); ++e) {
    const Exit& exit = work.model().exits[static_cast<size_t>(found.exits[e])];
    const auto& ending = found.held.endings[e];
    const auto right = std::count(ending.correct.begin(), ending.correct.end(), true);
    exits.push(
        Json::object({{"name", exit.name},
                      {"after", exit.after},
                      {"accuracy", static_cast<double>(right) / static_cast<double>(ending.correct.size())},
                      {"forced_s", ending.forced_seconds}}));
  }
  return exits;
}

void report_json(const ExitsWork& work, const Calibrated& found) {
  const double full = found.held.endings.back().forced_seconds;
  Json out = Json::object({{"folder", work.folder.path},
                           {"variant", print(found.variant)},
                           {"storage", found.storage},
                           {"full_s", full},
                           {"images", work.held.count()},
                           {"original_accuracy", found.original},
                           {"real_s", found.real.seconds},
                           {"real_full_s", found.real.full_seconds}});
  out.set("calibrated", point_json(found.point, full));
  if (!found.test.endings.empty()) {
    Json test = point_json(found.test_point, full);
    test.set("images", work.test.count());
    test.set("original_accuracy", found.test_original);
    test.set("end_accuracy", outcome_at(found.test, 0).accuracy);
    out.set("test", std::move(test));
  }
  out.set("exits", exits_json(work, found));
  fmt::print("{}\n", out.text());
}

std::vector<std::string> point_row(const std::string& name, const ExitPoint& point, double full) {
  std::vector<std::string> row = {name, point.confidence > 0 ? fmt::format("{:.6g}", point.confidence) : "-",
                                  fmt::format("{:.2f} %", 100 * point.accuracy), show_seconds(point.seconds),
                                  show_percent(point.seconds / full)};
  for (const double share : point.shares) row.push_back(show_percent(share));
  return row;
}

void report_table(const ExitsWork& work, const Calibrated& found) {
  const double full = found.held.endings.back().forced_seconds;
  std::vector<Column> columns = {
      {""}, {"confidence", true}, {"accuracy", true}, {"mean time", true}, {"of full", true}};
  for (const int e : found.exits) columns.push_back({work.model().exits[static_cast<size_t>(e)].name, true});
  columns.push_back({"end", true});
  Table table(std::move(columns));
  constexpr int kRows = 6;
  for (const ExitPoint& point : exit_curve(found.held, kRows)) table.add(point_row("held out", point, full));
  table.add(point_row("calibrated", found.point, full));
  if (!found.test.endings.empty()) {
    table.add(point_row("test, no exits", outcome_at(found.test, 0), full));
    table.add(point_row("test, calibrated", found.test_point, full));
  }
  fmt::print("{}", table.text());
  fmt::print("the model's accuracy {:.2f} % on {} images held out", 100 * found.original, work.held.count());
  if (!found.test.endings.empty())
    fmt::print(", {:.2f} % on {} of the test part", 100 * found.test_original, work.test.count());
  fmt::print("\nfull model {}; exits take {:.2f} % of its storage\n", show_seconds(full),
             100 * found.storage);
  fmt::print("image by image: {} against {} for the full model ({}) on {} images\n",
             show_seconds(found.real.seconds), show_seconds(found.real.full_seconds),
             show_percent(found.real.seconds / found.real.full_seconds), found.real.images);
}

void report_places(const ExitsWork& work) {
  if (!work.made) return;
  Table table({{"exit after"}, {"time before", true}, {"probe", true}, {"tried", true}});
  for (const ExitPlace& place : work.report.probed) {
    const auto same = [&](const ExitPlace& other) { return other.after == place.after; };
    const auto tried = std::find_if(work.report.tried.begin(), work.report.tried.end(), same);
    table.add({work.model().blocks[static_cast<size_t>(place.after) - 1].name,
               show_percent(place.seconds / work.report.full_seconds), show_percent(place.accuracy),
               tried == work.report.tried.end() ? "" : show_percent(tried->accuracy)});
  }
  fmt::print("{}", table.text());
}

// The best exit within --latency, for those who cannot wait for confidence.
void report_forced(const ExitsWork& work, const Calibrated& found) {
  const ExitsCommand& o = work.options;
  if (o.json || (o.latency <= 0 && o.latency_share <= 0)) return;
  const double full = found.held.endings.back().forced_seconds;
  const size_t best = forced_exit(found.held, o.latency > 0 ? o.latency : o.latency_share * full);
  Variant forced = work.blocks;
  if (best < found.exits.size()) forced.exit = found.exits[best];
  fmt::print("within the latency: {}, {}\n", print(forced),
             show_seconds(found.held.endings[best].forced_seconds));
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
  LIMBER_ASSIGN(const Calibrated found, calibrate(work));
  LIMBER_TRY(keep_records(work, found));
  if (options.json) {
    report_json(work, found);
  } else {
    report_places(work);
    report_table(work, found);
    report_forced(work, found);
    fmt::print("variant {}\n", print(found.variant));
  }
  if (!work.report.stopped) return kExitDone;
  fmt::print(stderr, "limber: stopped before exits were taught to the end; --again starts over\n");
  return kExitFailed;
}

// "60%" of the model's latency, or a time.
std::string parse_exit_latency(const std::string& text, ExitsCommand& to) {
  if (!text.ends_with('%')) return parse_seconds(text, to.latency);
  double percent = 0;
  const std::string problem = parse_seconds(text.substr(0, text.size() - 1), percent);
  if (!problem.empty() || percent > 100)
    return fmt::format("'{}' should be a share of the model's latency, as in 60%, or a time, as in 12ms",
                       text);
  to.latency_share = percent / 100;
  return {};
}

}  // namespace

void add_exits_command(CommandLine& line) {
  auto options = std::make_shared<ExitsCommand>();
  ExitsCommand& o = *options;
  Arguments arguments = line.add("exits", "Give an elastic model exits that easy images leave by",
                                 [options] { return run_exits(*options); });
  add_common(arguments, o);
  arguments.text("-d,--data", o.data, "DATA", "Images that exits are taught on, and judged by those held out",
                 Arguments::Need::kRequired);
  arguments.number("--max-drop", o.max_drop, 0.0, 100.0, "Points of accuracy that may be lost; default 1");
  arguments.number("--exits", o.count, 1, 16, "How many exits at most; default 2");
  arguments.number("--storage", o.storage, 0.01, 100.0,
                   "Parameters of all exits, in % of the model's, at most; default 3");
  arguments.parsed("--budget", "TIME", "How long exits are taught, as in 90s or 20min; default 10min",
                   [&o](const std::string& text) { return parse_seconds(text, o.budget); });
  arguments.flag("--again", o.again, "Make exits anew where there are some");
  arguments.parsed("--latency", "LIMIT", "Also name the best exit within this, as in 60% or 12ms",
                   [&o](const std::string& text) { return parse_exit_latency(text, o); });
  arguments.choice("--blocks", o.blocks, {"tuned", "frozen"},
                   "Blocks before exits: copies tuned with them (default), or the model's own");
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
  arguments.number("--workers", o.workers, 0, 256, "Threads that read images; default 1");
  arguments.footer(
      "MODEL is the folder that 'limber elastify' made; it gets the exits, unless it has some. The "
      "confidence\n"
      "is found on images that exits were not taught on, and is kept in the variant table.\n"
      "Examples:\n"
      "  limber exits elastic --data photos --max-drop 1\n"
      "  limber exits elastic --data photos --exits 3 --budget 20min --again --json");
}

}  // namespace limber
