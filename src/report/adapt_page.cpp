#include "report/adapt_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/markup.h"
#include "report/page.h"
#include "report/plot.h"

namespace limber {
namespace {

constexpr size_t kLinePoints = 120;  // of a line; of more windows each point is the mean of several
constexpr size_t kMostVisits = 24;   // domains that are shaded and named; of more none is
constexpr size_t kMostEvents = 400;  // that are listed

std::string gain_text(double share) { return fmt::format("{:+.1f}", 100 * share); }

// What the name of a line says: the strategy, and the folder where several have one.
std::string label_of(const AdaptLog& run, const std::vector<AdaptLog>& runs) {
  std::string label = run.option("strategy");
  if (run.option("guard") == "off" && label != "none") label += ", unguarded";
  const auto same = std::count_if(runs.begin(), runs.end(), [&](const AdaptLog& other) {
    return other.option("strategy") == run.option("strategy") && other.option("guard") == run.option("guard");
  });
  return same > 1 || label.empty() ? run.name : label;
}

template <typename Value>
std::vector<PlotPoint> line_of(const AdaptLog& run, const char* what, const Value& value) {
  const size_t each = (run.windows.size() + kLinePoints - 1) / kLinePoints;
  std::vector<PlotPoint> points;
  for (size_t begin = 0; begin < run.windows.size(); begin += each) {
    double sum = 0, frames = 0;
    for (size_t i = begin; i < std::min(begin + each, run.windows.size()); ++i) {
      const AdaptWindowRecord& window = run.windows[i];
      if (!window.counts()) continue;
      sum += static_cast<double>(window.frames) * value(window);
      frames += static_cast<double>(window.frames);
    }
    if (frames == 0) continue;
    const AdaptWindowRecord& last = run.windows[std::min(begin + each, run.windows.size()) - 1];
    points.push_back({static_cast<double>(last.step), 100 * sum / frames,
                      fmt::format("{}: {} before frame {} ({})", what, percent_text(sum / frames), last.step,
                                  last.domain)});
  }
  return points;
}

std::vector<PlotSpan> visits_of(const AdaptLog& run) {
  std::vector<PlotSpan> visits;
  for (const AdaptWindowRecord& window : run.windows) {
    const auto from = static_cast<double>(window.step - window.frames), to = static_cast<double>(window.step);
    if (!visits.empty() && visits.back().name == window.domain)
      visits.back().to = to;
    else
      visits.push_back({from, to, window.domain});
  }
  // Every other one, so that each is seen.
  if (visits.size() > kMostVisits) return {};
  std::vector<PlotSpan> shaded;
  for (size_t i = 0; i < visits.size(); i += 2) shaded.push_back(visits[i]);
  return shaded;
}

const AdaptWindowRecord& window_at(const AdaptLog& run, int64_t step) {
  const auto it = std::lower_bound(run.windows.begin(), run.windows.end(), step,
                                   [](const AdaptWindowRecord& w, int64_t s) { return w.step < s; });
  return it == run.windows.end() ? run.windows.back() : *it;
}

PlotSeries marks_of(const AdaptLog& run, const char* what, const char* name, size_t colour) {
  PlotSeries series{.name = name, .colour = colour, .style = SeriesStyle::kPoints};
  for (const AdaptEventRecord& event : run.events) {
    if (event.what != what) continue;
    series.points.push_back({static_cast<double>(event.frame), 100 * window_at(run, event.step).accuracy,
                             fmt::format("frame {}: {}, {}", event.frame, event.what, event.reason)});
  }
  return series;
}

LinePlot stream_plot(const std::vector<AdaptLog>& runs) {
  LinePlot plot{.title = "Accuracy over the stream",
                .x = {.label = "frames", .whole = true, .zero = true},
                .y = {.label = "accuracy, %", .high = 100},
                .shaded = visits_of(runs[0])};
  plot.series.push_back({.name = "as it came",
                         .style = SeriesStyle::kReference,
                         .points = line_of(runs[0], "as it came", [](const auto& w) { return w.frozen; })});
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs.size() > 1 && runs[i].option("strategy") == "none") continue;
    const std::string label = label_of(runs[i], runs);
    plot.series.push_back(
        {.name = label, .colour = i, .points = line_of(runs[i], label.c_str(), [](const auto& w) {
                                       return w.accuracy;
                                     })});
  }
  if (runs.size() > 1) return plot;
  plot.series.push_back({.name = "estimated without labels",
                         .colour = 1,
                         .style = SeriesStyle::kDashed,
                         .points = line_of(runs[0], "estimated", [](const auto& w) { return w.estimate; })});
  plot.series.push_back(marks_of(runs[0], "adapted", "accepted", 2));
  plot.series.push_back(marks_of(runs[0], "rejected", "rejected", 3));
  plot.series.push_back(marks_of(runs[0], "rolled back", "rolled back", 4));
  return plot;
}

std::string estimate_plot(const AdaptLog& run) {
  ScatterPlot plot{.title = "Accuracy without labels, and the truth",
                   .x = {.label = "estimated, %", .low = 0, .high = 100},
                   .y = {.label = "true, %", .low = 0, .high = 100},
                   .colour = 0};
  for (const AdaptWindowRecord& window : run.windows) {
    if (window.counts() && !window.mixed)
      plot.points.push_back({100 * window.estimate, 100 * window.accuracy,
                             fmt::format("{}, before frame {}", window.domain, window.step)});
  }
  return plot.points.empty() ? "" : draw_scatter(plot);
}

HtmlTable runs_table(const std::vector<AdaptLog>& runs) {
  HtmlTable table;
  table.columns = {{.title = "run"},
                   {.title = "strategy"},
                   {.title = "frames", .right = true},
                   {.title = "accuracy", .right = true},
                   {.title = "as it came", .right = true},
                   {.title = "gain, points", .right = true},
                   {.title = "most lost", .right = true, .hint = "in any 5,000 frames in a row, in points"},
                   {.title = "estimate off by", .right = true, .hint = "points, of what answered, by window"},
                   {.title = "alarms", .right = true},
                   {.title = "accepted", .right = true},
                   {.title = "rejected", .right = true},
                   {.title = "rolled back", .right = true},
                   {.title = "returned", .right = true, .hint = "to what was known of a domain"}};
  for (const AdaptLog& run : runs) {
    const AdaptSummary sum = summarise(run);
    const bool labelled = sum.labelled > 0;
    table.rows.push_back(
        {run.name, run.option("strategy") + (run.option("guard") == "off" ? ", unguarded" : ""),
         fmt::format("{}", sum.frames), labelled ? percent_text(sum.accuracy) : "",
         labelled ? percent_text(sum.frozen) : "", labelled ? gain_text(sum.accuracy - sum.frozen) : "",
         run.end && run.end->worst_below_frozen ? fmt::format("{:.1f}", 100 * *run.end->worst_below_frozen)
                                                : "-",
         labelled ? fmt::format("{:.1f}", 100 * sum.estimate_error) : "", fmt::format("{}", sum.alarms),
         fmt::format("{}", sum.adapted), fmt::format("{}", sum.rejected), fmt::format("{}", sum.rolled_back),
         fmt::format("{}", sum.returned)});
  }
  return table;
}

// One row for each domain, in the order they come first; one column for each run.
HtmlTable domains_table(const std::vector<AdaptLog>& runs) {
  HtmlTable table;
  table.columns = {
      {.title = "domain"}, {.title = "frames", .right = true}, {.title = "as it came", .right = true}};
  std::vector<std::string> order;
  std::vector<std::map<std::string, AdaptSummary>> sums(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    table.columns.push_back({.title = label_of(runs[i], runs), .right = true});
    for (const AdaptWindowRecord& window : runs[i].windows) {
      if (!window.counts() || window.mixed) continue;
      if (std::find(order.begin(), order.end(), window.domain) == order.end()) order.push_back(window.domain);
      AdaptSummary& sum = sums[i][window.domain];
      const auto frames = static_cast<double>(window.frames);
      sum.labelled += window.frames;
      sum.accuracy += frames * window.accuracy;
      sum.frozen += frames * window.frozen;
    }
  }
  const auto share = [](double sum, int64_t frames) {
    return frames > 0 ? percent_text(sum / static_cast<double>(frames)) : std::string();
  };
  for (const std::string& domain : order) {
    const AdaptSummary& first = sums[0][domain];
    table.rows.push_back({domain, fmt::format("{}", first.labelled), share(first.frozen, first.labelled)});
    for (auto& of : sums) table.rows.back().push_back(share(of[domain].accuracy, of[domain].labelled));
  }
  return table;
}

HtmlTable events_table(const AdaptLog& run) {
  HtmlTable table;
  table.columns = {
      {.title = "frame", .right = true},
      {.title = "what"},
      {.title = "domain"},
      {.title = "found", .right = true, .hint = "domain, by the detector's number; 0: the source"},
      {.title = "took", .right = true},
      {.title = "why"}};
  const size_t first = run.events.size() > kMostEvents ? run.events.size() - kMostEvents : 0;
  for (size_t i = first; i < run.events.size(); ++i) {
    const AdaptEventRecord& event = run.events[i];
    table.rows.push_back({fmt::format("{}", event.frame), event.what, event.domain,
                          fmt::format("{}", event.found),
                          event.seconds > 0 ? step_time_text(event.seconds) : "", event.reason});
  }
  return table;
}

void add_notes(HtmlPage& page, const AdaptLog& run) {
  for (const std::string& line : run.damaged) page.note(line + "; the line is left out");
  if (!run.end) {
    page.note(fmt::format("{}: the stream is not over, or the run ended before it.", run.name));
    return;
  }
  const AdaptEndRecord& end = *run.end;
  if (end.skipped + end.flat + end.noise + end.not_a_number > 0)
    page.note(fmt::format(
        "{}: nothing was learnt from {} frames that cannot be read, {} of one colour, {} of noise "
        "and {} that are no numbers.",
        run.name, end.skipped, end.flat, end.noise, end.not_a_number));
}

}  // namespace

std::string adapt_page(const std::vector<AdaptLog>& runs) {
  HtmlPage page(runs.size() == 1 ? "A stream that was followed" : "Strategies compared on a stream");
  page.text(fmt::format("{} on {}.", runs[0].option("model"), runs[0].option("stream")));
  for (const AdaptLog& run : runs) add_notes(page, run);
  page.table(runs_table(runs));
  page.begin_columns();
  page.figure("Accuracy over the stream", draw_lines(stream_plot(runs)),
              "Every window is answered before anything learns from it.");
  if (const std::string drawing = runs.size() == 1 ? estimate_plot(runs[0]) : ""; !drawing.empty()) {
    page.next_column();
    page.figure("Estimated and true", drawing, "One point for each window of one domain.");
  }
  page.end_columns();
  page.section("Domains");
  page.table(domains_table(runs));
  for (const AdaptLog& run : runs) {
    if (run.events.empty()) continue;
    const std::string shown =
        run.events.size() > kMostEvents ? fmt::format(", the last {}", kMostEvents) : std::string();
    page.folded(fmt::format("What happened: {}{}", label_of(run, runs), shown), events_table(run));
  }
  return page.html("Made from history.jsonl by limber report.");
}

}  // namespace limber
