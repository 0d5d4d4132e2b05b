#include "report/evaluation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "record/accuracy.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/plot.h"

namespace limber {
namespace {

using Cell = EvaluationRecord::Cell;

constexpr size_t kMostInMatrix = 24;    // classes; cells are then 16 pixels wide
constexpr size_t kMostConfusions = 15;  // rows of a table
constexpr size_t kMostPictures = 24;    // four rows on a wide screen
constexpr int64_t kFewImages = 30;      // of a class: its own accuracy says little

std::string interval_text(int64_t correct, int64_t images) {
  const Interval interval = accuracy_interval(correct, images);
  return fmt::format("{:.0f} to {:.0f}\xC2\xA0%", 100 * interval.low, 100 * interval.high);
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// --- calibration ----------------------------------------------------------------------------------------

std::string reliability_plot(const EvaluationRecord& record) {
  LinePlot plot{.title = "Accuracy by confidence",
                .x = {.label = "confidence, %", .low = 0, .high = 100},
                .y = {.label = "accuracy, %", .zero = true, .low = 0, .high = 100},
                .series = {}};
  plot.series.push_back({.name = "as sure as right",
                         .colour = 6,
                         .style = SeriesStyle::kReference,
                         .points = {{0, 0, ""}, {100, 100, ""}}});
  PlotSeries low{.name = "95 % interval", .colour = 5, .style = SeriesStyle::kDashed, .points = {}},
      high = low;
  high.name.clear();
  PlotSeries found{.name = "accuracy", .colour = 0, .style = SeriesStyle::kLine, .points = {}};
  for (const auto& bin : record.bins) {
    if (bin.images == 0) continue;
    const double at = 100 * bin.confidence / static_cast<double>(bin.images);
    const Interval interval = accuracy_interval(bin.correct, bin.images);
    low.points.push_back({at, 100 * interval.low, ""});
    high.points.push_back({at, 100 * interval.high, ""});
    found.points.push_back(
        {at, 100 * share(bin.correct, bin.images),
         fmt::format("{} of {} right at {:.0f} % confidence", bin.correct, bin.images, at)});
  }
  plot.series.insert(plot.series.end(), {low, high, found});
  return found.points.empty() ? "" : draw_lines(plot);
}

std::string confidence_bars(const EvaluationRecord& record) {
  BarPlot plot{.title = "Images by confidence",
               .y = {.label = "images", .whole = true},
               .series = {"right", "wrong"},
               .groups = {}};
  const auto parts = static_cast<double>(record.bins.size());
  for (size_t b = 0; b < record.bins.size(); ++b) {
    const auto& bin = record.bins[b];
    const auto number = static_cast<double>(b);
    BarPlot::Group group{.name = fmt::format("{:.0f}", 100 * number / parts), .bars = {}};
    group.bars.push_back({number, static_cast<double>(bin.correct), fmt::format("{} right", bin.correct)});
    group.bars.push_back({number, static_cast<double>(bin.images - bin.correct),
                          fmt::format("{} wrong", bin.images - bin.correct)});
    plot.groups.push_back(std::move(group));
  }
  return draw_bars(plot);
}

void add_calibration(HtmlPage& page, const EvaluationRecord& record) {
  const std::string drawing = reliability_plot(record);
  if (drawing.empty()) return;
  page.section("Can its confidence be trusted?");
  double confidence = 0;
  for (const auto& bin : record.bins) confidence += bin.confidence;
  const double mean = confidence / static_cast<double>(std::max<int64_t>(1, record.images));
  const double right = share(record.correct(), record.images);
  page.text(
      fmt::format("It is {} sure on average and right in {}. Expected calibration error: {:.1f} points.",
                  percent_text(mean), percent_text(right), 100 * record.calibration_error()));
  page.begin_columns();
  page.figure("Accuracy by confidence", drawing,
              "Below the diagonal it is surer than it should be, above it less sure.");
  page.next_column();
  page.figure("Images by confidence", confidence_bars(record),
              "From so many percent up; what it was right and wrong in.");
  page.end_columns();
}

// --- classes --------------------------------------------------------------------------------------------

HtmlTable class_table(const EvaluationRecord& record) {
  HtmlTable table;
  table.columns = {{.title = "class"},
                   {.title = "images", .right = true},
                   {.title = "accuracy", .right = true, .hint = "share of its images that are recognised"},
                   {.title = "95 % interval", .right = true, .hint = "Wilson's, of the accuracy"},
                   {.title = "precision", .right = true, .hint = "share of what is taken for it that is it"},
                   {.title = "most often taken for"}};
  const auto counts = record.by_class();
  const auto wrong = record.mistaken();
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return share(counts[a].correct, counts[a].images) < share(counts[b].correct, counts[b].images);
  });
  std::vector<const Cell*> most(counts.size(), nullptr);
  for (const Cell& cell : wrong) {
    if (most[cell.truth] == nullptr) most[cell.truth] = &cell;
  }
  for (const size_t k : order) {
    const auto& count = counts[k];
    const bool none = count.images == 0;
    table.rows.push_back({record.classes[k], fmt::format("{}", count.images),
                          none ? "" : percent_text(share(count.correct, count.images)),
                          none ? "" : interval_text(count.correct, count.images),
                          count.predicted == 0 ? "" : percent_text(share(count.correct, count.predicted)),
                          most[k] == nullptr
                              ? ""
                              : fmt::format("{} ({})", record.classes[most[k]->predicted], most[k]->count)});
  }
  return table;
}

// All classes, or those with the most mistakes from or to them, in their order.
std::vector<size_t> matrix_classes(const EvaluationRecord& record) {
  std::vector<size_t> chosen(record.classes.size());
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  if (chosen.size() <= kMostInMatrix) return chosen;
  const auto counts = record.by_class();
  const auto mistakes = [&](size_t k) {
    return counts[k].images + counts[k].predicted - 2 * counts[k].correct;
  };
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](size_t a, size_t b) { return mistakes(a) > mistakes(b); });
  chosen.resize(kMostInMatrix);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

CountMatrix confusion_matrix(const EvaluationRecord& record) {
  const std::vector<size_t> chosen = matrix_classes(record);
  std::vector<size_t> place(record.classes.size(), SIZE_MAX);
  CountMatrix matrix{.title = "Confusion matrix", .names = {}, .counts = {}, .row_totals = {}};
  const auto counts = record.by_class();
  for (const size_t k : chosen) {
    place[k] = matrix.names.size();
    matrix.names.push_back(record.classes[k]);
    matrix.row_totals.push_back(counts[k].images);
  }
  matrix.counts.assign(chosen.size(), std::vector<int64_t>(chosen.size(), 0));
  for (const Cell& cell : record.confusion) {
    if (place[cell.truth] != SIZE_MAX && place[cell.predicted] != SIZE_MAX)
      matrix.counts[place[cell.truth]][place[cell.predicted]] += cell.count;
  }
  return matrix;
}

HtmlTable confusion_table(const EvaluationRecord& record) {
  HtmlTable table;
  table.columns = {{.title = "is"},
                   {.title = "is taken for"},
                   {.title = "images", .right = true},
                   {.title = "of the class", .right = true}};
  const auto counts = record.by_class();
  auto cells = record.mistaken();
  cells.resize(std::min(cells.size(), kMostConfusions));
  for (const Cell& cell : cells)
    table.rows.push_back({record.classes[cell.truth], record.classes[cell.predicted],
                          fmt::format("{}", cell.count),
                          percent_text(share(cell.count, counts[cell.truth].images))});
  return table;
}

void add_classes(HtmlPage& page, const EvaluationRecord& record) {
  page.section("Classes");
  const auto counts = record.by_class();
  const auto few =
      std::count_if(counts.begin(), counts.end(), [](const auto& c) { return c.images < kFewImages; });
  if (few > 0)
    page.note(fmt::format("{} of {} classes have fewer than {} images: look at their intervals.", few,
                          counts.size(), kFewImages));
  const bool all = record.classes.size() <= kMostInMatrix;
  page.begin_columns();
  page.figure(
      "Confusion matrix", draw_counts(confusion_matrix(record)),
      all ? "Rows: what an image is. Columns, in the same order: what it is taken for."
          : fmt::format(
                "The {} classes of {} with the most mistakes. Rows: what an image is. Columns, in the "
                "same order: what it is taken for.",
                kMostInMatrix, record.classes.size()));
  page.next_column();
  page.table(confusion_table(record));
  page.end_columns();
  // A screen of rows is read; more are looked up.
  if (record.classes.size() <= 20) {
    page.table(class_table(record));
  } else {
    page.folded(fmt::format("All {} classes, the worst first", record.classes.size()), class_table(record));
  }
}

// --- mistakes -------------------------------------------------------------------------------------------

void add_mistakes(HtmlPage& page, const EvaluationRecord& record) {
  if (record.worst.empty()) return;
  page.section("Worst mistakes");
  page.text("Wrong, and the most sure of it. Some may be labelled wrongly in the data.");
  std::vector<HtmlPicture> pictures;
  for (size_t i = 0; i < std::min(record.worst.size(), kMostPictures); ++i) {
    const auto& mistake = record.worst[i];
    pictures.push_back(
        {mistake.png,
         fmt::format("{}, taken for {}", record.classes[mistake.truth], record.classes[mistake.predicted]),
         fmt::format("{} sure; {}", percent_text(mistake.confidence), mistake.image)});
  }
  page.pictures(pictures);
}

}  // namespace

std::string evaluation_page(const EvaluationRecord& record) {
  HtmlPage page(fmt::format("Evaluation of {}", record.model));
  page.text(fmt::format("On {}: {} are right, {} among the best five. Loss {:.3f}; {}.", record.data,
                        accuracy_text(record.correct(), record.images, record.which),
                        percent_text(share(record.correct_top5, record.images)), record.loss,
                        duration_text(record.seconds)));
  if (record.which == "training")
    page.note("These are images it was trained on: on others it is likely to be worse.");
  add_classes(page, record);
  add_calibration(page, record);
  add_mistakes(page, record);
  return page.html("Made by limber from what an evaluation recorded.");
}

}  // namespace limber
