#include "cli/exit_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/table.h"
#include "jobs/json.h"

namespace limber {
namespace {

const std::string& exit_name(const ExitsOutcome& found, size_t position) {
  return found.folder.model.exits[static_cast<size_t>(found.exits[position])].name;
}

Json point_json(const ExitPoint& point, double full) {
  return Json::object({{"confidence", point.confidence},
                       {"accuracy", point.accuracy},
                       {"mean_s", point.seconds},
                       {"of_full", point.seconds / full},
                       {"shares", Json::list(point.shares)}});
}

Json exits_json(const ExitsOutcome& found) {
  Json exits = Json::array();
  for (size_t e = 0; e < found.exits.size(); ++e) {
    const Exit& exit = found.folder.model.exits[static_cast<size_t>(found.exits[e])];
    const auto& ending = found.held.endings[e];
    exits.push(Json::object({{"name", exit.name},
                             {"after", exit.after},
                             {"accuracy", share_correct(ending)},
                             {"forced_s", ending.forced_seconds}}));
  }
  return exits;
}

std::vector<std::string> point_row(const std::string& name, const ExitPoint& point, int64_t images,
                                   double full) {
  std::vector<std::string> row = {name, point.confidence > 0 ? fmt::format("{:.6g}", point.confidence) : "-",
                                  show_accuracy(point.accuracy, images), show_seconds(point.seconds),
                                  show_percent(point.seconds / full)};
  for (const double share : point.shares) row.push_back(show_percent(share));
  return row;
}

// Where exits were tried, and what came of it.
void print_places(const ExitsOutcome& found) {
  if (found.report.probed.empty()) return;
  Table table({{"exit after"}, {"time before", true}, {"probe", true}, {"tried", true}});
  for (const ExitPlace& place : found.report.probed) {
    const auto same = [&](const ExitPlace& other) { return other.after == place.after; };
    const auto tried = std::find_if(found.report.tried.begin(), found.report.tried.end(), same);
    table.add({found.folder.model.blocks[static_cast<size_t>(place.after) - 1].name,
               show_percent(place.seconds / found.report.full_seconds), show_percent(place.accuracy),
               tried == found.report.tried.end() ? "" : show_percent(tried->accuracy)});
  }
  fmt::print("{}", table.text());
}

const std::string& ending_name(const ExitsOutcome& found, const ExitStage& stage) {
  return found.folder.model.blocks[static_cast<size_t>(stage.after) - 1].name;
}

Json stages_json(const ExitsOutcome& found) {
  return Json::list(found.report.stages, [&](const ExitStage& stage) {
    return Json::object({{"after", ending_name(found, stage)},
                         {"seconds", stage.seconds},
                         {"accuracy", stage.accuracy},
                         {"taken_back", stage.taken_back}});
  });
}

// How exits were taught, where that was one after the other.
void print_stages(const ExitsOutcome& found) {
  if (found.report.stages.empty()) return;
  Table table({{"stage, until"}, {"took", true}, {"accuracy then", true}, {"rounds taken back", true}});
  for (const ExitStage& stage : found.report.stages) {
    table.add({ending_name(found, stage), show_seconds(stage.seconds), show_percent(stage.accuracy),
               fmt::format("{}", stage.taken_back)});
  }
  fmt::print("{}", table.text());
}

void print_points(const ExitsOutcome& found) {
  const double full = found.full_seconds();
  std::vector<Column> columns = {
      {""}, {"confidence", true}, {"accuracy", true}, {"mean time", true}, {"of full", true}};
  for (size_t e = 0; e < found.exits.size(); ++e) columns.push_back({exit_name(found, e), true});
  columns.push_back({"end", true});
  Table table(std::move(columns));
  constexpr int kRows = 6;  // points of the curve that are shown
  const int64_t held = found.held_images.count, test = found.test_images.count;
  for (const ExitPoint& point : exit_curve(found.held, kRows))
    table.add(point_row("held out", point, held, full));
  table.add(point_row("calibrated", found.point, held, full));
  if (!found.test.endings.empty()) {
    table.add(point_row("test, no exits", outcome_at(found.test, 0), test, full));
    table.add(point_row("test, calibrated", found.test_point, test, full));
  }
  fmt::print("{}", table.text());
}

}  // namespace

void print_json(const ExitsOutcome& found) {
  const double full = found.full_seconds();
  Json out = Json::object({{"folder", found.folder.path},
                           {"variant", print(found.folder.model, found.variant)},
                           {"storage", found.storage},
                           {"tuned_storage", found.tuned_storage},
                           {"full_s", full},
                           {"images", found.held.images()},
                           {"judged_on", found.held_images.text()},
                           {"original_accuracy", found.original},
                           {"end_accuracy", outcome_at(found.held, 0).accuracy},
                           {"real_s", found.real.seconds},
                           {"real_full_s", found.real.full_seconds}});
  out.set("calibrated", point_json(found.point, full));
  if (!found.test.endings.empty()) {
    Json test = point_json(found.test_point, full);
    test.set("images", found.test.images());
    test.set("judged_on", found.test_images.text());
    test.set("original_accuracy", found.test_original);
    test.set("end_accuracy", outcome_at(found.test, 0).accuracy);
    out.set("test", std::move(test));
  }
  out.set("exits", exits_json(found));
  if (!found.report.stages.empty()) out.set("stages", stages_json(found));
  fmt::print("{}\n", out.text());
}

void print_tables(const ExitsOutcome& found, double latency) {
  print_places(found);
  print_stages(found);
  print_points(found);
  fmt::print("held out: {}; the model has {} right\n", found.held_images.text(),
             show_accuracy(found.original, found.held_images.count));
  if (!found.test.endings.empty())
    fmt::print("test: {}; the model has {} right\n", found.test_images.text(),
               show_accuracy(found.test_original, found.test_images.count));
  fmt::print("full model {}; exits take {:.2f} % of its storage, tuned blocks before them {:.1f} %\n",
             show_seconds(found.full_seconds()), 100 * found.storage, 100 * found.tuned_storage);
  fmt::print("image by image: {} against {} for the full model ({}) on {} images\n",
             show_seconds(found.real.seconds), show_seconds(found.real.full_seconds),
             show_percent(found.real.seconds / found.real.full_seconds), found.real.images);
  if (latency > 0) {
    const ExitsOutcome::Forced forced = found.within(latency);
    fmt::print("within the latency: {}, {}\n", print(found.folder.model, forced.variant),
               show_seconds(forced.seconds));
  }
  fmt::print("variant {}\n", print(found.folder.model, found.variant));
}

}  // namespace limber
