#include "device/load_index.h"

#include <gtest/gtest.h>

#include <cmath>

namespace limber {
namespace {

TEST(LoadIndex, WeighsWhatThereIs) {
  DeviceSample sample;
  EXPECT_FALSE(load_index(sample));
  sample.memory_used = 0.4;
  EXPECT_DOUBLE_EQ(load_index(sample).value(), 0.4);
  sample.cpu_busy = 0.8;
  EXPECT_DOUBLE_EQ(load_index(sample).value(), (3 * 0.8 + 0.4) / 4) << "a machine without a GPU";
  sample.gpu_busy = 0;
  EXPECT_DOUBLE_EQ(load_index(sample).value(), (3 * 0.8 + 0.4) / 7) << "one with an idle GPU";
  EXPECT_DOUBLE_EQ(load_index(sample, LoadOf::kEverybody, {.cpu = 1, .gpu = 1, .memory = 0}).value(), 0.4);
}

TEST(LoadIndex, OwnWorkIsNoNeighbour) {
  DeviceSample sample;
  sample.cpu_busy = 1;
  sample.cpu_own = 0.75;
  sample.cpu_others = 0.25;
  EXPECT_DOUBLE_EQ(load_index(sample).value(), 1);
  EXPECT_DOUBLE_EQ(load_index(sample, LoadOf::kOthers).value(), 0.25);
  sample.cpu_others.reset();
  EXPECT_FALSE(load_index(sample, LoadOf::kOthers)) << "not told: not guessed";
}

TEST(LoadIndex, AQuotaThatIsUsedUpIsAFullMachine) {
  DeviceSample sample;
  sample.cpu_busy = 0.03;  // of 64 cores
  sample.quota_used = 1;   // of 2
  EXPECT_DOUBLE_EQ(load_index(sample).value(), 1);
  sample.cpu_busy.reset();
  EXPECT_DOUBLE_EQ(load_index(sample).value(), 1);
}

TEST(LoadIndex, NamesWeightsThatMakeNoSense) {
  EXPECT_EQ(LoadWeights().problem(), "");
  EXPECT_NE((LoadWeights{.cpu = -1}.problem()), "");
  EXPECT_NE((LoadWeights{.gpu = std::nan("")}.problem()), "");
  EXPECT_NE((LoadWeights{.cpu = 0, .gpu = 0, .memory = 0}.problem()), "");
}

}  // namespace
}  // namespace limber
