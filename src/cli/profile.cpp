// limber profile: where the time goes, and how far that is from what the machine can do.
#include <algorithm>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/table.h"
#include "device/cpu.h"
#include "jobs/inspect_job.h"
#include "jobs/json.h"

namespace limber {
namespace {

// A step can be some times as fast as the ceiling, which is measured from memory that no cache holds. Ten
// times says that the machine was busy when the ceiling was measured.
std::string show_of_roof(double share) { return share < 10 ? fmt::format("{:.0f} %", 100 * share) : "-"; }

struct ProfileCommand : ProfileJobOptions {
  bool json = false, wide = false;
  int shown = 30;  // rows; 0: all
};

void print_table(const ProfileCommand& options, const ProfileResult& result) {
  const double total = result.sum_seconds();
  std::vector<Column> columns{{"operator"},
                              {options.per_op ? "steps" : "step", options.per_op, options.wide ? 0U : 22U}};
  for (const char* title : {"time", "share", "GFLOP/s", "data", "GB/s", "roof"})
    columns.push_back({title, true});
  if (!options.per_op) {
    columns.push_back({"implementation", false, options.wide ? 0U : 20U});
    if (options.wide) columns.push_back({"layout"});
  }
  Table table(columns);
  const size_t all = result.rows.size();
  const size_t shown = options.shown == 0 ? all : std::min(all, static_cast<size_t>(options.shown));
  double rest = total;
  for (size_t i = 0; i < shown; ++i) {
    const ProfileRow& row = result.rows[i];
    rest -= row.seconds;
    std::vector<std::string> cells{row.op,
                                   options.per_op ? std::to_string(row.count) : row.name,
                                   show_seconds(row.seconds),
                                   show_percent(total > 0 ? row.seconds / total : 0),
                                   row.flops > 0 ? show_rate(row.flops / row.seconds) : "-",
                                   show_bytes(row.bytes),
                                   show_rate(row.bytes / row.seconds),
                                   show_of_roof(result.of_roofline(row))};
    if (!options.per_op) cells.push_back(row.impl);
    if (!options.per_op && options.wide) cells.push_back(row.layouts);
    table.add(std::move(cells));
  }
  fmt::print("{}", table.text());
  if (shown < all)
    fmt::print("and {} more, {} together (--rows 0 shows all)\n", all - shown, show_percent(rest / total));
}

void print_summary(const ProfileResult& result) {
  double flops = 0;
  for (const ProfileRow& row : result.rows) flops += row.flops;
  const Roofline& roofline = result.roofline;
  fmt::print("\none run      {} ({} GFLOP/s); the steps sum up to {}\n", show_seconds(result.run_seconds),
             show_rate(flops / result.run_seconds), show_seconds(result.sum_seconds()));
  fmt::print("plan         {} steps, {} reorders, {} arena, {} threads\n", result.steps, result.reorders,
             show_bytes(static_cast<double>(result.arena_bytes)), result.threads);
  fmt::print("roofline     {} GFLOP/s f32, {} GB/s copy, {} GB/s triad, measured with {} threads on\n",
             show_rate(roofline.flops), show_rate(roofline.copy_bytes), show_rate(roofline.triad_bytes),
             roofline.threads);
  fmt::print("             {}; more than 100 % means the data came from a cache\n", cpu_info().name);
}

Json row_json(const ProfileRow& row, const ProfileResult& result, double total, bool per_op) {
  Json item = Json::object({{"op", row.op},
                            {"count", row.count},
                            {"time_s", row.seconds},
                            {"share", total > 0 ? row.seconds / total : 0},
                            {"flops", row.flops},
                            {"bytes", row.bytes},
                            {"of_roofline", result.of_roofline(row)}});
  if (per_op) return item;
  item.set("name", row.name);
  item.set("implementation", row.impl);
  item.set("layout", row.layouts);
  return item;
}

void print_json(const ProfileCommand& options, const ProfileResult& result) {
  const double total = result.sum_seconds();
  Json items = Json::array();
  for (const ProfileRow& row : result.rows) items.push(row_json(row, result, total, options.per_op));
  const Json ceilings = Json::object({{"flops_per_s", result.roofline.flops},
                                      {"copy_bytes_per_s", result.roofline.copy_bytes},
                                      {"triad_bytes_per_s", result.roofline.triad_bytes}});
  const Json out = Json::object({{"model", options.model},
                                 {"threads", result.threads},
                                 {"run_s", result.run_seconds},
                                 {"steps_s", total},
                                 {"arena_bytes", result.arena_bytes},
                                 {"reorders", result.reorders},
                                 {"roofline", ceilings},
                                 {"rows", items}});
  fmt::print("{}\n", out.text());
}

Result<int> profile(const ProfileCommand& options) {
  Console console;
  LIMBER_ASSIGN(const ProfileResult result, run_profile(options, {.observer = &console}));
  if (options.json) {
    print_json(options, result);
  } else {
    print_table(options, result);
    print_summary(result);
  }
  return kExitDone;
}

}  // namespace

void add_profile(CommandLine& line) {
  auto options = std::make_shared<ProfileCommand>();
  Arguments arguments = line.add("profile", "Time per operator, against this machine's measured roofline",
                                 [options] { return profile(*options); });
  add_common(arguments, *options, options->json);
  add_train(arguments, options->train, options->last);
  arguments.number("--runs", options->runs, 1, 1000000, "Runs to take the median of; default 20");
  arguments.number("--rows", options->shown, 0, 1000000, "Rows to print; 0: all; default 30");
  arguments.flag("--per-op", options->per_op, "One row per kind of operator");
  arguments.flag("--in-order", options->in_order, "In the order of execution instead of by time");
  arguments.flag("--wide", options->wide, "Nothing shortened, and the memory layouts");
}

}  // namespace limber
