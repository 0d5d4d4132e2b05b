// limber adapt: following a stream of images that nobody labels.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/table.h"
#include "jobs/adapt_job.h"
#include "jobs/engine.h"
#include "jobs/json.h"
#include "jobs/output.h"

namespace limber {
namespace {

struct AdaptCommand : AdaptJobOptions {
  bool json = false;
  int64_t images = 2000;
  bool unguarded = false, no_write_back = false;
  std::string strategies = "none";  // one after the other
};

Json window_json(const WindowScore& window) {
  Json out = Json::object({{"first", window.first},
                           {"frames", window.frames},
                           {"domain", window.domain},
                           {"mixed", window.mixed},
                           {"labelled", window.labelled},
                           {"scored", window.scored},
                           {"found", window.found},
                           {"net", window.net}});
  if (window.labelled) {
    out.set("accuracy", window.accuracy);
    out.set("frozen", window.frozen);
  }
  out.set("answers_estimate", window.answers_estimate);
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

Json event_json(const AdaptEventRecord& event) {
  Json out = Json::object(
      {{"what", event.what}, {"frame", event.frame}, {"domain", event.domain}, {"reason", event.reason}});
  if (event.seconds > 0) out.set("seconds", event.seconds);
  return out;
}

double detector_share(const AdaptResult& result) {
  return result.counts.detecting_s / std::max(result.counts.answering_s, 1e-9);
}

// What was never found out is not there.
Json summary_json(const AdaptCommand& options, const AdaptResult& result) {
  const AlarmScore& alarms = result.alarm_score;
  const StreamScore& score = result.score;
  const adapt::FollowCounts& counts = result.counts;
  Json summary = Json::object({{"source_accuracy", result.source_accuracy},
                               {"adapted", counts.adapted},
                               {"rejected", counts.rejected},
                               {"rolled_back", counts.rolled_back},
                               {"returned", counts.returned},
                               {"failed", counts.failed}});
  if (score.frames > 0) {
    summary.set("accuracy", score.accuracy);
    summary.set("frozen_accuracy", score.frozen);
    summary.set("estimate_error", score.estimate_error);
    summary.set("atc_error", score.atc_error);
    summary.set("doc_error", score.doc_error);
    summary.set("answers_estimate_error", score.answers_error);
  }
  if (score.worst_below_frozen) summary.set("worst_below_frozen", *score.worst_below_frozen);
  if (options.borders_known) return summary;
  summary.set("changes_found", alarms.found);
  summary.set("changes_missed", alarms.missed);
  summary.set("false_alarms", alarms.false_alarms);
  summary.set("median_delay", alarms.median_delay);
  summary.set("longest_delay", alarms.longest_delay);
  summary.set("detector_share", detector_share(result));
  summary.set("detector_bytes", result.detector_bytes);
  return summary;
}

Json seconds_json(const adapt::FollowCounts& counts) {
  return Json::object({{"answering", counts.answering_s},
                       {"detecting", counts.detecting_s},
                       {"learning", counts.learning_s},
                       {"judging", counts.judging_s}});
}

// Of one image, among those that ran together.
Json inference_json(const adapt::FollowCounts& counts) {
  Json out = Json::object({{"original_s", counts.original.each()}});
  if (counts.learnt.frames > 0) out.set("adapted_s", counts.learnt.each());
  if (counts.by_learnt == 0) return out;
  out.set("adapted_frames", counts.by_learnt);
  out.set("operations_share", counts.operations / static_cast<double>(counts.by_learnt));
  return out;
}

Json result_json(const AdaptCommand& options, const std::string& strategy, const AdaptResult& result) {
  const adapt::FollowCounts& counts = result.counts;
  const Json not_learnt = Json::object({{"skipped", counts.faults.unreadable},
                                        {"not_a_number", counts.faults.not_a_number},
                                        {"flat", counts.faults.flat},
                                        {"noise", counts.faults.noise}});
  return Json::object({{"model", options.model},
                       {"stream", options.stream},
                       {"strategy", strategy},
                       {"guarded", options.guard},
                       {"borders_known", options.borders_known},
                       {"frames", result.frames},
                       {"labelled_frames", result.score.frames},
                       {"source_images", result.source_images},
                       {"not_learnt_from", not_learnt},
                       {"summary", summary_json(options, result)},
                       {"seconds", seconds_json(counts)},
                       {"inference", inference_json(counts)},
                       {"windows", Json::list(result.windows, window_json)},
                       {"changes", Json::list(result.changes, change_json)},
                       {"alarms", Json::list(result.alarms, alarm_json)},
                       {"events", Json::list(result.events, event_json)}});
}

// One row for each domain, in the order they come first.
void print_domains(const AdaptResult& result) {
  struct Row {
    std::string domain;
    std::vector<WindowScore> windows;
  };
  std::vector<Row> rows;
  for (const WindowScore& window : result.windows) {
    if (window.mixed || !window.scored) continue;
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
    int64_t frames = 0;
    for (const WindowScore& window : row.windows) frames += window.frames;
    table.add(
        {row.domain, std::to_string(frames), labelled ? show_percent(score.frozen) : "-",
         labelled ? show_percent(score.accuracy) : "-",
         labelled ? fmt::format("{:.1f}", 100 * score.estimate_error) : "-",
         changes > 0 ? fmt::format("{} of {}", found, changes) : "-",
         found > 0 ? fmt::format("{:.0f}", static_cast<double>(delay) / static_cast<double>(found)) : "-"});
  }
  fmt::print("{}\n", table.text());
}

void print_learning(const AdaptResult& result, bool guarded) {
  const adapt::FollowCounts& counts = result.counts;
  fmt::print("learnt        {} times what answers changed", counts.adapted);
  if (guarded)
    fmt::print("; {} rejected, {} rolled back, {} back to what was known", counts.rejected,
               counts.rolled_back, counts.returned);
  fmt::print("\n");
  const auto failure = std::find_if(result.events.begin(), result.events.end(), [](const auto& event) {
    return event.what == adapt::follow_name(adapt::FollowKind::kFailed);
  });
  if (failure != result.events.end())
    fmt::print("failed        {} of the strategy's steps, taken back; the first, at frame {}: {}\n",
               counts.failed, failure->frame, failure->reason);
}

void print_drift(const AdaptResult& result) {
  const AlarmScore& alarms = result.alarm_score;
  fmt::print(
      "drift         {} of {} changes found, after {:.0f} frames (median), {} at most; {} false alarms\n",
      alarms.found, alarms.found + alarms.missed, alarms.median_delay, alarms.longest_delay,
      alarms.false_alarms);
  fmt::print("detector      {:.2f} % of the time of the model, {}\n", 100 * detector_share(result),
             show_bytes(static_cast<double>(result.detector_bytes)));
}

void print_costs(const adapt::FollowCounts& counts) {
  if (counts.learnt.frames == 0) return;
  fmt::print(
      "costs         {} an image, {} as it came ({:.0f} % of the operations); learning {}, judging {}\n",
      show_seconds(counts.learnt.each()), show_seconds(counts.original.each()),
      100 * counts.operations / static_cast<double>(counts.by_learnt), show_seconds(counts.learning_s),
      show_seconds(counts.judging_s));
}

void print_faults(const AdaptResult& result) {
  const adapt::FrameFaults& faults = result.counts.faults;
  if (faults.all() == 0) return;
  fmt::print(
      "not learnt    {} frames that cannot be read, {} of one colour, {} of noise, {} that are no numbers\n",
      faults.unreadable, faults.flat, faults.noise, faults.not_a_number);
}

void result_text(const AdaptCommand& options, const std::string& strategy, const AdaptResult& result) {
  const StreamScore& score = result.score;
  const bool learns = strategy != "none";
  print_domains(result);
  fmt::print("frames        {} ({} with a label); source: {} images, {}\n", result.frames, score.frames,
             result.source_images, show_percent(result.source_accuracy));
  if (score.frames > 0) {
    fmt::print("accuracy      {} as it came", show_percent(score.frozen));
    if (learns) fmt::print(", {} adapted by {}", show_percent(score.accuracy), strategy);
    if (learns && score.worst_below_frozen)
      fmt::print("; at worst {:.1f} points lost in 5,000 frames", 100 * *score.worst_below_frozen);
    fmt::print(
        "\nestimate      off by {:.1f} points on average (ATC {:.1f}, DoC {:.1f}){}\n",
        100 * score.estimate_error, 100 * score.atc_error, 100 * score.doc_error,
        learns ? fmt::format(", of the model as it came; {:.1f} of what answered", 100 * score.answers_error)
               : "");
  }
  if (learns) print_learning(result, options.guard);
  print_costs(result.counts);
  if (!options.borders_known) print_drift(result);
  print_faults(result);
}

struct Followed {
  std::string strategy;
  AdaptResult result;
};

void print_comparison(const std::vector<Followed>& all) {
  Table table({{"strategy"},
               {"accuracy", true},
               {"gain, points", true},
               {"most lost in 5,000 frames", true},
               {"learnt", true},
               {"rejected", true},
               {"rolled back", true}});
  for (const auto& [strategy, result] : all) {
    const StreamScore& score = result.score;
    table.add({strategy, show_percent(score.accuracy),
               fmt::format("{:+.1f}", 100 * (score.accuracy - score.frozen)),
               score.worst_below_frozen ? fmt::format("{:.1f}", 100 * *score.worst_below_frozen) : "-",
               std::to_string(result.counts.adapted), std::to_string(result.counts.rejected),
               std::to_string(result.counts.rolled_back)});
  }
  fmt::print("{}", table.text());
}

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Each has a folder of its own in that of all.
Result<std::vector<Followed>> follow_all(AdaptCommand& options, const std::vector<std::string>& strategies) {
  const std::string output = options.output;
  if (strategies.size() > 1 && !output.empty()) {
    LIMBER_TRY(check_output_folder(output));
    std::error_code ec;
    std::filesystem::create_directory(output, ec);
    if (ec) return error(Code::kIo, "{}: cannot create folder: {}", output, ec.message());
  }
  std::vector<Followed> all;
  for (const std::string& strategy : strategies) {
    options.strategy = strategy;
    if (strategies.size() > 1 && !output.empty()) options.output = output + "/" + strategy;
    LIMBER_ASSIGN(auto result, on_console(run_adapt, options));
    if (!result) break;
    all.push_back({strategy, *std::move(result)});
  }
  return all;
}

Result<int> follow(AdaptCommand& options) {
  options.source_images = static_cast<size_t>(options.images);
  options.guard = !options.unguarded;
  options.settings.write_back = !options.no_write_back;
  const std::vector<std::string> strategies = names_in(options.strategies), known = adapt_strategies();
  for (const std::string& name : strategies) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return usage_error(no_such("strategy", name, known));
  }
  LIMBER_ASSIGN(const auto all, follow_all(options, strategies));
  if (all.empty()) return stopped();
  if (options.json) {
    Json list = Json::array();
    for (const auto& [strategy, result] : all) list.push(result_json(options, strategy, result));
    fmt::print("{}\n", all.size() == 1 ? result_json(options, all[0].strategy, all[0].result).text()
                                       : Json::object({{"strategies", list}}).text());
    return kExitDone;
  }
  for (const auto& [strategy, result] : all) {
    if (all.size() > 1) fmt::print("--- {}\n", strategy);
    result_text(options, strategy, result);
    if (all.size() > 1) fmt::print("\n");
  }
  if (all.size() > 1) print_comparison(all);
  return kExitDone;
}

}  // namespace

void add_adapt(CommandLine& line) {
  auto options = std::make_shared<AdaptCommand>();
  AdaptCommand& o = *options;
  Arguments arguments = line.add("adapt", "Follow a drifting stream of images without labels",
                                 [options] { return follow(*options); });
  add_common(
      arguments, o, o.json, Arguments::Need::kRequired,
      "ONNX file, folder of a training or checkpoint, builtin:NAME, or folder of a master ('limber elastify "
      "--gates')");
  arguments.text("--stream", o.stream, "STREAM",
                 "Domains that follow one another, or a folder; see docs/adaptation.md",
                 Arguments::Need::kRequired);
  arguments.text("-d,--data", o.data, "DATA",
                 "Labelled images like those of the training, but none of them; default some of the "
                 "stream's, which it then does not show");
  arguments.number("--source-images", o.images, 100, 1000000,
                   "How many of these are looked at; default 2000");
  arguments.text(
      "--strategy", o.strategies, fmt::format("{}", fmt::join(adapt_strategies(), "|")).c_str(),
      "How the model learns from what it sees; several with commas between, one after the other, to "
      "compare; default none");
  arguments.flag("--no-guard", o.unguarded, "Whatever is learnt answers, be it good or bad");
  arguments.parsed("--operations", "PERCENT",
                   "Of a surrogate: its operations, by those of the model it is cut from; default 25%",
                   [&](const std::string& text) { return parse_share(text, o.settings.operations); });
  arguments.flag("--no-write-back", o.no_write_back,
                 "Of a surrogate: what it learns does not go into the model it is cut from");
  arguments.flag(
      "--borders-known", o.borders_known,
      "The stream says where its domains begin; of every visit the first --window frames are learnt "
      "from, once, and the others are scored: to compare strategies");
  arguments.text("-o,--output", o.output, "DIR",
                 "Folder where what happens is recorded, for 'limber report' and --resume; of several "
                 "strategies each has one in it");
  arguments.flag("--resume", o.resume, "Go on where a run in that folder stopped");
  arguments.parsed("--save-every", "TIME", "Where it stands, at least so often; default 10s",
                   [&](const std::string& text) { return parse_seconds(text, o.save_every_s); });
  arguments.number("--window", o.window, 10, 100000, "Frames that run and are scored together; default 100");
  arguments.number("--frames-per-alarm", o.drift.frames_per_alarm, 100, 1e12,
                   "False alarms are at least so far apart on average; default 1e6");
  add_image_arguments(arguments, o.image);
  add_workers_argument(arguments, o.workers);
  arguments.footer(
      "Examples:\n"
      "  limber adapt model.onnx --preprocess imagenet --stream "
      "'clean*1000,fog@3*500,all@5*500;data=cifar10'\n"
      "  limber adapt RUN --stream 'synthetic:clean*500,gaussian-noise@3*500;rounds=3;order=shuffled'\n"
      "  limber adapt RUN --stream 'all@5*500;data=cifar10' --strategy none,bn,tent -o followed\n"
      "  limber report followed -o followed.html\n"
      "  limber adapt MASTER --stream 'all@5*500;data=cifar10' --strategy surrogate --operations 25% -o "
      "followed");
}

}  // namespace limber
