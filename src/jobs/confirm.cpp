#include "jobs/confirm.h"

#include <algorithm>
#include <cmath>

#include "base/show.h"
#include "supernet/teach/tune.h"

namespace limber {
namespace {

constexpr int kRounds = 5;     // of timing: the best that predictions promise rarely miss the limit so often
constexpr size_t kAtOnce = 4;  // variants that are timed in turns with the original
constexpr double kSeconds = 0.2;  // of timing each

}  // namespace

Confirmation::Confirmation(const SearchJobOptions& job, const ElasticWork& work, SearchJournal& journal,
                           SearchOutcome& outcome)
    : job_(job),
      work_(work),
      journal_(journal),
      outcome_(outcome),
      tuned_(tuned_variants(work.folder.model, work.folder.info)) {}

Status Confirmation::run(std::vector<Scored> candidates, double predicted_limit) {
  predicted_limit_ = predicted_limit;
  const size_t all = candidates.size();
  std::stable_sort(candidates.begin(), candidates.end(), [this](const Scored& a, const Scored& b) {
    return std::pair(-standing(a), a.seconds) < std::pair(-standing(b), b.seconds);
  });
  for (int i = 0; i < kRounds && !outcome_.within && !candidates.empty(); ++i) {
    LIMBER_ASSIGN(const auto some, take(candidates));
    if (!some.empty()) LIMBER_TRY(time(some));
  }
  if (outcome_.best_s > 0) return {};
  return invalid("none of {} variants needs {} or less; the least is {}: allow more (max_memory)", all,
                 show_bytes(static_cast<double>(job_.max_memory)),
                 show_bytes(static_cast<double>(least_memory_)));
}

// The best of many on few images is the best by luck, too: what was tuned as a whole is the better bet
// unless another is better by more than the standard error.
double Confirmation::standing(const Scored& one) const {
  if (std::find(tuned_.begin(), tuned_.end(), one.variant) == tuned_.end()) return one.accuracy;
  const auto images = static_cast<double>(std::max<int64_t>(1, work_.images.count()));
  return one.accuracy + std::sqrt(one.accuracy * (1 - one.accuracy) / images);
}

// The next few that should keep the limit, by what is known of predictions; when none should, the fastest.
Result<std::vector<Scored>> Confirmation::take(std::vector<Scored>& candidates) {
  std::vector<Scored> some, rest;
  const double limit = predicted_limit_ / slowness_;
  for (Scored& one : candidates) {
    bool fits = some.size() < kAtOnce && one.seconds <= limit;
    if (fits && job_.max_memory > 0) {
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

Result<bool> Confirmation::fits_memory(const Variant& variant) {
  if (job_.max_memory == 0) return true;
  LIMBER_ASSIGN(const uint64_t bytes, work_.memory_of(variant));
  least_memory_ = std::min(least_memory_, bytes);
  return bytes <= job_.max_memory;
}

Status Confirmation::time(const std::vector<Scored>& some) {
  std::vector<Variant> variants = {original_variant(work_.folder.model)};
  for (const Scored& one : some) variants.push_back(one.variant);
  LIMBER_ASSIGN(const auto seconds, measure_variants(work_.folder.model, variants, work_.backends,
                                                     {.threads = work_.threads, .seconds = kSeconds}));
  outcome_.original_s = seconds[0];
  outcome_.limit_s = job_.latency > 0 ? job_.latency : job_.latency_share * seconds[0];
  const double aim = (1 - job_.margin) * outcome_.limit_s;
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

}  // namespace limber
