#include "device/energy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace limber {
namespace {

EnergyModel small() {
  return {.cpu_watts = 8,
          .cpu_flops = 1e9,
          .gpu_watts = 50,
          .gpu_flops = 1e12,
          .memory_watts = 2,
          .memory_bytes = 1e9,
          .hit_rate = 0.75,
          .idle_watts = 3};
}

TEST(Energy, IsTheFormula) {
  EXPECT_DOUBLE_EQ(small().joules(2e9, 0, 0), 2 * 8 * 0.75);
  EXPECT_DOUBLE_EQ(small().joules(0, 3e12, 0), 3 * 50);
  EXPECT_DOUBLE_EQ(small().joules(0, 0, 5e9), 5 * 2 * 0.25);
  EnergyModel without = small();
  without.gpu_flops = 0;
  EXPECT_DOUBLE_EQ(without.joules(2e9, 3e12, 5e9), 12 + 2.5) << "a part that is not there";
  EXPECT_DOUBLE_EQ(EnergyMeter(small()).joules(2e9, 5e9, 4), 12 + 2.5 + 12)
      << "and what is drawn all the time";
}

TEST(Energy, HitRateFollowsFromAccessTimes) {
  EXPECT_DOUBLE_EQ(cache_hit_rate(1e-9, 101e-9, 26e-9), 0.75);
  EXPECT_DOUBLE_EQ(cache_hit_rate(1e-9, 101e-9, 1e-9), 1);
  EXPECT_DOUBLE_EQ(cache_hit_rate(1e-9, 101e-9, 500e-9), 0);
  EXPECT_DOUBLE_EQ(cache_hit_rate(1e-9, 1e-9, 1e-9), 0) << "nothing to tell them apart by";
  EXPECT_DOUBLE_EQ(cache_hit_rate(std::nan(""), 1, 1), 0);
}

TEST(Energy, ASensorCorrectsTheGuess) {
  EnergyMeter meter(small());
  EXPECT_TRUE(meter.estimated());
  // Work costs twice as much as guessed, and idling half as much.
  const auto truth = [](double flops, double bytes, double seconds) {
    return 2 * small().joules(flops, 0, bytes) + 0.5 * 3 * seconds;
  };
  for (int i = 0; i < 200; ++i) {
    const double flops = 1e9 * (1 + i % 7), bytes = 1e9 * (i % 3), seconds = 1 + i % 5;
    meter.observe(flops, bytes, seconds, truth(flops, bytes, seconds));
    EXPECT_EQ(meter.estimated(), i < 2);
  }
  EXPECT_NEAR(meter.joules(4e9, 1e9, 2), truth(4e9, 1e9, 2), 0.05);
  EXPECT_NEAR(meter.joules(0, 0, 10), truth(0, 0, 10), 0.05);
}

TEST(Energy, IsNeverNegativeNorNoNumber) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EnergyMeter meter(small());
  for (const double bad : {-1.0, std::nan(""), kInfinity}) {
    EXPECT_EQ(meter.joules(bad, bad, bad), 0);
    meter.observe(bad, bad, bad, 1);
    meter.observe(1e9, 1e9, 1, bad);
  }
  EXPECT_TRUE(meter.estimated()) << "nothing of that was an observation";
  for (int i = 0; i < 50; ++i) meter.observe(1e9, 0, 1e-3 * i, i % 2 == 0 ? 0 : 1e12);
  EXPECT_GE(meter.joules(1e9, 0, 1), 0);
  EXPECT_TRUE(std::isfinite(meter.joules(1e9, 0, 1)));
}

TEST(Energy, NamesModelsThatMakeNoSense) {
  EXPECT_EQ(small().problem(), "");
  EXPECT_EQ(guess_energy_model(4, {}).problem(), "");
  EnergyModel bad = small();
  bad.hit_rate = 1.5;
  EXPECT_NE(bad.problem(), "");
  bad = small();
  bad.cpu_watts = -1;
  EXPECT_NE(bad.problem(), "");
}

TEST(Energy, AGuessGrowsWithTheMachine) {
  Roofline roofline;
  roofline.flops = 1e11;
  roofline.copy_bytes = 1e10;
  const EnergyModel four = guess_energy_model(4, roofline), eight = guess_energy_model(8, roofline);
  EXPECT_DOUBLE_EQ(eight.cpu_watts, 2 * four.cpu_watts);
  EXPECT_GT(EnergyMeter(four).joules(1e9, 1e8, 0.01), 0);
}

}  // namespace
}  // namespace limber
