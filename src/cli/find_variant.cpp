#include "cli/find_variant.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "cli/progress.h"
#include "cli/search_journal.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "supernet/teach/tune.h"

namespace limber {
namespace {

// What the command line asks of the library. Of the variants to try those count that are known already.
SearchOptions make_options(const SearchCommand& options, const SearchWork& work,
                           const std::vector<Scored>& known) {
  SearchOptions how = options.search;
  how.seed = options.seed;
  how.stop = &stop_asked();
  how.known = known;
  how.seeds = tuned_variants(work.folder.model, work.folder.info);
  if (options.method == "annealing") how.method = SearchMethod::kAnnealing;
  how.max_parameter_bytes = kParameterBytes * options.max_params;
  const auto memory = static_cast<double>(options.max_memory);
  if (memory > 0 && (how.max_parameter_bytes == 0 || memory < how.max_parameter_bytes))
    how.max_parameter_bytes = memory;
  // A share of the sum of the original's blocks, as predictions are sums too: what a busy machine did to the
  // one it did to the others. Confirmation goes by the original as it is measured then.
  if (how.latency <= 0) how.latency = how.latency_share * work.table.original();
  how.latency *= 1 - options.margin;
  const auto there = std::count_if(known.begin(), known.end(), [&](const Scored& one) {
    return one.seconds <= how.latency && one.seconds >= how.nearby * how.latency;
  });
  how.max_evaluations = std::max(1, how.max_evaluations - static_cast<int>(there));
  return how;
}

Result<SearchResult> search(const SearchCommand& options, SearchWork& work, SearchJournal& journal) {
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work.folder.model, work.table));
  ProgressLine line;
  SearchOptions how = make_options(options, work, journal.known());
  how.progress = [&](const SearchProgress& p) {
    const double share = static_cast<double>(p.evaluations) / std::max(1, p.max_evaluations);
    line.show(fmt::format("searching {} {} variants{}", progress_bar(share), p.evaluations,
                          p.best == nullptr ? "" : fmt::format("  best {:.2f} %", 100 * p.best->accuracy)));
  };
  const auto evaluate = [&](std::span<const Variant> variants) -> Result<std::vector<double>> {
    LIMBER_ASSIGN(auto accuracies, work.evaluate(variants));
    std::vector<Scored> scored;
    for (size_t i = 0; i < variants.size(); ++i)
      scored.push_back({variants[i], work.table.predict(variants[i]), accuracies[i]});
    LIMBER_TRY(journal.add(scored));
    return accuracies;
  };
  auto result = search_variants(space, evaluate, how);
  line.clear();
  return result;
}

// Goes through variants, the best first, for the first that keeps all limits when it is compiled and timed as
// a whole: predictions are sums, and machines change.
class Confirmation {
 public:
  Confirmation(const SearchCommand& options, const SearchWork& work, SearchJournal& journal,
               SearchOutcome& outcome)
      : options_(options),
        work_(work),
        journal_(journal),
        outcome_(outcome),
        tuned_(tuned_variants(work.folder.model, work.folder.info)) {}

  Status run(std::vector<Scored> candidates, double predicted_limit) {
    predicted_limit_ = predicted_limit;
    std::stable_sort(candidates.begin(), candidates.end(), [this](const Scored& a, const Scored& b) {
      return std::pair(-standing(a), a.seconds) < std::pair(-standing(b), b.seconds);
    });
    for (int i = 0; i < kRounds && !outcome_.within && !candidates.empty(); ++i) {
      LIMBER_ASSIGN(const auto some, take(candidates));
      if (!some.empty()) LIMBER_TRY(time(some));
    }
    if (outcome_.best_s > 0) return {};
    return invalid("none of {} variants needs {} or less; the least is {}: allow more with --max-memory",
                   outcome_.all.size(), show_bytes(static_cast<double>(options_.max_memory)),
                   show_bytes(static_cast<double>(least_memory_)));
  }

 private:
  static constexpr int kRounds = 5;
  static constexpr size_t kAtOnce = 4;

  // The best of many on few images is the best by luck, too: what was tuned as a whole is the better bet
  // unless another is better by more than the standard error.
  double standing(const Scored& one) const {
    if (std::find(tuned_.begin(), tuned_.end(), one.variant) == tuned_.end()) return one.accuracy;
    const auto images = static_cast<double>(std::max<int64_t>(1, work_.images.count()));
    return one.accuracy + std::sqrt(one.accuracy * (1 - one.accuracy) / images);
  }

  // The next few that should keep the limit, by what is known of predictions; when none should, the fastest.
  Result<std::vector<Scored>> take(std::vector<Scored>& candidates) {
    std::vector<Scored> some, rest;
    const double limit = predicted_limit_ / slowness_;
    for (Scored& one : candidates) {
      bool fits = some.size() < kAtOnce && one.seconds <= limit;
      if (fits && options_.max_memory > 0) {
        LIMBER_ASSIGN(fits, fits_memory(one.variant));
        if (!fits) continue;
      }
      (fits ? some : rest).push_back(std::move(one));
    }
    candidates = std::move(rest);
    if (some.empty() && !candidates.empty()) {
      const auto fastest =
          std::min_element(candidates.begin(), candidates.end(),
                           [](const Scored& a, const Scored& b) { return a.seconds < b.seconds; });
      LIMBER_ASSIGN(const bool fits, fits_memory(fastest->variant));
      if (fits) some.push_back(std::move(*fastest));
      candidates.erase(fastest);
    }
    return some;
  }

  Result<bool> fits_memory(const Variant& variant) {
    if (options_.max_memory == 0) return true;
    LIMBER_ASSIGN(const uint64_t bytes, work_.memory_of(variant));
    least_memory_ = std::min(least_memory_, bytes);
    return bytes <= options_.max_memory;
  }

  Status time(const std::vector<Scored>& some) {
    std::vector<Variant> variants = {original_variant(work_.folder.model)};
    for (const Scored& one : some) variants.push_back(one.variant);
    LIMBER_ASSIGN(const auto seconds, measure_variants(work_.folder.model, variants, work_.backends,
                                                       {.threads = work_.threads, .seconds = 0.2}));
    const SearchOptions& asked = options_.search;
    outcome_.original_s = seconds[0];
    outcome_.limit_s = asked.latency > 0 ? asked.latency : asked.latency_share * seconds[0];
    const double aim = (1 - options_.margin) * outcome_.limit_s;
    for (size_t i = 0; i < some.size(); ++i) {
      const double taken = seconds[i + 1];
      slowness_ = std::max(slowness_, taken / aim * predicted_limit_ / some[i].seconds);
      LIMBER_ASSIGN(const uint64_t memory, work_.memory_of(some[i].variant));
      LIMBER_TRY(journal_.add_measured(some[i], taken, memory));
      const bool within = taken <= aim;
      const bool better = outcome_.best_s == 0 || (!outcome_.within && (within || taken < outcome_.best_s));
      if (!better) continue;
      outcome_.within = within;
      outcome_.best = some[i];
      outcome_.best_s = taken;
      outcome_.best_memory = memory;
    }
    return {};
  }

  const SearchCommand& options_;
  const SearchWork& work_;
  SearchJournal& journal_;
  SearchOutcome& outcome_;
  const std::vector<Variant> tuned_;
  double predicted_limit_ = 0;
  double slowness_ = 1;  // how far above its prediction a variant was, at most; in units of the limit
  uint64_t least_memory_ = UINT64_MAX;
};

Status confirm(const SearchCommand& options, const SearchWork& work, double limit, SearchJournal& journal,
               SearchOutcome& outcome) {
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work.folder.model, work.table));
  const SearchOptions how = make_options(options, work, {});
  const Band band{.high = limit, .max_flops = how.max_flops, .max_parameter_bytes = how.max_parameter_bytes};
  std::vector<Scored> candidates;
  for (const Scored& one : outcome.all) {
    if (band.allows(space.cost(one.variant))) candidates.push_back(one);
  }
  return Confirmation(options, work, journal, outcome).run(std::move(candidates), limit);
}

}  // namespace

Result<SearchOutcome> find_variant(const SearchCommand& options, SearchWork& work) {
  const double start = now_seconds();
  LIMBER_ASSIGN(const auto journal, SearchJournal::open(work));
  SearchOutcome outcome;
  const Variant original = original_variant(work.folder.model);
  LIMBER_ASSIGN(const auto accuracy, work.evaluate(std::span(&original, 1)));
  outcome.original_accuracy = accuracy[0];
  LIMBER_ASSIGN(const SearchResult result, search(options, work, *journal));
  outcome.evaluated = result.evaluated.size();
  outcome.stopped = result.stopped;
  if (result.stopped) return outcome;
  outcome.all = journal->known();
  outcome.all.insert(outcome.all.end(), result.evaluated.begin(), result.evaluated.end());
  outcome.evaluation_s = now_seconds() - start;
  LIMBER_TRY(confirm(options, work, result.limit, *journal, outcome));
  LIMBER_ASSIGN(const uint64_t memory, work.memory_of(original));
  LIMBER_TRY(journal->add_measured({original, work.table.predict(original), outcome.original_accuracy},
                                   outcome.original_s, memory));
  outcome.confirmation_s = now_seconds() - start - outcome.evaluation_s;
  return outcome;
}

}  // namespace limber
