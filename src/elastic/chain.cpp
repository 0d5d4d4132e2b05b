#include "elastic/chain.h"

#include <algorithm>
#include <limits>

#include "base/status.h"

namespace limber {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// With the farthest tensor fixed, what is left is a plain knapsack over the tensors nearer the loss; one
// table that grows by a tensor at a time serves every farthest tensor.
class ChainSolver {
 public:
  ChainSolver(std::span<const ChainTensor> tensors, int64_t budget)
      : tensors_(tensors),
        width_(static_cast<size_t>(std::max<int64_t>(budget, 0)) + 1),
        best_(width_, 0.0),
        next_(width_),
        taken_(tensors.size() * width_) {
    for (size_t k = 0; k < tensors.size(); ++k) {
      if (tensors[k].forced) last_forced_ = static_cast<int64_t>(k);
    }
    asked_.assign(tensors.size() + 1, 0);
    for (size_t k = tensors.size(); k-- > 0;)
      asked_[k] = std::max(asked_[k + 1], static_cast<size_t>(std::max<int64_t>(room_before(k) + 1, 0)));
  }

  ChainChoice solve() {
    double value = last_forced_ < 0 ? 0.0 : kImpossible;
    int64_t farthest = -1;
    for (size_t k = 0; k < tensors_.size(); ++k) {
      const double here = value_with_farthest(k);
      if (here > value) {
        value = here;
        farthest = static_cast<int64_t>(k);
      }
      add(k);
    }
    ChainChoice choice{std::vector<bool>(tensors_.size(), false), 0, 0, value != kImpossible};
    if (farthest >= 0) trace(static_cast<size_t>(farthest), choice);
    return choice;
  }

 private:
  int64_t room_before(size_t k) const {
    return static_cast<int64_t>(width_) - 1 - tensors_[k].reach - tensors_[k].own;
  }

  double value_with_farthest(size_t k) const {
    if (static_cast<int64_t>(k) < last_forced_ || room_before(k) < 0) return kImpossible;
    return best_[static_cast<size_t>(room_before(k))] + tensors_[k].importance - tensors_[k].depth_penalty;
  }

  // best_[t]: the most importance that tensors before k have in time t, for every t that is still asked for.
  void add(size_t k) {
    const ChainTensor& tensor = tensors_[k];
    if (tensor.importance <= 0 && !tensor.forced) return;
    uint8_t* const taken = &taken_[k * width_];
    const size_t width = asked_[k + 1], own = std::min(static_cast<size_t>(tensor.own), width);
    for (size_t t = 0; t < own; ++t) next_[t] = tensor.forced ? kImpossible : best_[t];
    for (size_t t = own; t < width; ++t) {
      const double with = best_[t - own] + tensor.importance;
      const bool take = tensor.forced || with > best_[t];
      next_[t] = take ? with : best_[t];
      taken[t] = take ? 1 : 0;
    }
    best_.swap(next_);
  }

  void trace(size_t farthest, ChainChoice& choice) const {
    const ChainTensor& last = tensors_[farthest];
    auto t = static_cast<size_t>(room_before(farthest));
    choice.chosen[farthest] = true;
    choice.value = last.importance - last.depth_penalty;
    choice.time = last.reach + last.own;
    for (size_t k = farthest; k-- > 0;) {
      if (taken_[k * width_ + t] == 0) continue;
      choice.chosen[k] = true;
      choice.value += tensors_[k].importance;
      choice.time += tensors_[k].own;
      t -= static_cast<size_t>(tensors_[k].own);
    }
  }

  const std::span<const ChainTensor> tensors_;
  const size_t width_;
  std::vector<double> best_, next_;
  std::vector<uint8_t> taken_;  // by tensor and time
  std::vector<size_t> asked_;   // by tensor: times below this are asked for by it or a farther one
  int64_t last_forced_ = -1;
};

}  // namespace

ChainChoice choose_on_chain(std::span<const ChainTensor> tensors, int64_t budget) {
  for (const ChainTensor& tensor : tensors) LIMBER_ASSERT(tensor.reach >= 0 && tensor.own >= 0);
  return ChainSolver(tensors, budget).solve();
}

}  // namespace limber
