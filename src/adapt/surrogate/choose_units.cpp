#include "adapt/surrogate/choose_units.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/channel_rank.h"

namespace limber::adapt {
namespace {

// The nearest number of whole blocks; at least one, at most all units.
int64_t in_blocks(double units, int64_t block, int64_t all) {
  const int64_t blocks = std::max<int64_t>(1, std::llround(units / static_cast<double>(block)));
  return std::min(all, blocks * block);
}

std::vector<int64_t> even_counts(const OperationCount& count, double share, int64_t block) {
  std::vector<int64_t> counts;
  for (const int64_t units : count.units())
    counts.push_back(in_blocks(share * static_cast<double>(units), block, units));
  return counts;
}

std::vector<int64_t> even_counts(const OperationCount& count, const UnitBudget& budget) {
  constexpr int kHalvings = 30;  // of the share: finer than one unit of any group
  const double limit = budget.operations * count.whole();
  if (count.at(even_counts(count, 1, budget.block)) <= limit) return even_counts(count, 1, budget.block);
  double low = 0, high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (count.at(even_counts(count, middle, budget.block)) <= limit ? low : high) = middle;
  }
  return even_counts(count, low, budget.block);
}

// Drops a block at a time, from the least relevant end of one of the groups.
class GlobalChoice {
 public:
  GlobalChoice(const OperationCount& count, const UnitRelevance& relevance, const UnitBudget& budget)
      : count_(count), budget_(budget), kept_(count.units()) {
    for (size_t g = 0; g < relevance.size(); ++g) {
      std::vector<double> ascending = relevance[g];
      std::sort(ascending.begin(), ascending.end());
      ascending_.push_back(std::move(ascending));
      const auto all = static_cast<double>(kept_[g]);
      least_.push_back(in_blocks(budget.least * all, budget.block, kept_[g]));
    }
  }

  std::vector<int64_t> run() {
    const double limit = budget_.operations * count_.whole();
    for (double now = count_.whole(); now > limit;) {
      size_t best = kept_.size();
      double price = std::numeric_limits<double>::infinity();
      for (size_t g = 0; g < kept_.size(); ++g) {
        const double p = price_of(g, now);
        if (p >= price) continue;
        price = p;
        best = g;
      }
      if (best == kept_.size()) break;  // every group is at its least
      kept_[best] -= step_of(best);
      now = count_.at(kept_);
    }
    return kept_;
  }

 private:
  // A group whose units are no whole number of blocks loses the odd ones first.
  int64_t step_of(size_t g) const {
    const int64_t odd = kept_[g] % budget_.block;
    return odd == 0 ? budget_.block : odd;
  }
  // Relevance that goes for each operation saved.
  double price_of(size_t g, double now) const {
    const int64_t step = step_of(g);
    if (kept_[g] - step < least_[g]) return std::numeric_limits<double>::infinity();
    double relevance = 0;
    const auto gone = static_cast<int64_t>(ascending_[g].size()) - kept_[g];
    for (int64_t i = gone; i < gone + step; ++i) relevance += ascending_[g][static_cast<size_t>(i)];
    std::vector<int64_t> fewer = kept_;
    fewer[g] -= step;
    const double saved = now - count_.at(fewer);
    return saved > 0 ? relevance / saved : std::numeric_limits<double>::infinity();
  }

  const OperationCount& count_;
  const UnitBudget& budget_;
  std::vector<std::vector<double>> ascending_;
  std::vector<int64_t> kept_, least_;
};

}  // namespace

std::vector<std::vector<int64_t>> choose_units(const OperationCount& count, const UnitRelevance& relevance,
                                               const UnitBudget& budget) {
  LIMBER_ASSERT(relevance.size() == count.units().size());
  const std::vector<int64_t> counts = budget.choice == UnitChoice::kEven
                                          ? even_counts(count, budget)
                                          : GlobalChoice(count, relevance, budget).run();
  std::vector<std::vector<int64_t>> kept;
  for (size_t g = 0; g < counts.size(); ++g)
    kept.push_back(best_units(relevance[g], static_cast<size_t>(counts[g])));
  return kept;
}

}  // namespace limber::adapt
