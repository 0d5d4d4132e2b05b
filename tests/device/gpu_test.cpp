#include "device/gpu.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

// LIMBER_FAKE_NVML is a library of tests/device/fake_nvml, which answers as a driver with one device would.
TEST(Gpu, IsReadThroughALibraryFoundAtRunTime) {
  const auto gpu = Gpu::open(LIMBER_FAKE_NVML);
  ASSERT_NE(gpu, nullptr);
  const GpuUse first = gpu->read(10);
  EXPECT_DOUBLE_EQ(first.busy.value(), 0.42);
  EXPECT_DOUBLE_EQ(first.memory_used.value(), 0.25);
  EXPECT_EQ(first.free_bytes.value(), 3000);
  EXPECT_DOUBLE_EQ(first.power_w.value(), 30);
  EXPECT_DOUBLE_EQ(first.energy_j.value(), 0);
  EXPECT_DOUBLE_EQ(gpu->read(12).energy_j.value(), 7) << "what the device counts, not power by time";
}

TEST(Gpu, IsNotThereWithoutLibraryOrDevice) {
  EXPECT_EQ(Gpu::open("libno-such-library.so.1"), nullptr);
  EXPECT_EQ(Gpu::open(""), nullptr);
  EXPECT_EQ(Gpu::open("libm.so.6"), nullptr) << "another library";
  EXPECT_EQ(Gpu::open(LIMBER_FAKE_NVML, 1), nullptr);
  EXPECT_EQ(Gpu::open(LIMBER_FAKE_NVML, -1), nullptr);
}

}  // namespace
}  // namespace limber
