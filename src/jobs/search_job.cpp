#include "jobs/search_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "jobs/confirm.h"
#include "jobs/search_journal.h"
#include "record/record_file.h"
#include "supernet/teach/tune.h"

namespace limber {
namespace {

constexpr double kParameterBytes = sizeof(float);

// What the job asks of the library. Of the variants to try those count that are known already.
SearchOptions search_options(const SearchJobOptions& job, const ElasticWork& work, const JobControl& control,
                             const std::vector<Scored>& known) {
  SearchOptions how;
  how.max_flops = job.max_flops;
  how.method = job.method;
  how.seed = job.seed;
  how.stop = control.stop;
  how.known = known;
  how.seeds = tuned_variants(work.folder.model, work.folder.info);
  how.max_parameter_bytes = kParameterBytes * job.max_params;
  const auto memory = static_cast<double>(job.max_memory);
  if (memory > 0 && (how.max_parameter_bytes == 0 || memory < how.max_parameter_bytes))
    how.max_parameter_bytes = memory;
  // A share of the sum of the original's blocks, as predictions are sums too: what a busy machine did to the
  // one it did to the others. Confirmation goes by the original as it is measured then.
  how.latency = job.latency > 0 ? job.latency : job.latency_share * work.table.original();
  how.latency *= 1 - job.margin;
  const auto there = std::count_if(known.begin(), known.end(), [&](const Scored& one) {
    return one.seconds <= how.latency && one.seconds >= how.nearby * how.latency;
  });
  how.max_evaluations = std::max(1, job.evaluations - static_cast<int>(there));
  return how;
}

Result<SearchResult> search(const SearchJobOptions& job, ElasticWork& work, SearchJournal& journal,
                            const JobControl& control) {
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work.folder.model, work.table));
  SearchOptions how = search_options(job, work, control, journal.known());
  how.progress = [&](const SearchProgress& p) {
    const std::string text =
        fmt::format("{} variants{}", p.evaluations,
                    p.best == nullptr ? "" : fmt::format("  best {:.2f} %", 100 * p.best->accuracy));
    control.progress(
        {"searching", static_cast<double>(p.evaluations) / std::max(1, p.max_evaluations), text});
  };
  const auto evaluate = [&](std::span<const Variant> variants) -> Result<std::vector<double>> {
    LIMBER_ASSIGN(auto accuracies, work.evaluate(variants, control));
    std::vector<Scored> scored;
    for (size_t i = 0; i < variants.size(); ++i)
      scored.push_back({variants[i], work.table.predict(variants[i]), accuracies[i]});
    LIMBER_TRY(journal.add(scored));
    return accuracies;
  };
  return search_variants(space, evaluate, how);
}

Status confirm(const SearchJobOptions& job, const ElasticWork& work, const SearchSpace& space,
               const std::vector<Scored>& all, double limit, SearchJournal& journal, SearchOutcome& outcome) {
  const SearchOptions how = search_options(job, work, {}, {});
  const Band band{.high = limit, .max_flops = how.max_flops, .max_parameter_bytes = how.max_parameter_bytes};
  std::vector<Scored> candidates;
  for (const Scored& one : all) {
    if (band.allows(space.cost(one.variant))) candidates.push_back(one);
  }
  return Confirmation(job, work, journal, outcome).run(std::move(candidates), limit);
}

// The best that is known for every twentieth of the original's latency.
std::vector<Scored> levels_of(const ElasticWork& work, const std::vector<Scored>& all) {
  constexpr int kLevels = 20;  // steps of 5 %: finer ones are within the noise of times
  std::vector<double> levels;
  for (int i = 1; i <= kLevels; ++i) levels.push_back(work.table.original() * i / kLevels);
  return pareto_front(best_per_level(all, levels));
}

int64_t parameter_count(const SearchSpace& space, const Variant& variant) {
  return static_cast<int64_t>(space.cost(variant).parameter_bytes / kParameterBytes);
}

// What is known of the original and of the best beside their times.
Status complete(const ElasticWork& work, const SearchSpace& space, const std::vector<Scored>& all,
                SearchOutcome& outcome) {
  LIMBER_ASSIGN(outcome.best_cost, cost_of(work.folder.model, outcome.best.variant));
  outcome.best_parameters = parameter_count(space, outcome.best.variant);
  outcome.original_parameters = parameter_count(space, outcome.original);
  outcome.front = levels_of(work, all);
  outcome.reuse_saving = work.runner->counts().saving();
  return {};
}

std::optional<double> limit(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

SearchRecord record_of(const SearchJobOptions& job, const ElasticWork& work, const SearchOutcome& outcome) {
  SearchRecord record{.judged = work.judgement(outcome.images), .limit_s = outcome.limit_s};
  if (job.latency == 0) record.latency_share = job.latency_share;
  record.margin = job.margin;
  record.evaluations = job.evaluations;
  record.max_params = limit(job.max_params);
  record.max_memory = limit(static_cast<double>(job.max_memory));
  record.max_flops = limit(job.max_flops);
  record.variant = print(outcome.model, outcome.best.variant);
  record.within = outcome.within;
  record.predicted_s = outcome.best.seconds;
  record.measured_s = outcome.best_s;
  record.accuracy = outcome.best.accuracy;
  record.original_s = outcome.original_s;
  record.original_accuracy = outcome.original_accuracy;
  record.evaluated = static_cast<int64_t>(outcome.evaluated);
  record.known = static_cast<int64_t>(outcome.known);
  record.seconds = outcome.seconds;
  return record;
}

}  // namespace

Status check(const SearchJobOptions& job) {
  const auto at_least_0 = [](double value) { return value >= 0 && std::isfinite(value); };
  if (!at_least_0(job.latency)) return invalid("latency is {}; expected seconds above 0", job.latency);
  if (!(job.latency_share >= 0 && job.latency_share <= 1))
    return invalid("latency_share is {}; expected a share above 0 and at most 1", job.latency_share);
  if (job.latency == 0 && job.latency_share == 0)
    return invalid("latency is missing: a share of the original's, as in 60%, or a time, as in 12ms");
  if (!(job.margin >= 0 && job.margin < 1))
    return invalid("margin is {}; expected a share of the latency from 0 to less than 1", job.margin);
  if (job.evaluations < 1) return invalid("evaluations is {}; expected 1 or more", job.evaluations);
  if (!at_least_0(job.max_params)) return invalid("max_params is {}; expected 0 or more", job.max_params);
  if (!at_least_0(job.max_flops)) return invalid("max_flops is {}; expected 0 or more", job.max_flops);
  LIMBER_TRY(check(job.source));
  return check_folder(job.model);
}

Result<SearchOutcome> find_variant(const SearchJobOptions& job, ElasticWork& work,
                                   const JobControl& control) {
  const double start = now_seconds();
  LIMBER_ASSIGN(const auto journal, SearchJournal::open(work));
  LIMBER_ASSIGN(const std::string refused, journal->refused());
  if (!refused.empty()) control.note(NoteKind::kWarning, refused);
  SearchOutcome outcome{.folder = work.folder.path, .images = work.judged};
  outcome.model = work.folder.model;
  outcome.original = original_variant(work.folder.model);
  LIMBER_ASSIGN(const auto accuracy, work.evaluate(std::span(&outcome.original, 1), control));
  outcome.original_accuracy = accuracy[0];
  LIMBER_ASSIGN(const SearchResult result, search(job, work, *journal, control));
  outcome.evaluated = result.evaluated.size();
  outcome.known = journal->known().size();
  outcome.stopped = result.stopped;
  if (result.stopped) return outcome;
  std::vector<Scored> all = journal->known();
  all.insert(all.end(), result.evaluated.begin(), result.evaluated.end());
  outcome.evaluation_s = now_seconds() - start;
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work.folder.model, work.table));
  LIMBER_TRY(confirm(job, work, space, all, result.limit, *journal, outcome));
  LIMBER_ASSIGN(const uint64_t memory, work.memory_of(outcome.original));
  const Scored original{outcome.original, work.table.predict(outcome.original), outcome.original_accuracy};
  LIMBER_TRY(journal->add_measured(original, outcome.original_s, memory));
  outcome.confirmation_s = now_seconds() - start - outcome.evaluation_s;
  LIMBER_TRY(complete(work, space, all, outcome));
  outcome.seconds = now_seconds() - start;
  return outcome;
}

Result<SearchOutcome> run_search(const SearchJobOptions& job, const JobControl& control) {
  const double start = now_seconds();
  LIMBER_TRY(check(job));
  LIMBER_ASSIGN(const auto work, open_elastic(job));
  LIMBER_TRY(load_images(*work, job.source, job, control));
  const double loaded = now_seconds();
  LIMBER_ASSIGN(work->table,
                time_blocks(work->folder.model, work->backends, work->threads, "timing blocks", control));
  const double timed = now_seconds();
  LIMBER_ASSIGN(SearchOutcome outcome, find_variant(job, *work, control));
  if (outcome.stopped) return outcome;
  outcome.seconds = now_seconds() - start;
  SearchRecord record = record_of(job, *work, outcome);
  record.parts = {{"loading", loaded - start},
                  {"timing", timed - loaded},
                  {"evaluation", outcome.evaluation_s},
                  {"confirmation", outcome.confirmation_s}};
  LIMBER_TRY(append_history(work->folder.path, record_line(record)));
  return outcome;
}

}  // namespace limber
