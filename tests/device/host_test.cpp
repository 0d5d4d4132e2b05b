#include "device/host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "device/caches.h"

namespace limber {
namespace {

// A machine made of files.
class HostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
            ("limber-host-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  HostInfo info() const { return host_info(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(HostTest, NothingIsKnownOfAnEmptyMachine) {
  const HostInfo host = info();
  EXPECT_GE(host.online_cores, 1);
  EXPECT_EQ(host.cpu_limit, 0);
  EXPECT_EQ(host.memory_bytes, 0u);
  EXPECT_EQ(host.memory_limit, 0u);
  EXPECT_EQ(host.governor, "");
}

TEST_F(HostTest, TheTightestOfTheGroupsCounts) {
  file("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:  400 kB\n");
  file("proc/loadavg", "3.50 2.00 1.00 1/200 77\n");
  file("proc/self/cgroup", "0::/outer/inner\n");
  file("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  file("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/outer/memory.max", "max\n");
  file("sys/fs/cgroup/outer/inner/memory.max", "512000\n");
  file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  const HostInfo host = info();
  EXPECT_DOUBLE_EQ(host.cpu_limit, 1.5);
  EXPECT_EQ(host.memory_limit, 512000u);
  EXPECT_EQ(host.memory_bytes, 1024000u);
  EXPECT_EQ(host.free_bytes, 409600u);
  EXPECT_DOUBLE_EQ(host.load, 3.5);
  EXPECT_EQ(host.governor, "powersave");
}

TEST_F(HostTest, TheFirstVersionOfGroupsHasNoLimitInALargeNumber) {
  file("proc/meminfo", "MemTotal:  1000 kB\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(info().cpu_limit, 0);
  EXPECT_EQ(info().memory_limit, 0u);
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  EXPECT_DOUBLE_EQ(info().cpu_limit, 2);
}

TEST_F(HostTest, CachesOfDataFromTheInside) {
  EXPECT_TRUE(cpu_caches(root_.string()).empty());
  const auto cache = [&](int index, int level, const std::string& type, const std::string& size) {
    const std::string folder = "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    file(folder + "level", std::to_string(level) + "\n");
    file(folder + "type", type + "\n");
    file(folder + "size", size + "\n");
  };
  cache(0, 3, "Unified", "32M");
  cache(1, 1, "Instruction", "64K");
  cache(2, 1, "Data", "32K");
  cache(3, 2, "Unified", "much");
  const std::vector<CacheLevel> caches = cpu_caches(root_.string());
  ASSERT_EQ(caches.size(), 2u);
  EXPECT_EQ(caches[0].level, 1);
  EXPECT_EQ(caches[0].bytes, 32 << 10);
  EXPECT_EQ(caches[1].bytes, 32 << 20);
}

}  // namespace
}  // namespace limber
