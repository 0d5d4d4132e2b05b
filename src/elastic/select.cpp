#include "elastic/select.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "elastic/chain.h"

namespace limber {
namespace {

// Units of time in the budget: rounding a hundred tensors is off by 1 % of it at the worst, and the graph,
// not the rounded sum, has the last word.
constexpr int64_t kResolution = 10'000;
constexpr int kMaxRounds = 12;  // solutions the graph may refuse before the cheapest is taken

bool is_set(const TensorMask& mask, size_t k) { return k < mask.size() && mask[k]; }

class Selector {
 public:
  Selector(const StepCosts& costs, const SelectionRequest& request)
      : costs_(costs), request_(request), chain_(costs.chain()), tensors_(costs.tensors().size()) {
    LIMBER_ASSERT(request.importance.size() == tensors_);
    for (size_t k = 0; k < tensors_; ++k) {
      TensorMask alone(tensors_, false);
      alone[k] = true;
      kept_.push_back(costs.kept_bytes(alone));
    }
  }

  Selection run_by_rate() const {
    TensorMask all(tensors_, true);
    for (size_t k = 0; k < tensors_; ++k) all[k] = !is_set(request_.never, k);
    Selection best = describe(all);
    if (costs_.kept_bytes(best.mask) > request_.kept_bytes) best = cheapest();
    for (int round = 0; round < kMaxRounds; ++round) {
      const double price = best.importance / best.seconds;
      Selection next = best;
      for (size_t depth = 0; depth < tensors_; ++depth) {
        const Selection one = describe(paying(depth, price));
        if (one.importance / one.seconds <= next.importance / next.seconds) continue;
        if (costs_.kept_bytes(one.mask) <= request_.kept_bytes) next = one;
      }
      if (next.mask == best.mask) break;
      best = next;
    }
    return best;
  }

  Selection run() {
    Selection best = within_time(0);
    if (costs_.kept_bytes(best.mask) > request_.kept_bytes) best = within_memory();
    if (best.within) fill(best);
    return best;
  }

 private:
  // The best choice in time when a byte that is kept costs `price` of importance.
  Selection within_time(double price) const {
    double seconds = request_.seconds;
    for (int round = 0; round < kMaxRounds; ++round) {
      const TensorMask mask = solve(seconds, price);
      if (std::find(mask.begin(), mask.end(), true) == mask.end()) break;
      const Selection found = describe(mask);
      if (found.seconds <= request_.seconds) return found;
      seconds -= found.seconds - request_.seconds;
    }
    return cheapest();
  }

  // Raises the price of memory until the choice fits, and then lowers it as far as it still does.
  Selection within_memory() const {
    double total = 0, low = 0;
    for (double importance : request_.importance) total += std::max(importance, 0.0);
    double high = std::max(total, 1e-30) / std::max(request_.kept_bytes, 1.0);
    Selection best = cheapest();
    for (int round = 0; round < 2 * kMaxRounds; ++round) {
      const double price = round == 0 ? high : std::sqrt(std::max(low, high * 1e-6) * high);
      const Selection found = within_time(price);
      const bool fits = found.within && costs_.kept_bytes(found.mask) <= request_.kept_bytes;
      if (fits && (!best.within || found.importance >= best.importance)) best = found;
      (fits ? high : low) = price;
      if (!fits && round == 0) break;
    }
    return best;
  }

  TensorMask solve(double seconds, double price) const {
    const double room = seconds - costs_.forward();
    TensorMask mask(tensors_, false);
    if (room <= 0) return mask;
    const auto ticks = [&](double time) {
      return static_cast<int64_t>(std::llround(time / room * static_cast<double>(kResolution)));
    };
    std::vector<ChainTensor> chain;
    std::vector<size_t> index;
    for (size_t k : chain_.order) {
      const bool forced = is_set(request_.always, k);
      const double importance = request_.importance[k];
      if (!forced && (is_set(request_.never, k) || !(importance > 0))) continue;
      // What stays in memory for the path is counted once, for the tensor farthest away.
      chain.push_back({ticks(chain_.reach[k]), ticks(chain_.own[k]), importance, price * kept_[k], forced});
      index.push_back(k);
    }
    const ChainChoice choice = choose_on_chain(chain, kResolution);
    for (size_t i = 0; i < index.size(); ++i) mask[index[i]] = choice.chosen[i];
    return mask;
  }

  // Of the tensors down to one, that one and those worth more than their time costs.
  TensorMask paying(size_t depth, double price) const {
    TensorMask mask(tensors_, false);
    for (size_t i = 0; i < tensors_; ++i) {
      const size_t k = chain_.order[i];
      const bool pays = i == depth || (i < depth && request_.importance[k] > price * chain_.own[k]);
      mask[k] = is_set(request_.always, k) || (pays && !is_set(request_.never, k));
    }
    if (std::find(mask.begin(), mask.end(), true) == mask.end()) mask = cheapest().mask;
    return mask;
  }

  Selection describe(const TensorMask& mask) const { return limber::describe(costs_, request_, mask); }

  // What is always trained or, when nothing is, the tensor that takes the least time.
  Selection cheapest() const {
    TensorMask mask(tensors_, false);
    for (size_t k = 0; k < tensors_; ++k) mask[k] = is_set(request_.always, k);
    Selection least = describe(mask);
    if (std::find(mask.begin(), mask.end(), true) == mask.end()) {
      least.seconds = std::numeric_limits<double>::infinity();
      for (size_t k = 0; k < tensors_; ++k) {
        if (is_set(request_.never, k)) continue;
        TensorMask alone(tensors_, false);
        alone[k] = true;
        if (const Selection one = describe(alone); one.seconds < least.seconds) least = one;
      }
    }
    least.within = least.seconds <= request_.seconds;
    return least;
  }

  // Adds what still fits, by importance for the time it takes in the graph.
  void fill(Selection& selection) const {
    for (;;) {
      size_t next = tensors_;
      double best = 0;
      Selection with = selection;
      for (size_t k = 0; k < tensors_; ++k) {
        if (selection.mask[k] || is_set(request_.never, k) || !(request_.importance[k] > 0)) continue;
        TensorMask mask = selection.mask;
        mask[k] = true;
        const Selection more = describe(mask);
        if (more.seconds > request_.seconds || costs_.kept_bytes(mask) > request_.kept_bytes) continue;
        const double density = request_.importance[k] / std::max(more.seconds - selection.seconds, 1e-9);
        if (density <= best) continue;
        best = density;
        next = k;
        with = more;
      }
      if (next == tensors_) return;
      selection = with;
    }
  }

  const StepCosts& costs_;
  const SelectionRequest& request_;
  const StepCosts::Chain chain_;
  const size_t tensors_;
  std::vector<double> kept_;  // bytes that training a tensor alone keeps
};

}  // namespace

Selection describe(const StepCosts& costs, const SelectionRequest& request, const TensorMask& mask) {
  Selection found{mask, costs.predict(mask)};
  found.share = found.seconds / costs.full();
  for (size_t k = 0; k < mask.size(); ++k) found.importance += mask[k] ? request.importance[k] : 0;
  return found;
}

Selection select_tensors(const StepCosts& costs, const SelectionRequest& request) {
  return Selector(costs, request).run();
}

Selection select_by_rate(const StepCosts& costs, const SelectionRequest& request) {
  return Selector(costs, request).run_by_rate();
}

TensorMask reachable_tensors(const StepCosts& costs, double seconds) {
  const StepCosts::Chain chain = costs.chain();
  TensorMask mask(costs.tensors().size(), false);
  for (size_t k = 0; k < mask.size(); ++k)
    mask[k] = costs.forward() + chain.reach[k] + chain.own[k] <= seconds;
  return mask;
}

}  // namespace limber
