#include "report/demo_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/picture.h"
#include "report/plot.h"
#include "report/selection_figures.h"
#include "report/summary.h"

namespace limber {
namespace {

std::string points_text(double points) {
  if (points <= 0) return "no accuracy lost";
  return fmt::format("{:.1f} points of accuracy lost", points);
}

std::string share_text(double share) { return fmt::format("{:.0f}\u00a0%", 100 * share); }

// "0.42 ms (56 %)"
std::string latency_text(double seconds, double share) {
  return fmt::format("{} ({})", step_time_text(seconds), share_text(share));
}

LinePlot trainings_plot(const DemoReport& report) {
  LinePlot plot{.title = "Accuracy over training time",
                .x = {.label = "training time, seconds", .zero = true},
                .y = {.label = "accuracy on the new domain, %", .high = 100}};
  for (size_t i = 0; i < report.trainings.size(); ++i) {
    const DemoTraining& training = report.trainings[i];
    PlotSeries series{.name = training.name, .colour = i};
    series.points.push_back({0, 100 * report.base_shifted, "before"});
    double seconds = 0;
    for (const EpochRecord& epoch : training.log.epochs) {
      seconds += epoch.seconds;
      if (!epoch.val_accuracy) continue;
      series.points.push_back(
          {seconds, 100 * *epoch.val_accuracy,
           fmt::format("{}: {} after epoch {}, {}", training.name, percent_text(*epoch.val_accuracy),
                       epoch.epoch, duration_text(seconds))});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

LinePlot subnets_plot(const DemoReport& report) {
  const ElasticReport::Machine& machine = report.elastic.machines[0];
  LinePlot plot = variants_plot(machine);
  plot.title = "Accuracy over latency";
  PlotSeries found{.name = "found for a budget", .colour = 2, .style = SeriesStyle::kPoints};
  for (const DemoBudget& budget : report.budgets) {
    found.points.push_back(
        {1e3 * budget.promised_s, 100 * budget.promised_accuracy,
         fmt::format("within {}: {}, {}, {}", share_text(budget.share), step_time_text(budget.promised_s),
                     percent_text(budget.promised_accuracy), budget.variant)});
  }
  plot.series.push_back(std::move(found));
  return plot;
}

std::string latency_plot(const DemoReport& report) {
  BarPlot plot{.title = "Promised and measured latency",
               .y = {.label = "latency, % of the original's"},
               .series = {"budget", "promised by the search", "measured on the exported file"}};
  for (const DemoBudget& b : report.budgets) {
    const double measured = report.measured_share(b);
    plot.groups.push_back(
        {share_text(b.share),
         {{0, 100 * b.share, fmt::format("budget {}", share_text(b.share))},
          {0, 100 * b.promised_share,
           fmt::format("promised {}", latency_text(b.promised_s, b.promised_share))},
          {0, 100 * measured, fmt::format("measured {}", latency_text(b.measured_s, measured))}}});
  }
  return draw_bars(plot);
}

HtmlTable training_table(const DemoReport& report) {
  HtmlTable table;
  table.columns = {{.title = "what is trained"},
                   {"time", true, "from the command to its end, without the evaluations after each epoch"},
                   {.title = "faster", .right = true},
                   {"accuracy", true, "on images that played no part before"},
                   {.title = "by full", .right = true}};
  const DemoTraining& full = report.trainings[0];
  table.rows.push_back({"nothing: the first model", "", "", percent_text(report.base_shifted),
                        fmt::format("{:+.1f} points", 100 * (report.base_shifted - full.accuracy))});
  for (const DemoTraining& t : report.trainings)
    table.rows.push_back({t.name, duration_text(t.seconds),
                          fmt::format("{:.2f} times", full.seconds / t.seconds), percent_text(t.accuracy),
                          fmt::format("{:+.1f} points", 100 * (t.accuracy - full.accuracy))});
  return table;
}

HtmlTable budget_table(const DemoReport& report) {
  HtmlTable table;
  table.columns = {{.title = "budget"},
                   {"promised", true, "latency as the search timed it"},
                   {"measured", true, "latency of the exported file, in turns with the original"},
                   {.title = "kept", .right = false},
                   {"accuracy", true, "on images that played no part before"},
                   {.title = "parameters", .right = true},
                   {.title = "file"}};
  table.rows.push_back({"original", "", latency_text(report.original_s, 1), "",
                        percent_text(report.original_accuracy), fmt::format("{}", report.original_parameters),
                        "original.onnx"});
  for (const DemoBudget& b : report.budgets)
    table.rows.push_back({share_text(b.share), latency_text(b.promised_s, b.promised_share),
                          latency_text(b.measured_s, report.measured_share(b)),
                          report.within(b) ? "yes" : "no", percent_text(b.accuracy),
                          fmt::format("{}", b.parameters), b.file});
  return table;
}

// What a reader should take away, in as few words as there are.
std::string gains(const DemoReport& report) {
  const std::string served = report.serving.runs.size() == 2 ? " " + report.serving.verdict() : "";
  const auto kept = std::count_if(report.budgets.begin(), report.budgets.end(),
                                  [&](const DemoBudget& b) { return report.within(b); });
  return fmt::format(
      "Learning the new domain: {:.2f} times as fast as training everything, with {}; training everything "
      "for "
      "fewer epochs, in {:.2f} of elastic training's time, is {:+.1f} points from it. Running on it: {} of "
      "{} "
      "subnets keep the latency that was asked for.{}",
      report.speedup(), points_text(report.points_lost()),
      report.trainings[3].seconds / report.trainings[1].seconds, -report.points_gained(), kept,
      report.budgets.size(), served);
}

void add_domains(HtmlPage& page, const DemoReport& report) {
  page.section("The world changes");
  page.text(fmt::format(
      "A small network ({}) learns to tell ten drawn shapes apart and gets {} of new images right. Then the "
      "world changes ({}), and it gets {}.",
      report.model, percent_text(report.base_accuracy), report.domain, percent_text(report.base_shifted)));
  if (report.samples_png.empty()) return;
  page.figure("The ten classes, before and after",
              fmt::format("<img class=\"samples\" alt=\"ten shapes, above as the model learnt them, below in "
                          "the new domain\" src=\"data:image/png;base64,{}\"/>\n",
                          base64(report.samples_png)),
              "Above as the model learnt them, below as they look now. 32 by 32 pixels, as the model sees "
              "them.");
}

void add_trainings(HtmlPage& page, const DemoReport& report) {
  const DemoTraining& elastic = report.trainings[1];
  const std::vector<RunSummary> summaries = summarise({report.trainings[0].log, elastic.log});
  page.section("Learning it on the device");
  page.text(
      "Trainings on the same images, for as many epochs but the last, which has as many as fit into the time "
      "of "
      "elastic training: what one would do without it. They take turns, an epoch each, so that a machine "
      "that "
      "gets slower does so for all of them. Elastic training times every part of a step, "
      "measures what each tensor is worth, and trains what is worth most within the time it is given; again "
      "and again, since that changes.");
  page.table(training_table(report));
  page.figure("Accuracy over training time", draw_lines(trainings_plot(report)),
              "After each epoch, on images that are not trained on. Evaluation takes none of the time; what "
              "elastic training needs to time and to choose does.");
  add_selection_figures(page, elastic.log, summaries[1]);
}

void add_subnets(HtmlPage& page, const DemoReport& report) {
  page.section("Running it within a budget");
  page.text(fmt::format(
      "The adapted model got {} cheaper alternatives for its {} blocks, taught by the blocks themselves: "
      "{:.3g} variants in all. A search on this machine found the best for each budget; each was exported as "
      "plain ONNX, loaded again, and timed in turns with the original, {} times.",
      report.elastic.alternatives.size(), report.elastic.blocks, report.elastic.variants, report.timed_runs));
  page.table(budget_table(report));
  for (const DemoBudget& b : report.budgets) {
    if (!report.within(b))
      page.note(
          fmt::format("The subnet for {} took {} when it was timed again: over its budget. Something "
                      "else may have used the machine.",
                      share_text(b.share), share_text(report.measured_share(b))));
  }
  for (const double share : report.unreachable)
    page.note(fmt::format("No variant takes {} or less on this machine.", share_text(share)));
  page.begin_columns();
  page.figure("Accuracy over latency", draw_lines(subnets_plot(report)),
              fmt::format("{} variants were evaluated on {} images; those on the line are beaten by none.",
                          report.elastic.machines[0].points.size(), report.searched_images));
  page.next_column();
  page.figure("Promised and measured", latency_plot(report),
              "The search promises what it timed; the file that was exported is timed again. Medians.");
  page.end_columns();
}

void add_steps(HtmlPage& page, const DemoReport& report) {
  page.section("How it was done");
  HtmlTable table;
  table.columns = {{.title = "command"}, {.title = "took", .right = true}};
  for (const DemoStep& step : report.steps) table.rows.push_back({step.command, duration_text(step.seconds)});
  page.folded("All commands, to repeat it by hand", table);
}

}  // namespace

std::string demo_page(const DemoReport& report) {
  LIMBER_ASSERT(report.trainings.size() == 4 && !report.elastic.machines.empty());
  HtmlPage page("Limber: what was gained on this machine");
  page.text(fmt::format("{}, {} thread{}, seed {}; everything on this page was measured here, in {}.",
                        report.machine, report.threads, report.threads == 1 ? "" : "s", report.seed,
                        duration_text(report.seconds)));
  if (report.quick)
    page.note("Made quickly: with less data and less time, so the gains are smaller than they could be.");
  page.text(gains(report));
  add_domains(page, report);
  add_trainings(page, report);
  add_subnets(page, report);
  if (report.serving.runs.size() == 2) add_serving(page, report.serving);
  add_steps(page, report);
  return page.html(
      fmt::format("Made by limber demo ({}). Accuracies in tables are of {} images that played no "
                  "part before.",
                  report.version, report.judged_images));
}

std::string demo_picture(const DemoReport& report) {
  return svg_picture("Limber demo", {trainings_plot(report), subnets_plot(report)});
}

}  // namespace limber
