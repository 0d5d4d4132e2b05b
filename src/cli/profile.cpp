// limber profile: where the time goes, and how far that is from what the machine can do.
#include <algorithm>
#include <map>

#include "cli/commands.h"
#include "jobs/json.h"
#include "cli/options.h"
#include "cli/table.h"
#include "device/cpu.h"
#include "device/roofline.h"

namespace limber {
namespace {

struct ProfileOptions : CommonOptions, StepArguments {
  int runs = 20;
  int rows = 30;
  bool per_op = false;
  bool in_order = false;
  bool wide = false;
};

// One line: a step, or all steps of one operator.
struct Row {
  std::string op, name, impl, layouts;
  int64_t count = 1;
  double seconds = 0, flops = 0, bytes = 0;
};

std::string layout_text(const Plan& plan, const Step& step) {
  const Backend& backend = *plan.backends[0];
  auto name = [&](const std::vector<int>& slots) -> std::string {
    if (slots.empty() || slots[0] < 0) return "-";
    return backend.layout_name(plan.slots[static_cast<size_t>(slots[0])].layout);
  };
  const std::string in = name(step.inputs), out = name(step.outputs);
  return in == out ? in : in + ">" + out;
}

std::vector<Row> rows_of(const Plan& plan, const Profile& profile) {
  std::vector<Row> rows;
  for (const StepTime& time : profile.steps) {
    const Step& step = *time.step;
    rows.push_back(
        {step.op, step.name, step.impl, layout_text(plan, step), 1, time.median_s, step.flops, step.bytes});
  }
  return rows;
}

std::vector<Row> merged_by_op(const std::vector<Row>& rows) {
  std::map<std::string, Row> merged;
  for (const Row& row : rows) {
    auto [entry, fresh] = merged.try_emplace(row.op, row);
    if (fresh) continue;
    Row& sum = entry->second;
    sum.count += 1;
    sum.seconds += row.seconds;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
  }
  std::vector<Row> result;
  for (auto& [op, row] : merged) result.push_back(std::move(row));
  return result;
}

double sum_seconds(const std::vector<Row>& rows) {
  double total = 0;
  for (const Row& row : rows) total += row.seconds;
  return total;
}

// How close to the ceiling: 1 is as fast as the machine allows.
double of_roofline(const Row& row, const Roofline& roofline) {
  return row.seconds > 0 ? roofline.seconds(row.flops, row.bytes) / row.seconds : 0;
}

void print_table(const std::vector<Row>& rows, const ProfileOptions& options, const Roofline& roofline) {
  const double total = sum_seconds(rows);
  std::vector<Column> columns{{"operator"},
                              {options.per_op ? "steps" : "step", options.per_op, options.wide ? 0U : 22U}};
  for (const char* title : {"time", "share", "GFLOP/s", "data", "GB/s", "roof"})
    columns.push_back({title, true});
  if (!options.per_op) {
    columns.push_back({"implementation", false, options.wide ? 0U : 20U});
    if (options.wide) columns.push_back({"layout"});
  }
  Table table(columns);
  const size_t shown = std::min(rows.size(), static_cast<size_t>(options.rows));
  for (size_t i = 0; i < shown; ++i) {
    const Row& row = rows[i];
    std::vector<std::string> cells{row.op,
                                   options.per_op ? std::to_string(row.count) : row.name,
                                   show_seconds(row.seconds),
                                   show_percent(total > 0 ? row.seconds / total : 0),
                                   row.flops > 0 ? show_rate(row.flops / row.seconds) : "-",
                                   show_bytes(row.bytes),
                                   show_rate(row.bytes / row.seconds),
                                   fmt::format("{:.0f} %", 100 * of_roofline(row, roofline))};
    if (!options.per_op) cells.push_back(row.impl);
    if (!options.per_op && options.wide) cells.push_back(row.layouts);
    table.add(std::move(cells));
  }
  fmt::print("{}", table.text());
  if (shown < rows.size()) {
    const double rest = total - sum_seconds({rows.begin(), rows.begin() + static_cast<int64_t>(shown)});
    fmt::print("and {} more, {} together (--rows 0 shows all)\n", rows.size() - shown,
               show_percent(rest / total));
  }
}

void print_summary(const Plan& plan, const Profile& profile, const std::vector<Row>& rows,
                   const Roofline& roofline) {
  double flops = 0;
  for (const Row& row : rows) flops += row.flops;
  const double steps = sum_seconds(rows);
  fmt::print("\none run      {} ({} GFLOP/s); the steps sum up to {}\n", show_seconds(profile.total_s),
             show_rate(flops / profile.total_s), show_seconds(steps));
  fmt::print("plan         {} steps, {} reorders, {} arena, {} threads\n", plan.steps.size(),
             plan.num_reorders(), show_bytes(static_cast<double>(plan.arena_bytes)), plan.threads);
  fmt::print("roofline     {} GFLOP/s f32, {} GB/s copy, {} GB/s triad, measured with {} threads on\n",
             show_rate(roofline.flops), show_rate(roofline.copy_bytes), show_rate(roofline.triad_bytes),
             roofline.threads);
  fmt::print("             {}; more than 100 % means the data came from a cache\n", cpu_info().name);
}

Json row_json(const Row& row, double total, const Roofline& roofline, bool per_op) {
  Json item = Json::object({{"op", row.op},
                            {"count", row.count},
                            {"time_s", row.seconds},
                            {"share", total > 0 ? row.seconds / total : 0},
                            {"flops", row.flops},
                            {"bytes", row.bytes},
                            {"of_roofline", of_roofline(row, roofline)}});
  if (per_op) return item;
  item.set("name", row.name);
  item.set("implementation", row.impl);
  item.set("layout", row.layouts);
  return item;
}

void print_json(const Plan& plan, const Profile& profile, const std::vector<Row>& rows,
                const Roofline& roofline, const ProfileOptions& options) {
  const double total = sum_seconds(rows);
  Json items = Json::array();
  for (const Row& row : rows) items.push(row_json(row, total, roofline, options.per_op));
  const Json ceilings = Json::object({{"flops_per_s", roofline.flops},
                                      {"copy_bytes_per_s", roofline.copy_bytes},
                                      {"triad_bytes_per_s", roofline.triad_bytes}});
  const Json out = Json::object({{"model", options.model},
                                 {"threads", plan.threads},
                                 {"run_s", profile.total_s},
                                 {"steps_s", total},
                                 {"arena_bytes", plan.arena_bytes},
                                 {"reorders", plan.num_reorders()},
                                 {"roofline", ceilings},
                                 {"rows", items}});
  fmt::print("{}\n", out.text());
}

void report(ProfileOptions& options, const Plan& plan, const Profile& times) {
  const Roofline roofline = measure_roofline(plan.threads);
  std::vector<Row> rows = rows_of(plan, times);
  if (options.per_op) rows = merged_by_op(rows);
  if (!options.in_order) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  }
  if (options.rows == 0) options.rows = static_cast<int>(rows.size());
  if (options.json) {
    print_json(plan, times, rows, roofline, options);
  } else {
    print_table(rows, options, roofline);
    print_summary(plan, times, rows, roofline);
  }
}

Result<int> profile(ProfileOptions& options) {
  LIMBER_ASSIGN(const Model model, load(options));
  if (options.train || options.last > 0) {
    LIMBER_ASSIGN(const auto training, build_training(model, options, options.last));
    LIMBER_ASSIGN(const Plan* const plan, training->plan());
    LIMBER_ASSIGN(const Profile times, training->profile(options.runs));
    report(options, *plan, times);
    return kExitDone;
  }
  LIMBER_ASSIGN(const auto plan, build(model, options, true));
  LIMBER_ASSIGN(const auto session, Session::create(plan));
  fill_random(*session, options.seed);
  LIMBER_TRY(session->run());
  LIMBER_ASSIGN(const Profile times, session->profile(options.runs));
  report(options, *plan, times);
  return kExitDone;
}

}  // namespace

void add_profile(CommandLine& line) {
  auto options = std::make_shared<ProfileOptions>();
  Arguments arguments = line.add("profile", "Time per operator, against this machine's measured roofline",
                                 [options] { return profile(*options); });
  add_common(arguments, *options);
  add_train(arguments, *options);
  arguments.number("--runs", options->runs, 1, 1000000, "Runs to take the median of; default 20");
  arguments.number("--rows", options->rows, 0, 1000000, "Rows to print; 0: all; default 30");
  arguments.flag("--per-op", options->per_op, "One row per kind of operator");
  arguments.flag("--in-order", options->in_order, "In the order of execution instead of by time");
  arguments.flag("--wide", options->wide, "Nothing shortened, and the memory layouts");
}

}  // namespace limber
