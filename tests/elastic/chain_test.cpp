#include "elastic/chain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace limber {
namespace {

struct Outcome {
  double value = 0;
  bool feasible = false;
};

int64_t time_of(const std::vector<ChainTensor>& tensors, uint32_t set) {
  int64_t time = 0, reach = 0;
  for (size_t k = 0; k < tensors.size(); ++k) {
    if ((set >> k & 1) == 0) continue;
    time += tensors[k].own;
    reach = tensors[k].reach;
  }
  return time + reach;
}

double value_of(const std::vector<ChainTensor>& tensors, uint32_t set) {
  double value = 0, penalty = 0;
  for (size_t k = 0; k < tensors.size(); ++k) {
    if ((set >> k & 1) == 0) continue;
    value += tensors[k].importance;
    penalty = tensors[k].depth_penalty;
  }
  return value - penalty;
}

// Every subset.
Outcome brute_force(const std::vector<ChainTensor>& tensors, int64_t budget) {
  Outcome best;
  for (uint32_t set = 0; set < uint32_t{1} << tensors.size(); ++set) {
    bool allowed = time_of(tensors, set) <= budget;
    for (size_t k = 0; k < tensors.size(); ++k)
      allowed = allowed && (!tensors[k].forced || (set >> k & 1) != 0);
    if (!allowed) continue;
    const double value = value_of(tensors, set);
    if (!best.feasible || value > best.value) best.value = value;
    best.feasible = true;
  }
  return best;
}

uint32_t set_of(const ChainChoice& choice) {
  uint32_t set = 0;
  for (size_t k = 0; k < choice.chosen.size(); ++k) set |= choice.chosen[k] ? uint32_t{1} << k : 0U;
  return set;
}

std::vector<ChainTensor> random_chain(Random& random) {
  std::vector<ChainTensor> tensors(1 + random.below(16));
  const bool penalties = random.below(3) == 0, forces = random.below(4) == 0;
  int64_t reach = 0;
  for (ChainTensor& tensor : tensors) {
    reach += static_cast<int64_t>(random.below(4));                                        // often zero
    tensor.reach = random.below(8) == 0 ? static_cast<int64_t>(random.below(20)) : reach;  // not a chain
    tensor.own = static_cast<int64_t>(random.below(9));
    tensor.importance = static_cast<double>(random.below(12)) - 3;  // ties, zeros and negative ones
    if (penalties) tensor.depth_penalty = static_cast<double>(random.below(4));
    tensor.forced = forces && random.below(6) == 0;
  }
  return tensors;
}

TEST(Chain, EqualsBruteForce) {
  Random random(7);
  for (int i = 0; i < 5000; ++i) {
    const std::vector<ChainTensor> tensors = random_chain(random);
    const auto budget = static_cast<int64_t>(random.below(60));
    const Outcome want = brute_force(tensors, budget);
    const ChainChoice choice = choose_on_chain(tensors, budget);
    ASSERT_EQ(choice.feasible, want.feasible) << "case " << i;
    if (!want.feasible) continue;
    ASSERT_EQ(choice.value, want.value) << "case " << i;
    const uint32_t set = set_of(choice);
    ASSERT_EQ(choice.time, time_of(tensors, set)) << "case " << i;
    ASSERT_EQ(choice.value, value_of(tensors, set)) << "case " << i;
    ASSERT_LE(choice.time, budget) << "case " << i;
  }
}

// The example in the repository of ElasticTrainer's authors, nearest the loss first: t_dy = 0 2 1 4 0,
// t_dw = 5 1 7 3 1, importance 1 3 10 5 3, and 0.6 of the backward time. All 32 subsets say that tensors 2, 3
// and 4 are best, worth 18 in a time of 14 out of 14.4.
TEST(Chain, ExampleOfTheAuthors) {
  const std::vector<int64_t> dy = {0, 2, 1, 4, 0}, dw = {5, 1, 7, 3, 1};
  const std::vector<double> importance = {1, 3, 10, 5, 3};
  std::vector<ChainTensor> tensors;
  int64_t reach = 0, total = 0;
  for (size_t k = 0; k < dy.size(); ++k) {
    tensors.push_back({reach, dw[k], importance[k]});
    reach += dy[k];
    total += dy[k] + dw[k];
  }
  const auto budget = static_cast<int64_t>(std::floor(0.6 * static_cast<double>(total)));
  const ChainChoice choice = choose_on_chain(tensors, budget);
  EXPECT_EQ(choice.chosen, (std::vector<bool>{false, true, true, true, false}));
  EXPECT_EQ(choice.value, 18);
  EXPECT_EQ(choice.time, 14);
  EXPECT_EQ(brute_force(tensors, budget).value, 18);
}

TEST(Chain, NothingFitsOrThereIsNothing) {
  EXPECT_TRUE(choose_on_chain({}, 10).feasible);
  const std::vector<ChainTensor> tensors = {{5, 1, 1}};
  EXPECT_EQ(choose_on_chain(tensors, 5).chosen, std::vector<bool>{false});
  EXPECT_EQ(choose_on_chain(tensors, -3).chosen, std::vector<bool>{false});
  const std::vector<ChainTensor> forced = {{5, 1, 1, 0, true}};
  EXPECT_FALSE(choose_on_chain(forced, 5).feasible);
  EXPECT_TRUE(choose_on_chain(forced, 6).feasible);
}

}  // namespace
}  // namespace limber
