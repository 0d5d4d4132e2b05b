#include "report/demo_serving.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/markup.h"

namespace limber {
namespace {

constexpr double kMostShown = 4;  // times the budget that the plot reaches up to

const char* phase_name(const DemoPhase& phase) { return phase.busy ? "busy neighbour" : "idle"; }

// Of all phases of that kind.
struct Kept {
  int64_t requests = 0, within = 0, answered = 0;
  double right = 0;
  double share() const {
    return requests > 0 ? static_cast<double>(within) / static_cast<double>(requests) : 0;
  }
  double accuracy() const { return answered > 0 ? right / static_cast<double>(answered) : 0; }
};

Kept kept_by(const DemoServed& run, bool busy) {
  Kept kept;
  for (const DemoPhase& phase : run.phases) {
    if (phase.busy != busy) continue;
    kept.requests += phase.requests;
    kept.within += phase.within;
    kept.answered += phase.answered;
    kept.right += phase.accuracy * static_cast<double>(phase.answered);
  }
  return kept;
}

// Names of variants say every block, which is long: the number of blocks that are not the original's is what
// a reader can take in.
std::string short_variant(const std::string& name) {
  if (name == "original") return name;
  const auto changes = 1 + std::count(name.begin(), name.end(), ',');
  return fmt::format("{} block{} changed", changes, changes == 1 ? "" : "s");
}

std::string variants_text(const DemoPhase& phase) {
  constexpr size_t kMostNamed = 3;  // as many as fit a cell of the table
  std::string text;
  double rest = 1;
  for (size_t i = 0; i < std::min(kMostNamed, phase.variants.size()); ++i) {
    const double share = static_cast<double>(phase.variants[i].second) / static_cast<double>(phase.answered);
    text += fmt::format("{}{} {:.0f}\u00a0%", i > 0 ? ", " : "", short_variant(phase.variants[i].first),
                        100 * share);
    rest -= share;
  }
  if (phase.variants.size() > kMostNamed) text += fmt::format(", others {:.0f}\u00a0%", 100 * rest);
  return text;
}

HtmlTable phase_table(const DemoServing& serving) {
  HtmlTable table;
  table.columns = {{.title = "served by"},
                   {.title = "machine"},
                   {"within the budget", true, "of all requests; those without an answer are not"},
                   {"p50", true, "latency of answers, from when a request was due"},
                   {.title = "p95", .right = true},
                   {"accuracy", true, "of the answers"},
                   {"switches", true, "of the active variant"},
                   {"answered by", false, "variants, by the share of answers"}};
  for (const DemoServed& run : serving.runs) {
    for (const DemoPhase& phase : run.phases)
      table.rows.push_back({run.name, phase_name(phase), percent_text(phase.share_within()),
                            step_time_text(phase.p50_s), step_time_text(phase.p95_s),
                            percent_text(phase.accuracy), fmt::format("{}", phase.switches),
                            variants_text(phase)});
  }
  return table;
}

HtmlTable switch_table(const DemoServed& run) {
  HtmlTable table;
  table.columns = {{.title = "at", .right = true}, {.title = "to"}, {.title = "why"}};
  for (const DemoServed::Switch& one : run.switches)
    table.rows.push_back({fmt::format("{:.2f} s", one.at_s), one.to, one.reason});
  return table;
}

}  // namespace

double DemoServed::share_within(bool busy) const { return kept_by(*this, busy).share(); }
double DemoServed::accuracy(bool busy) const { return kept_by(*this, busy).accuracy(); }

std::string DemoServing::verdict() const {
  const DemoServed &fixed = runs[0], &elastic = runs[1];
  const std::string shares = fmt::format(
      "{:.0f} % of requests in time against the fixed model's {:.0f} %, {:.1f} % of images right against "
      "{:.1f} %",
      100 * elastic.share_within(true), 100 * fixed.share_within(true), 100 * elastic.accuracy(true),
      100 * fixed.accuracy(true));
  if (variants < 2)
    return fmt::format(
        "No variant but the model itself is right often enough to answer, so the loop had nothing to choose "
        "from: {}.",
        shares);
  if (!fixed.kept(false))
    return fmt::format(
        "The machine was busy even without the neighbour, so this says little. Beside it the elastic model "
        "had {}.",
        shares);
  if (!elastic.kept(true))
    return fmt::format(
        "Beside a busy neighbour the elastic model does NOT keep its deadline on this machine: {}.", shares);
  if (fixed.kept(true))
    return fmt::format(
        "Both keep their deadline: the neighbour hardly slows this machine. The elastic model had {}.",
        shares);
  return fmt::format(
      "Beside a busy neighbour the fixed model misses its deadline, and the elastic one keeps it: {}.",
      shares);
}

LinePlot serving_plot(const DemoServing& serving) {
  const double top = kMostShown * serving.budget_s;
  LinePlot plot{.title = "Latency while a neighbour comes and goes",
                .x = {.label = "seconds", .zero = true},
                .y = {.label = "latency of nine of ten requests, ms", .zero = true, .high = 1e3 * top}};
  double end = 0;
  for (size_t i = 0; i < serving.runs.size(); ++i) {
    const DemoServed& run = serving.runs[i];
    PlotSeries series{.name = run.name, .colour = i};
    for (const DemoServed::Moment& moment : run.moments)
      series.points.push_back({moment.at_s, 1e3 * std::min(moment.p90_s, top),
                               moment.p90_s > top
                                   ? fmt::format("{}: over {}", run.name, step_time_text(top))
                                   : fmt::format("{}: {}", run.name, step_time_text(moment.p90_s))});
    if (!run.phases.empty()) end = std::max(end, run.phases.back().to_s);
    plot.series.push_back(std::move(series));
  }
  plot.series.push_back({.name = "budget",
                         .style = SeriesStyle::kReference,
                         .points = {{0, 1e3 * serving.budget_s, ""}, {end, 1e3 * serving.budget_s, ""}}});
  if (serving.runs.empty()) return plot;
  for (const DemoPhase& phase : serving.runs[0].phases) {
    if (phase.busy) plot.shaded.push_back({phase.from_s, phase.to_s, phase_name(phase)});
  }
  return plot;
}

void add_serving(HtmlPage& page, const DemoServing& serving) {
  page.section("Keeping its deadline beside a busy neighbour");
  page.text(fmt::format(
      "The same {:.3g} requests a second, as by chance, each with {} images, are answered first by the model "
      "as "
      "it is, then by the elastic one, which a closed loop lets change its shape; variants of less than {} "
      "accuracy may not answer. In the middle, other processes compute on all cores ({}). The budget is {}: "
      "{:.2g} times what nine of ten requests to the fixed model take while the machine is idle ({}).",
      serving.rate, serving.batch, percent_text(serving.least_accuracy), serving.neighbours,
      step_time_text(serving.budget_s), serving.slack, step_time_text(serving.idle_p90_s)));
  page.text(serving.verdict());
  page.table(phase_table(serving));
  page.figure(
      "Latency over time", draw_lines(serving_plot(serving)),
      fmt::format("The 90th percentile of short moments, from when requests were due; the neighbour works "
                  "where it is shaded. What is over {:g} times the budget is drawn at the top.",
                  kMostShown));
  if (!serving.runs[1].switches.empty())
    page.folded("What the loop decided, and why", switch_table(serving.runs[1]));
}

}  // namespace limber
