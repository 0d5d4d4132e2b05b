#include "report/training_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/assert.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/plot.h"
#include "report/selection_figures.h"
#include "report/summary.h"

namespace limber {
namespace {

constexpr const char* kNothing = "\xE2\x80\x93";  // a dash, in cells

// Options and environment of a run under one set of names.
RunTexts facts_of(const RunLog& run) {
  RunTexts facts = run.options;
  for (const auto& [name, text] : run.environment) facts[name] = text.substr(0, text.find('\n'));
  return facts;
}

struct FactTables {
  HtmlTable same, different;
};

FactTables compare_facts(const std::vector<RunLog>& runs, const std::vector<RunSummary>& summaries) {
  std::vector<RunTexts> facts;
  std::set<std::string> names;
  for (const RunLog& run : runs) {
    facts.push_back(facts_of(run));
    for (const auto& [name, text] : facts.back()) names.insert(name);
  }
  FactTables tables;
  tables.same.columns = {{.title = "option"}, {.title = "value"}};
  tables.different.columns = {{.title = "option"}};
  for (const RunSummary& summary : summaries) tables.different.columns.push_back({.title = summary.run});
  for (const std::string& name : names) {
    std::vector<std::string> row = {name};
    for (const RunTexts& of : facts) {
      const auto it = of.find(name);
      row.push_back(it == of.end() || it->second.empty() ? kNothing : it->second);
    }
    const bool differ = std::adjacent_find(row.begin() + 1, row.end(), std::not_equal_to<>()) != row.end();
    if (differ) {
      tables.different.rows.push_back(std::move(row));
    } else {
      tables.same.rows.push_back({row[0], row[1]});
    }
  }
  return tables;
}

// "MODEL on DATA", of what all runs share.
std::string subject(const std::vector<RunLog>& runs) {
  const auto common = [&](const char* name) {
    std::set<std::string> values;
    for (const RunLog& run : runs) {
      const auto it = run.environment.find(name);
      if (it != run.environment.end() && !it->second.empty()) values.insert(it->second);
    }
    if (values.empty()) return fmt::format("an unknown {}", name);
    return values.size() == 1 ? *values.begin()
                              : fmt::format("{} {}", values.size(),
                                            name == std::string_view("data") ? "data sets" : "models");
  };
  return fmt::format("{} of {} on {}.",
                     runs.size() == 1 ? "A training" : fmt::format("{} trainings", runs.size()),
                     common("model"), common("data"));
}

template <typename T, typename Text>
std::string cell(const std::optional<T>& value, Text text) {
  return value ? text(*value) : kNothing;
}

std::string ratio_text(const RunSummary& summary) {
  if (!summary.ratio) return kNothing;
  return fmt::format("{:.2f}{}", *summary.ratio, summary.ratio_of_step ? " a step" : "");
}

HtmlTable summary_table(const std::vector<RunSummary>& summaries) {
  HtmlTable table;
  table.columns = {
      {"run", false, ""},
      {"strategy", false, ""},
      {"rho", true, "the share of the time of full training that was asked for"},
      {"epochs", true, "recorded, of those asked for"},
      {"best", true, "accuracy on the validation images"},
      {"last", true, "accuracy on the validation images"},
      {"training time", true, "of the recorded epochs, without evaluation"},
      {"to full", true,
       "time over that of the run with strategy full and the same model, data, batch and threads"},
      {"tensors", true, "trained after the last selection"},
      {"step time", true, "after the last selection, predicted, over a step that trains everything"},
      {"memory", true, "activations and gradients after the last selection"},
      {"left, back", true, "how often a tensor stopped being trained, and was trained again"}};
  for (const RunSummary& s : summaries) {
    const std::string planned = s.planned_epochs > 0 ? fmt::format(" of {}", s.planned_epochs) : "";
    table.rows.push_back(
        {s.run, s.strategy, cell(s.rho, [](double v) { return fmt::format("{:.3g}", v); }),
         fmt::format("{}{}", s.epochs, planned), cell(s.best_accuracy, percent_text),
         cell(s.last_accuracy, percent_text), cell(s.seconds, duration_text), ratio_text(s),
         cell(s.chosen, [&](int64_t v) { return fmt::format("{} of {}", v, s.tensors.value_or(0)); }),
         cell(s.share, percent_text), cell(s.arena_bytes, size_text),
         cell(s.left, [&](int64_t v) { return fmt::format("{}, {}", v, s.returned.value_or(0)); })});
  }
  // What no run has says nothing.
  for (size_t i = table.columns.size(); i-- > 2;) {
    if (std::any_of(table.rows.begin(), table.rows.end(),
                    [&](const auto& row) { return row[i] != kNothing; }))
      continue;
    table.columns.erase(table.columns.begin() + static_cast<ptrdiff_t>(i));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<ptrdiff_t>(i));
  }
  return table;
}

// --- accuracy and loss -----------------------------------------------------------------------------------

struct TimeUnit {
  const char* name;
  double seconds;
};

TimeUnit time_unit(const std::vector<RunSummary>& summaries) {
  double longest = 0;
  for (const RunSummary& s : summaries) longest = std::max(longest, s.seconds.value_or(0));
  if (longest > 3 * 3600) return {"hours", 3600};
  return longest > 300 ? TimeUnit{"minutes", 60} : TimeUnit{"seconds", 1};
}

void add_accuracy(HtmlPage& page, const std::vector<RunLog>& runs, const std::vector<RunSummary>& summaries) {
  const TimeUnit unit = time_unit(summaries);
  LinePlot plot{.title = "Accuracy over training time",
                .x = {.label = fmt::format("training time, {}", unit.name), .zero = true},
                .y = {.label = "accuracy, %", .low = 0, .high = 100}};
  bool unevaluated = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool validated = summaries[i].last_accuracy.has_value();
    PlotSeries series{.name = summaries[i].run, .colour = i};
    if (!validated) series.style = SeriesStyle::kDashed;
    double seconds = 0;
    for (const EpochRecord& epoch : runs[i].epochs) {
      seconds += epoch.seconds;
      const auto& accuracy = validated ? epoch.val_accuracy : epoch.accuracy;
      if (!accuracy) continue;
      series.points.push_back({seconds / unit.seconds, 100 * *accuracy,
                               fmt::format("{}: {} after epoch {}, {}", summaries[i].run,
                                           percent_text(*accuracy), epoch.epoch, duration_text(seconds))});
    }
    if (series.points.empty()) continue;
    unevaluated = unevaluated || !validated;
    plot.series.push_back(std::move(series));
  }
  const std::string drawing = draw_lines(plot);
  page.figure("Accuracy over training time", drawing,
              drawing.empty() ? "No epoch with an accuracy is recorded."
              : unevaluated ? "Evaluation takes none of the time. Dashed: nothing was evaluated, so this is "
                              "the accuracy on training images."
                            : "On the validation images; evaluation takes none of the time.");
}

void add_loss(HtmlPage& page, const std::vector<RunLog>& runs, const std::vector<RunSummary>& summaries) {
  LinePlot plot{
      .title = "Loss over epochs", .x = {.label = "epoch", .whole = true}, .y = {.label = "loss", .low = 0}};
  bool validated = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    PlotSeries trained{.name = summaries[i].run, .colour = i};
    PlotSeries evaluated{.name = "", .colour = i, .style = SeriesStyle::kDashed};
    for (const EpochRecord& epoch : runs[i].epochs) {
      const auto add = [&](PlotSeries& series, const std::optional<double>& loss, const char* what) {
        if (loss)
          series.points.push_back(
              {static_cast<double>(epoch.epoch), *loss,
               fmt::format("{}: {} {:.4f} in epoch {}", summaries[i].run, what, *loss, epoch.epoch)});
      };
      add(trained, epoch.loss, "loss");
      add(evaluated, epoch.val_loss, "validation loss");
    }
    validated = validated || !evaluated.points.empty();
    if (trained.points.empty()) evaluated.name = summaries[i].run;
    if (!trained.points.empty()) plot.series.push_back(std::move(trained));
    if (!evaluated.points.empty()) plot.series.push_back(std::move(evaluated));
  }
  const std::string drawing = draw_lines(plot);
  page.figure("Loss over epochs", drawing,
              drawing.empty() ? "No epoch with a loss is recorded."
              : validated     ? "Solid: training images as they were shown. Dashed: validation images."
                              : "On the training images as they were shown.");
}

// --- one run ---------------------------------------------------------------------------------------------

std::string lead(const RunLog& run, const RunSummary& s) {
  std::string text = fmt::format("Strategy {}", s.strategy);
  if (s.rho) text += fmt::format(", asked for {} of the time of full training", percent_text(*s.rho));
  if (s.time_s) text += fmt::format(", within {}", duration_text(*s.time_s));
  if (s.speedup)
    text += fmt::format(", within 1/{:g} of the time that training everything would take", *s.speedup);
  text += fmt::format("; {} selections recorded.", run.selections.size());
  if (s.left && s.returned)
    text +=
        fmt::format(" Tensors stopped being trained {} times and came back {} times.", *s.left, *s.returned);
  if (s.overhead_s)
    text += fmt::format(" Choosing took {} beyond the steps it chose for.", duration_text(*s.overhead_s));
  return text;
}

void add_run(HtmlPage& page, const RunLog& run, const RunSummary& summary) {
  const std::vector<std::string> missing = what_is_missing(run, summary);
  if (run.selections.empty() && missing.empty()) return;
  page.section(summary.run);
  if (!run.selections.empty()) page.text(lead(run, summary));
  if (!missing.empty()) page.note(fmt::format("{}", fmt::join(missing, " ")));
  if (!run.selections.empty()) add_selection_figures(page, run, summary);
}

}  // namespace

std::string training_page(const std::vector<RunLog>& runs) {
  LIMBER_ASSERT(!runs.empty());
  const std::vector<RunSummary> summaries = summarise(runs);
  HtmlPage page(runs.size() == 1 ? fmt::format("Training: {}", summaries[0].run) : "Trainings compared");
  page.text(subject(runs));
  page.table(summary_table(summaries));
  page.begin_columns();
  add_accuracy(page, runs, summaries);
  page.next_column();
  add_loss(page, runs, summaries);
  page.end_columns();
  const FactTables facts = compare_facts(runs, summaries);
  if (!facts.different.rows.empty()) {
    page.section("What differs between the runs");
    page.table(facts.different);
  }
  for (size_t i = 0; i < runs.size(); ++i) add_run(page, runs[i], summaries[i]);
  if (!facts.same.rows.empty()) {
    page.section("Options");
    page.folded(runs.size() == 1 ? "All options" : "Options that are the same in all runs", facts.same);
  }
  std::vector<std::string> paths;
  for (const RunLog& run : runs) paths.push_back(run.path + "/history.jsonl");
  return page.html(fmt::format("Made by limber report from {}.", fmt::join(paths, ", ")));
}

}  // namespace limber
