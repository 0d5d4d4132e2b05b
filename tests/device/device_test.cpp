#include <gtest/gtest.h>

#include "device/cpu.h"
#include "device/roofline.h"

namespace limber {
namespace {

TEST(CpuInfo, NamesTheMachine) {
  const CpuInfo info = cpu_info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.cores, 1);
  EXPECT_FALSE(info.features.empty());
}

TEST(Roofline, IsPositiveAndQuick) {
  const Roofline roofline = measure_roofline(1);
  EXPECT_EQ(roofline.threads, 1);
  EXPECT_GT(roofline.flops, 1e8);
  EXPECT_GT(roofline.copy_bytes, 1e8);
  EXPECT_GT(roofline.triad_bytes, 1e8);
  EXPECT_LT(roofline.measure_seconds, 5.0);  // 0.2 s on an idle machine; generous for a loaded one
}

TEST(Roofline, BoundIsTheTighterOfTheTwoCeilings) {
  Roofline roofline;
  roofline.flops = 100;
  roofline.copy_bytes = 10;
  roofline.triad_bytes = 8;
  EXPECT_DOUBLE_EQ(roofline.seconds(1000, 10), 10);
  EXPECT_DOUBLE_EQ(roofline.seconds(100, 100), 10);
}

}  // namespace
}  // namespace limber
