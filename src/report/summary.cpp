#include "report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace limber {
namespace {

std::optional<double> to_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool chooses(const std::string& strategy) { return strategy == "elastic" || strategy == "prune"; }

void add_epochs(const RunLog& run, RunSummary& summary) {
  summary.epochs = static_cast<int64_t>(run.epochs.size());
  if (run.epochs.empty()) return;
  summary.steps = run.epochs.back().step;
  double seconds = 0;
  for (const EpochRecord& epoch : run.epochs) {
    seconds += epoch.seconds;
    if (!epoch.val_accuracy) continue;
    summary.last_accuracy = epoch.val_accuracy;
    if (summary.best_accuracy && *summary.best_accuracy >= *epoch.val_accuracy) continue;
    summary.best_accuracy = epoch.val_accuracy;
    summary.best_epoch = epoch.epoch;
  }
  summary.seconds = seconds;
}

void add_choices(const RunLog& run, RunSummary& summary) {
  std::vector<double> errors;
  for (const ChoiceRecord& choice : run.choices) {
    if (choice.measured_s > 0) errors.push_back(std::abs(choice.predicted_s / choice.measured_s - 1));
    if (choice.overhead_s) summary.overhead_s = choice.overhead_s;
  }
  if (!errors.empty()) {
    const auto middle = errors.begin() + static_cast<ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), middle, errors.end());
    summary.prediction_error = *middle;
  }
  if (run.selections.empty()) return;
  const SelectionRecord& last = run.selections.back();
  summary.chosen = static_cast<int64_t>(last.chosen.size());
  summary.tensors = static_cast<int64_t>(run.tensors.size());
  summary.left = last.left;
  summary.returned = last.returned;
  summary.share = last.share;
  summary.arena_bytes = last.arena_bytes;
  if (last.rho) summary.rho = last.rho;
}

RunSummary summary_of(const RunLog& run) {
  RunSummary summary{.run = run.name, .path = run.path};
  summary.strategy = run.option("strategy");
  if (summary.strategy.empty()) summary.strategy = run.selections.empty() && run.begun ? "full" : "unknown";
  if (chooses(summary.strategy)) summary.rho = to_number(run.option("rho"));
  summary.time_s = to_number(run.option("time"));
  summary.speedup = to_number(run.option("speedup"));
  const double planned = to_number(run.option("epochs")).value_or(0);
  summary.planned_epochs = planned > 0 && planned < 1e9 ? static_cast<int64_t>(planned) : 0;
  add_epochs(run, summary);
  add_choices(run, summary);
  return summary;
}

// Whether a step of both does the same work, but for what is trained.
bool comparable(const RunLog& a, const RunLog& b) {
  const auto same = [](const RunTexts& one, const RunTexts& other, const char* key) {
    const auto x = one.find(key), y = other.find(key);
    return x == one.end() || y == other.end() ? x == one.end() && y == other.end() : x->second == y->second;
  };
  const auto same_option = [&](const char* key) { return same(a.options, b.options, key); };
  const auto same_fact = [&](const char* key) { return same(a.environment, b.environment, key); };
  constexpr std::array kOptions = {"batch", "accumulate", "size", "images"};
  constexpr std::array kFacts = {"model", "data", "threads"};
  return std::all_of(kOptions.begin(), kOptions.end(), same_option) &&
         std::all_of(kFacts.begin(), kFacts.end(), same_fact);
}

void add_ratio(const RunSummary& full, RunSummary& summary) {
  if (!full.seconds || !summary.seconds || !(*full.seconds > 0) || full.steps == 0 || summary.steps == 0)
    return;
  summary.ratio_of_step = full.steps != summary.steps;
  const double steps = static_cast<double>(full.steps) / static_cast<double>(summary.steps);
  summary.ratio = *summary.seconds / *full.seconds * steps;
}

}  // namespace

std::vector<RunSummary> summarise(const std::vector<RunLog>& runs) {
  std::vector<RunSummary> summaries;
  for (const RunLog& run : runs) {
    summaries.push_back(summary_of(run));
    const auto same =
        std::count_if(runs.begin(), runs.end(), [&](const RunLog& r) { return r.name == run.name; });
    if (same > 1) summaries.back().run = run.path;
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    for (size_t k = 0; k < runs.size() && !summaries[i].ratio; ++k) {
      if (summaries[k].strategy == "full" && comparable(runs[i], runs[k]))
        add_ratio(summaries[k], summaries[i]);
    }
  }
  return summaries;
}

std::vector<std::string> what_is_missing(const RunLog& run, const RunSummary& summary) {
  std::vector<std::string> notes;
  const std::string ended = "it was interrupted, ended early or is still going on";
  if (!run.begun)
    notes.emplace_back("The line with the options is missing, so it is not known what was trained.");
  if (run.epochs.empty()) {
    notes.push_back(
        fmt::format("No epoch is recorded, so there is no accuracy, no loss and no time; {}.", ended));
  } else if (summary.epochs < summary.planned_epochs) {
    notes.push_back(
        fmt::format("{} of {} epochs are recorded; {}.", summary.epochs, summary.planned_epochs, ended));
  }
  if (!run.epochs.empty() && !summary.last_accuracy)
    notes.emplace_back(
        "Nothing was evaluated; accuracies are those on the training images as they were shown.");
  if (!run.resumed.empty())
    notes.push_back(fmt::format("The training was resumed after step {}.", fmt::join(run.resumed, ", ")));
  if (chooses(summary.strategy) && run.selections.empty())
    notes.emplace_back("No selection is recorded: the training ended before the first choice.");
  if (!run.selections.empty() && !run.named)
    notes.emplace_back("The line with the names of the tensors is missing; they are numbered instead.");
  if (!run.selections.empty() && run.choices.empty())
    notes.emplace_back("No choice came to its end, so there are no measured times to compare with.");
  if (!run.damaged.empty())
    notes.push_back(fmt::format("{} damaged {} left out; the first: {}.", run.damaged.size(),
                                run.damaged.size() == 1 ? "line is" : "lines are", run.damaged.front()));
  return notes;
}

}  // namespace limber
