// limber adapt: following a stream of images that nobody labels.
#include <algorithm>

#include "base/show.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/table.h"
#include "jobs/adapt_job.h"
#include "jobs/json.h"

namespace limber {
namespace {

struct AdaptCommand : AdaptJobOptions {
  bool json = false;
  int64_t images = 2000;
  bool unguarded = false;
};

Json window_json(const WindowScore& window) {
  Json out = Json::object({{"first", window.first},
                           {"frames", window.frames},
                           {"domain", window.domain},
                           {"mixed", window.mixed}});
  if (window.labelled) {
    out.set("accuracy", window.accuracy);
    out.set("frozen", window.frozen);
  }
  out.set("estimate", window.estimate);
  out.set("atc", window.atc);
  out.set("doc", window.doc);
  return out;
}

Json change_json(const DomainChange& change) {
  Json out = Json::object({{"frame", change.frame}, {"until", change.until}, {"domain", change.domain}});
  if (change.delay) out.set("delay", *change.delay);
  return out;
}

Json alarm_json(const AdaptAlarm& alarm) {
  return Json::object(
      {{"frame", alarm.frame}, {"since", alarm.since}, {"feature", alarm.feature}, {"domain", alarm.domain}});
}

double detector_share(const AdaptResult& result) {
  return result.counts.detecting_s / std::max(result.counts.answering_s, 1e-9);
}

void adapt_json(const AdaptCommand& options, const AdaptResult& result) {
  const AlarmScore& alarms = result.alarm_score;
  const StreamScore& score = result.score;
  const Json summary = Json::object({{"accuracy", score.accuracy},
                                     {"frozen_accuracy", score.frozen},
                                     {"worst_below_frozen", score.worst_below_frozen},
                                     {"source_accuracy", result.source_accuracy},
                                     {"changes_found", alarms.found},
                                     {"changes_missed", alarms.missed},
                                     {"false_alarms", alarms.false_alarms},
                                     {"median_delay", alarms.median_delay},
                                     {"longest_delay", alarms.longest_delay},
                                     {"estimate_error", score.estimate_error},
                                     {"atc_error", score.atc_error},
                                     {"doc_error", score.doc_error},
                                     {"adaptations", result.counts.adapted},
                                     {"failures", result.counts.failed},
                                     {"detector_share", detector_share(result)},
                                     {"detector_bytes", result.detector_bytes}});
  const Json out = Json::object({{"model", options.model},
                                 {"stream", options.stream},
                                 {"strategy", options.strategy},
                                 {"frames", result.frames},
                                 {"labelled_frames", score.frames},
                                 {"source_images", result.source_images},
                                 {"skipped", result.skipped},
                                 {"summary", summary},
                                 {"windows", Json::list(result.windows, window_json)},
                                 {"changes", Json::list(result.changes, change_json)},
                                 {"alarms", Json::list(result.alarms, alarm_json)}});
  fmt::print("{}\n", out.text());
}

// One row for each domain, in the order they come first.
void print_domains(const AdaptResult& result) {
  struct Row {
    std::string domain;
    std::vector<WindowScore> windows;
  };
  std::vector<Row> rows;
  for (const WindowScore& window : result.windows) {
    if (window.mixed) continue;
    auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.domain == window.domain; });
    if (row == rows.end()) row = rows.insert(rows.end(), {window.domain, {}});
    row->windows.push_back(window);
  }
  Table table({{"domain"},
               {"frames", true},
               {"as it came", true},
               {"adapted", true},
               {"estimate off by", true},
               {"found", true},
               {"delay", true}});
  for (const Row& row : rows) {
    const StreamScore score = score_windows(row.windows, 1);
    int64_t changes = 0, found = 0, delay = 0;
    for (const DomainChange& change : result.changes) {
      if (change.domain != row.domain) continue;
      ++changes;
      if (change.delay) ++found, delay += *change.delay;
    }
    const bool labelled = score.frames > 0;
    table.add(
        {row.domain,
         std::to_string(labelled ? score.frames
                                 : static_cast<int64_t>(row.windows.size()) * row.windows[0].frames),
         labelled ? show_percent(score.frozen) : "-", labelled ? show_percent(score.accuracy) : "-",
         labelled ? fmt::format("{:.1f}", 100 * score.estimate_error) : "-",
         changes > 0 ? fmt::format("{} of {}", found, changes) : "-",
         found > 0 ? fmt::format("{:.0f}", static_cast<double>(delay) / static_cast<double>(found)) : "-"});
  }
  fmt::print("{}\n", table.text());
}

void adapt_text(const AdaptCommand& options, const AdaptResult& result) {
  const AlarmScore& alarms = result.alarm_score;
  const StreamScore& score = result.score;
  print_domains(result);
  fmt::print("frames        {} ({} with a label); source: {} images, {}\n", result.frames, score.frames,
             result.source_images, show_percent(result.source_accuracy));
  if (score.frames > 0) {
    fmt::print("accuracy      {} as it came", show_percent(score.frozen));
    if (options.strategy != "none")
      fmt::print(", {} adapted by {}", show_percent(score.accuracy), options.strategy);
    const char* whose = options.strategy == "none" ? "" : ", of the model as it came";
    fmt::print("\nestimate      off by {:.1f} points on average (ATC {:.1f}, DoC {:.1f}){}\n",
               100 * score.estimate_error, 100 * score.atc_error, 100 * score.doc_error, whose);
  }
  fmt::print(
      "drift         {} of {} changes found, after {:.0f} frames (median), {} at most; {} false alarms\n",
      alarms.found, alarms.found + alarms.missed, alarms.median_delay, alarms.longest_delay,
      alarms.false_alarms);
  fmt::print("detector      {:.2f} % of the time of the model, {}\n", 100 * detector_share(result),
             show_bytes(static_cast<double>(result.detector_bytes)));
  if (result.skipped > 0) fmt::print("skipped       {} frames that cannot be read\n", result.skipped);
  if (result.counts.failed > 0)
    fmt::print("failed        {} of the strategy's steps, taken back\n", result.counts.failed);
}

Result<int> follow(AdaptCommand& options) {
  options.source_images = static_cast<size_t>(options.images);
  options.guard = !options.unguarded;
  LIMBER_ASSIGN(const auto result, on_console(run_adapt, options));
  if (!result) return stopped();
  options.json ? adapt_json(options, *result) : adapt_text(options, *result);
  return kExitDone;
}

}  // namespace

void add_adapt(CommandLine& line) {
  auto options = std::make_shared<AdaptCommand>();
  AdaptCommand& o = *options;
  Arguments arguments = line.add("adapt", "Follow a drifting stream of images without labels",
                                 [options] { return follow(*options); });
  add_common(arguments, o, o.json);
  arguments.text("--stream", o.stream, "STREAM",
                 "Domains that follow one another, or a folder; see docs/adaptation.md",
                 Arguments::Need::kRequired);
  arguments.text("-d,--data", o.data, "DATA",
                 "Labelled images like those of the training, but none of them; default some of the "
                 "stream's, which it then does not show");
  arguments.number("--source-images", o.images, 100, 1000000,
                   "How many of these are looked at; default 2000");
  arguments.choice("--strategy", o.strategy, adapt_strategies(),
                   "How the model learns from what it sees; default none");
  arguments.flag("--no-guard", o.unguarded, "Whatever is learnt answers, be it good or bad");
  arguments.number("--window", o.window, 10, 100000, "Frames that run and are scored together; default 100");
  arguments.number("--frames-per-alarm", o.drift.frames_per_alarm, 100, 1e12,
                   "False alarms are at least so far apart on average; default 1e6");
  add_image_arguments(arguments, o.image);
  add_workers_argument(arguments, o.workers);
  arguments.footer(
      "Examples:\n"
      "  limber adapt model.onnx --preprocess imagenet --stream "
      "'clean*1000,fog@3*500,all@5*500;data=cifar10'\n"
      "  limber adapt RUN --stream 'synthetic:clean*500,gaussian-noise@3*500;rounds=3;order=shuffled'");
}

}  // namespace limber
