#include "report/selection_figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/markup.h"
#include "report/plot.h"

namespace limber {
namespace {

constexpr size_t kMostColumns = 160;  // of choices: each then has two and a half pixels

// From level 1: the least importance, as a share of the most important tensor's. Importances span orders of
// magnitude, so each level is about three times the one before.
constexpr std::array<double, 5> kLevelShares = {0.003, 0.01, 0.03, 0.1, 0.3};

uint8_t importance_level(double share) {
  uint8_t level = 0;
  while (level < kLevelShares.size() && share >= kLevelShares[level]) ++level;
  return level;
}

// Selections first..last-1, drawn as one column.
struct ColumnSpan {
  size_t first = 0, last = 0;
};

std::vector<ColumnSpan> columns_of(const RunLog& run) {
  const size_t all = run.selections.size(), count = std::min(all, kMostColumns);
  std::vector<ColumnSpan> columns;
  for (size_t k = 0; k < count; ++k) columns.push_back({k * all / count, (k + 1) * all / count});
  return columns;
}

// Where columns begin, and where the last one ends. The records do not tell how long the last choice has held
// in a run that was cut off: as long as the one before it, then.
std::vector<double> column_edges(const RunLog& run, const std::vector<ColumnSpan>& columns) {
  std::vector<double> edges;
  for (const ColumnSpan& c : columns) edges.push_back(static_cast<double>(run.selections[c.first].step));
  const auto recorded = static_cast<double>(run.last_step());
  const double before = edges.size() > 1 ? edges.back() - edges[edges.size() - 2] : 1;
  edges.push_back(recorded > edges.back() ? recorded : edges.back() + std::max(before, 1.0));
  return edges;
}

// Row-major levels of all tensors.
std::vector<std::vector<uint8_t>> levels_of(const RunLog& run, const std::vector<ColumnSpan>& columns) {
  std::vector<std::vector<uint8_t>> levels(run.tensors.size(), std::vector<uint8_t>(columns.size()));
  std::vector<size_t> times(run.tensors.size());
  std::vector<double> shares(run.tensors.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    std::fill(times.begin(), times.end(), 0);
    std::fill(shares.begin(), shares.end(), 0.0);
    for (size_t s = columns[c].first; s < columns[c].last; ++s) {
      const SelectionRecord& selection = run.selections[s];
      const double most = *std::max_element(selection.importance.begin(), selection.importance.end());
      for (const size_t k : selection.chosen) ++times[k];
      for (size_t k = 0; k < shares.size() && most > 0; ++k)
        shares[k] = std::max(shares[k], selection.importance[k] / most);
    }
    const size_t selections = columns[c].last - columns[c].first;
    for (size_t k = 0; k < shares.size(); ++k)
      levels[k][c] = 2 * times[k] >= selections ? kHeatChosen : importance_level(shares[k]);
  }
  return levels;
}

std::vector<std::string> row_hints(const RunLog& run) {
  std::vector<size_t> times(run.tensors.size());
  std::vector<int64_t> first(run.tensors.size(), -1), last(run.tensors.size(), -1);
  for (const SelectionRecord& selection : run.selections) {
    for (const size_t k : selection.chosen) {
      ++times[k];
      if (first[k] < 0) first[k] = selection.step;
      last[k] = selection.step;
    }
  }
  std::vector<std::string> hints;
  for (size_t k = 0; k < run.tensors.size(); ++k) {
    std::string hint =
        fmt::format("{}: chosen {} of {} times", run.tensors[k], times[k], run.selections.size());
    if (times[k] > 0) hint += fmt::format(", first at step {}, last at step {}", first[k], last[k]);
    hints.push_back(std::move(hint));
  }
  return hints;
}

// Ends of epochs between two steps; of many, those with round numbers.
std::vector<PlotPoint> epoch_marks(const RunLog& run, double low, double high) {
  if (run.epochs.empty()) return {};
  const Ticks ticks = nice_ticks(0, static_cast<double>(run.epochs.back().epoch), 4, TickRange::kTight, true);
  const auto every = static_cast<int64_t>(ticks.step);
  std::vector<PlotPoint> marks;
  for (const EpochRecord& epoch : run.epochs) {
    const auto at = static_cast<double>(epoch.step);
    if (epoch.epoch % every == 0 && at >= low && at <= high)
      marks.push_back({at, 0, fmt::format("epoch {}", epoch.epoch)});
  }
  return marks;
}

void add_heat_map(HtmlPage& page, const RunLog& run) {
  const std::vector<ColumnSpan> columns = columns_of(run);
  HeatMap map{.title = "Which tensors were trained when",
              .x_label = "step",
              .top_label = "input",
              .bottom_label = "loss"};
  map.edges = column_edges(run, columns);
  std::vector<std::vector<uint8_t>> levels = levels_of(run, columns);
  std::vector<std::string> hints = row_hints(run);
  for (size_t k = 0; k < run.tensors.size(); ++k)
    map.rows.push_back({run.tensors[k], std::move(hints[k]), std::move(levels[k])});
  map.marks = epoch_marks(run, map.edges.front(), map.edges.back());
  map.legend = {{kHeatChosen, "trained"},
                {5, "not trained, importance over 30 % of the largest"},
                {4, "10 to 30 %"},
                {3, "3 to 10 %"},
                {2, "1 to 3 %"},
                {1, "0.3 to 1 %"},
                {0, "less, or out of reach"}};
  std::string caption =
      "Tensors from the input (top) to the loss (bottom); the pointer on a row shows its name. Out of reach "
      "is what would take more than the share of the time even alone";
  caption +=
      run.option("strategy") == "prune" ? ", and what was left out before: prune takes nothing back." : ".";
  if (run.selections.size() > columns.size())
    caption +=
        fmt::format(" {} selections share {} columns: trained is what was chosen at least half of the times.",
                    run.selections.size(), columns.size());
  page.figure(fmt::format("Which of the {} tensors were trained when", run.tensors.size()),
              draw_heat_map(map), caption);
}

void add_prediction(HtmlPage& page, const RunLog& run, const RunSummary& summary) {
  double longest = 0;
  for (const ChoiceRecord& choice : run.choices)
    longest = std::max({longest, choice.predicted_s, choice.measured_s});
  const bool milli = longest < 1;
  const double scale = milli ? 1e3 : 1;
  const std::string unit = milli ? "ms" : "s";
  ScatterPlot plot{.title = "Predicted and measured time of a step",
                   .x = {.label = "predicted, " + unit, .low = 0},
                   .y = {.label = "measured, " + unit, .low = 0}};
  for (const ChoiceRecord& choice : run.choices) {
    plot.points.push_back(
        {choice.predicted_s * scale, choice.measured_s * scale,
         fmt::format("choice that ended at step {}: predicted {}, measured {}", choice.step,
                     step_time_text(choice.predicted_s), step_time_text(choice.measured_s))});
  }
  const std::string drawing = draw_scatter(plot);
  if (drawing.empty()) return;
  std::string caption = fmt::format("{} {}; on the dashed line the prediction was right.", run.choices.size(),
                                    run.choices.size() == 1 ? "choice" : "choices");
  if (summary.prediction_error)
    caption += fmt::format(" Median error {}.", percent_text(*summary.prediction_error));
  page.figure("Time of a step: predicted and measured", drawing, caption);
}

// A step function: a choice's share holds until the next one.
PlotSeries share_series(const RunLog& run, double end) {
  PlotSeries series{.name = "predicted", .colour = 0};
  for (size_t k = 0; k < run.selections.size(); ++k) {
    const SelectionRecord& selection = run.selections[k];
    if (!selection.share) continue;
    const double y = 100 * *selection.share;
    const double until =
        k + 1 < run.selections.size() ? static_cast<double>(run.selections[k + 1].step) : end;
    series.points.push_back(
        {static_cast<double>(selection.step), y,
         fmt::format("step {}: {} of {} tensors, {} of the time of all{}", selection.step,
                     selection.chosen.size(), run.tensors.size(), percent_text(*selection.share),
                     selection.reason ? "; " + *selection.reason : "")});
    series.points.push_back({until, y, ""});
  }
  return series;
}

void add_shares(HtmlPage& page, const RunLog& run) {
  const double end = column_edges(run, columns_of(run)).back();
  PlotSeries measured{.name = "measured", .colour = 1},
      asked{.name = "asked for", .style = SeriesStyle::kReference};
  for (const ChoiceRecord& choice : run.choices) {
    if (!choice.full_s || !(*choice.full_s > 0)) continue;
    const double share = choice.measured_s / *choice.full_s;
    measured.points.push_back({static_cast<double>(choice.step), 100 * share,
                               fmt::format("up to step {}: measured {}", choice.step, percent_text(share))});
  }
  for (size_t k = 0; k < run.selections.size(); ++k) {
    const SelectionRecord& selection = run.selections[k];
    if (!selection.rho) continue;
    const double until =
        k + 1 < run.selections.size() ? static_cast<double>(run.selections[k + 1].step) : end;
    asked.points.push_back({static_cast<double>(selection.step), 100 * *selection.rho, ""});
    asked.points.push_back({until, 100 * *selection.rho, ""});
  }
  LinePlot plot{.title = "Share of the time of full training",
                .x = {.label = "step", .whole = true},
                .y = {.label = "% of a step that trains everything", .zero = true}};
  for (PlotSeries& series : std::vector{share_series(run, end), measured, asked}) {
    if (!series.points.empty()) plot.series.push_back(std::move(series));
  }
  const std::string drawing = draw_lines(plot);
  if (drawing.empty()) return;
  page.figure(
      "Share of the time over the training", drawing,
      "Of the steps between choices. Measuring the tensors before each choice comes on top, so choices aim "
      "a little below what was asked for.");
}

}  // namespace

void add_selection_figures(HtmlPage& page, const RunLog& run, const RunSummary& summary) {
  page.begin_columns();
  add_heat_map(page, run);
  page.next_column();
  add_shares(page, run);
  add_prediction(page, run, summary);
  page.end_columns();
}

}  // namespace limber
