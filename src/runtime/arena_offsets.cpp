#include "runtime/arena_offsets.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace limber {
namespace {

size_t aligned(size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

size_t largest_live_set(std::span<const Lifetime> lifetimes) {
  int last = 0;
  for (const Lifetime& l : lifetimes) last = std::max(last, l.last);
  std::vector<ptrdiff_t> change(static_cast<size_t>(last) + 2, 0);
  for (const Lifetime& l : lifetimes) {
    change[static_cast<size_t>(l.first)] += static_cast<ptrdiff_t>(aligned(l.bytes));
    change[static_cast<size_t>(l.last) + 1] -= static_cast<ptrdiff_t>(aligned(l.bytes));
  }
  ptrdiff_t live = 0, most = 0;
  for (ptrdiff_t c : change) most = std::max(most, live += c);
  return static_cast<size_t>(most);
}

// Places buffers one by one in the given order, each into the smallest gap that fits between those
// already placed that it overlaps in time.
class Placer {
 public:
  explicit Placer(std::span<const Lifetime> lifetimes) : lifetimes_(lifetimes) {
    const size_t n = lifetimes.size();
    neighbours_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        if (i != j && overlap(lifetimes[i], lifetimes[j])) neighbours_[i].push_back(j);
      }
    }
  }

  size_t place(std::span<const size_t> order, std::vector<size_t>& offsets) {
    constexpr size_t kUnplaced = SIZE_MAX;
    offsets.assign(lifetimes_.size(), kUnplaced);
    size_t total = 0;
    for (size_t i : order) {
      busy_.clear();
      for (size_t j : neighbours_[i]) {
        if (offsets[j] != kUnplaced) busy_.push_back({offsets[j], offsets[j] + aligned(lifetimes_[j].bytes)});
      }
      std::sort(busy_.begin(), busy_.end());
      offsets[i] = best_gap(aligned(lifetimes_[i].bytes));
      total = std::max(total, offsets[i] + aligned(lifetimes_[i].bytes));
    }
    return total;
  }

 private:
  size_t best_gap(size_t bytes) const {
    size_t end = 0, best = SIZE_MAX, best_size = SIZE_MAX;
    for (const auto& [start, stop] : busy_) {
      if (start > end && start - end >= bytes && start - end < best_size) {
        best = end;
        best_size = start - end;
      }
      end = std::max(end, stop);
    }
    return best == SIZE_MAX ? end : best;
  }

  std::span<const Lifetime> lifetimes_;
  std::vector<std::vector<size_t>> neighbours_;
  std::vector<std::pair<size_t, size_t>> busy_;
};

template <typename Less>
std::vector<size_t> ordered(std::span<const Lifetime> lifetimes, Less less) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return less(lifetimes[a], lifetimes[b]); });
  return order;
}

}  // namespace

ArenaOffsets place_in_arena(std::span<const Lifetime> lifetimes) {
  ArenaOffsets best;
  best.live_bytes = largest_live_set(lifetimes);
  best.bytes = SIZE_MAX;
  Placer placer(lifetimes);
  std::vector<size_t> best_order, offsets;
  const auto attempt = [&](const std::vector<size_t>& order) {
    const size_t bytes = placer.place(order, offsets);
    if (bytes > best.bytes) return;
    best.bytes = bytes;
    best.offsets = offsets;
    best_order = order;
  };
  // Position in the order of the buffer that reaches highest.
  const auto topmost = [&](const std::vector<size_t>& order) {
    size_t top = 0;
    const auto end_of = [&](size_t i) { return best.offsets[i] + aligned(lifetimes[i].bytes); };
    for (size_t i = 1; i < order.size(); ++i) {
      if (end_of(order[i]) > end_of(order[top])) top = i;
    }
    return top;
  };
  attempt(ordered(lifetimes, [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; }));
  attempt(ordered(lifetimes,
                  [](const Lifetime& a, const Lifetime& b) { return a.last - a.first > b.last - b.first; }));
  attempt(ordered(lifetimes, [](const Lifetime& a, const Lifetime& b) { return a.first < b.first; }));

  // A buffer that sticks out at the top is tried earlier in the order, where more gaps are open; equal
  // results are accepted too, to move along plateaus. Bounded, so that large graphs still compile fast: a try
  // takes time in proportion to the buffers. Within one percent of the least is good enough.
  Random random(1);
  const size_t tries = lifetimes.size() < 2 ? 0 : std::min<size_t>(20'000, 2'000'000 / lifetimes.size());
  for (size_t t = 0; t < tries && best.bytes > best.live_bytes + best.live_bytes / 100; ++t) {
    std::vector<size_t> order = best_order;
    const size_t from = random.below(2) == 0 ? topmost(order) : random.below(order.size());
    const size_t to = random.below(from + 1);
    std::rotate(order.begin() + static_cast<ptrdiff_t>(to), order.begin() + static_cast<ptrdiff_t>(from),
                order.begin() + static_cast<ptrdiff_t>(from) + 1);
    attempt(order);
  }
  if (lifetimes.empty()) best.bytes = 0;
  return best;
}

}  // namespace limber
