#include "report/elastic_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/markup.h"
#include "report/page.h"
#include "report/plot.h"

namespace limber {
namespace {

using Kind = VariantPoint::Kind;

const VariantPoint* original_of(const ElasticReport::Machine& machine) {
  const auto it = std::find_if(machine.points.begin(), machine.points.end(),
                               [](const VariantPoint& p) { return p.kind == Kind::kOriginal; });
  return it == machine.points.end() ? nullptr : &*it;
}

PlotPoint plot_point(const VariantPoint& p) {
  return {1e3 * p.seconds(), 100 * p.accuracy,
          fmt::format("{}: {}, {}", p.name, step_time_text(p.seconds()), percent_text(p.accuracy))};
}

PlotSeries series_of(const ElasticReport::Machine& machine, Kind kind, const char* name, size_t colour) {
  PlotSeries series{.name = name, .colour = colour, .style = SeriesStyle::kPoints};
  for (const VariantPoint& p : machine.points) {
    if (p.kind == kind) series.points.push_back(plot_point(p));
  }
  return series;
}

std::string prediction_plot(const ElasticReport::Machine& machine) {
  ScatterPlot plot{.title = "Latency, predicted and measured",
                   .x = {.label = "predicted, ms", .zero = true},
                   .y = {.label = "measured, ms", .zero = true},
                   .colour = 0};
  for (const VariantPoint& p : machine.points) {
    if (p.measured_s > 0 && p.kind != Kind::kExits)
      plot.points.push_back({1e3 * p.predicted_s, 1e3 * p.measured_s, p.name});
  }
  return plot.points.empty() ? "" : draw_scatter(plot);
}

std::string images_text(const ElasticReport::Machine& machine) {
  const auto [least, most] =
      std::minmax_element(machine.points.begin(), machine.points.end(),
                          [](const VariantPoint& a, const VariantPoint& b) { return a.images < b.images; });
  if (least == machine.points.end()) return "no images";
  if (least->images == most->images) return fmt::format("{} images", most->images);
  return fmt::format("{} to {} images", least->images, most->images);
}

HtmlTable front_table(const ElasticReport::Machine& machine) {
  const VariantPoint* original = original_of(machine);
  HtmlTable table;
  table.columns = {{.title = "latency", .right = true},
                   {.title = "of the original", .right = true},
                   {.title = "accuracy", .right = true},
                   {.title = "parameters", .right = true},
                   {.title = "variant", .hint = "one number for each block: which alternative"}};
  for (const VariantPoint& p : machine.front) {
    const double share = original == nullptr ? 0 : p.seconds() / original->seconds();
    table.rows.push_back({step_time_text(p.seconds()) + (p.measured_s > 0 ? "" : " (predicted)"),
                          share > 0 ? percent_text(share) : "", percent_text(p.accuracy),
                          size_text(p.parameter_bytes), p.name});
  }
  return table;
}

void add_machine(HtmlPage& page, const ElasticReport::Machine& machine) {
  page.section(machine.name);
  page.begin_columns();
  page.figure("Accuracy over latency", draw_lines(variants_plot(machine)),
              fmt::format("{} variants were evaluated on {}; those on the line are beaten by none.",
                          machine.points.size(), images_text(machine)));
  if (const std::string drawing = prediction_plot(machine); !drawing.empty()) {
    page.next_column();
    page.figure("Latency", drawing, "Sums over blocks against whole variants. On the diagonal they agree.");
  }
  page.end_columns();
  page.table(front_table(machine));
}

// What a variant takes, and that by what its original takes.
std::string with_share(double seconds, double original) {
  return original > 0 ? fmt::format("{} ({})", step_time_text(seconds), percent_text(seconds / original))
                      : step_time_text(seconds);
}

HtmlTable searches_table(const std::vector<SearchRecord>& searches) {
  HtmlTable table;
  table.columns = {{.title = "asked for", .right = true, .hint = "latency at most, of the original's"},
                   {.title = "found", .right = true, .hint = "latency, measured as a whole"},
                   {.title = "accuracy", .right = true},
                   {.title = "original's", .right = true},
                   {.title = "tried", .right = true, .hint = "variants, those known before included"},
                   {.title = "took", .right = true},
                   {.title = "judged by"},
                   {.title = "variant"}};
  for (const SearchRecord& s : searches)
    table.rows.push_back({with_share(s.limit_s, s.original_s),
                          with_share(s.measured_s, s.original_s) + (s.within ? "" : ", not kept"),
                          percent_text(s.accuracy), percent_text(s.original_accuracy),
                          fmt::format("{}", s.evaluated + s.known), duration_text(s.seconds), s.judged.images,
                          s.variant});
  return table;
}

HtmlTable times_table(const SearchRecord& search) {
  HtmlTable table;
  table.columns = {{.title = "last search"}, {.title = "time", .right = true}};
  for (const SearchRecord::Part& part : search.parts)
    table.rows.push_back({part.what, duration_text(part.seconds)});
  return table;
}

HtmlTable exits_table(const std::vector<ExitsRecord>& all) {
  HtmlTable table;
  table.columns = {{.title = "mean latency", .right = true, .hint = "of images that came one by one"},
                   {.title = "accuracy", .right = true},
                   {.title = "original's", .right = true},
                   {.title = "leave at", .hint = "share of images, exit by exit"},
                   {.title = "took", .right = true},
                   {.title = "judged by"},
                   {.title = "variant"}};
  for (const ExitsRecord& found : all) {
    std::string shares;
    for (const ExitsRecord::Exit& exit : found.exits)
      shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", exit.name, percent_text(exit.share));
    table.rows.push_back({with_share(found.measured_s, found.original_s), percent_text(found.accuracy),
                          percent_text(found.original_accuracy), shares, duration_text(found.seconds),
                          found.judged.images, found.variant});
  }
  return table;
}

HtmlTable alternatives_table(const ElasticReport& report) {
  HtmlTable table;
  table.columns = {{.title = "block"},
                   {.title = "alternative"},
                   {.title = "blocks", .right = true, .hint = "how many it stands for"},
                   {.title = "error",
                    .right = true,
                    .hint = "mean square of the difference from the original's output by its variance"}};
  for (const auto& one : report.alternatives)
    table.rows.push_back(
        {one.block, one.name, fmt::format("{}", one.span), fmt::format("{:.4f}", one.error)});
  return table;
}

}  // namespace

LinePlot variants_plot(const ElasticReport::Machine& machine) {
  LinePlot plot{.title = "Accuracy over latency",
                .x = {.label = "latency, ms", .zero = true},
                .y = {.label = "accuracy, %", .high = 100}};
  plot.series.push_back(series_of(machine, Kind::kOther, "evaluated", 6));
  PlotSeries front{.name = "best", .colour = 0};
  for (const VariantPoint& p : machine.front) front.points.push_back(plot_point(p));
  plot.series.push_back(front);
  plot.series.push_back(series_of(machine, Kind::kUniform, "the same everywhere", 3));
  plot.series.push_back(series_of(machine, Kind::kExits, "with exits (mean latency)", 2));
  plot.series.push_back(series_of(machine, Kind::kOriginal, "original", 1));
  std::erase_if(plot.series, [](const PlotSeries& s) { return s.points.empty(); });
  return plot;
}

std::string elastic_page(const ElasticReport& report) {
  HtmlPage page("Elastic model " + report.folder);
  page.text(fmt::format("{} blocks, {} alternatives, {:.3g} variants.", report.blocks,
                        report.alternatives.size(), report.variants));
  if (report.machines.empty()) page.note("No variant has been evaluated yet: run limber search.");
  for (const auto& machine : report.machines) add_machine(page, machine);
  if (!report.searches.empty()) {
    page.section("Searches");
    page.table(searches_table(report.searches));
    page.table(times_table(report.searches.back()));
  }
  if (!report.exits.empty()) {
    page.section("Exits");
    page.table(exits_table(report.exits));
  }
  page.folded("Alternatives", alternatives_table(report));
  return page.html("Made by limber report from the elastic model's folder.");
}

}  // namespace limber
