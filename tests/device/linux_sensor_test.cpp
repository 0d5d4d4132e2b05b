#include "device/linux_sensor.h"

#include "device/cpu_use.h"
#include "tests/device/machine.h"

namespace limber {
namespace {

using LinuxSensorTest = MachineTest;

TEST_F(LinuxSensorTest, AnEmptyMachineTellsNothing) {
  LinuxSensor empty = sensor();
  time_ = 101;
  EXPECT_EQ(format_fields(*empty.sample()), R"({"time_s":101.0})");
}

TEST_F(LinuxSensorTest, TellsOwnWorkFromThatOfOthers) {
  cpu(1000, 0, 5000, 0, 300);
  LinuxSensor machine = sensor();
  EXPECT_FALSE(machine.sample()->cpu_busy) << "no time has passed";
  cpu(1100, 20, 5060, 20, 380);  // 100 user, 20 system and 20 stolen of 200; 80 of them are ours
  const DeviceSample sample = *machine.sample();
  EXPECT_DOUBLE_EQ(sample.cpu_busy.value(), 0.7);
  EXPECT_DOUBLE_EQ(sample.cpu_own.value(), 0.4);
  EXPECT_DOUBLE_EQ(sample.cpu_others.value(), 0.3);
  EXPECT_DOUBLE_EQ(machine.sample()->cpu_busy.value(), 0.7) << "too soon for another";
  cpu(1200, 20, 5160, 20, 490);
  EXPECT_DOUBLE_EQ(machine.sample()->cpu_others.value(), 0) << "never negative";
}

TEST_F(LinuxSensorTest, CountsOnlyCoresThatThisProcessMayUse) {
  file("proc/self/status", "Name:\tlimber\nCpus_allowed:\t2\nCpus_allowed_list:\t1\n");
  file("proc/stat", "cpu 0 0 0 0\ncpu0 100 0 0 0\ncpu1 10 0 0 90\n");
  LinuxSensor machine = sensor();
  file("proc/stat", "cpu 0 0 0 0\ncpu0 200 0 0 0\ncpu1 20 0 0 180\n");
  const DeviceSample sample = *machine.sample();
  EXPECT_DOUBLE_EQ(sample.cpu_busy.value(), 0.1);
  EXPECT_FALSE(sample.cpu_others) << "what is our own is not told";
}

TEST_F(LinuxSensorTest, CountersThatGoBackStartAgain) {
  cpu(1000, 0, 5000, 0, 300);
  LinuxSensor machine = sensor();
  cpu(10, 0, 50, 0, 3);
  EXPECT_FALSE(machine.sample()->cpu_busy);
  cpu(20, 0, 140, 0, 3);
  EXPECT_DOUBLE_EQ(machine.sample()->cpu_busy.value(), 0.1);
}

TEST(CoreList, IsReadOrEmpty) {
  EXPECT_EQ(parse_core_list("0-2,5"), (std::vector<int>{0, 1, 2, 5}));
  EXPECT_EQ(parse_core_list("7"), std::vector<int>{7});
  for (const char* bad : {"", "a", "3-1", "0-", "1,,2", "-1", "0-99999999", "1;2"})
    EXPECT_TRUE(parse_core_list(bad).empty()) << bad;
}

TEST_F(LinuxSensorTest, ClockIsAShareOfTheHighest) {
  file("proc/self/status", "Cpus_allowed_list:\t0-1\n");
  for (int core = 0; core < 2; ++core) {
    const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/cpufreq/", core);
    file(folder + "cpuinfo_max_freq", "2000000\n");
    file(folder + "scaling_cur_freq", core == 0 ? "1000000\n" : "2500000\n");
  }
  EXPECT_DOUBLE_EQ(sensor().sample()->clock_share.value(), 0.75);
}

TEST_F(LinuxSensorTest, PressureIsShareOfTimeSinceTheLastSample) {
  const auto say = [&](int cpu, int memory) {
    const char* text =
        "some avg10=12.50 avg60=1.00 avg300=0.10 total={}\nfull avg10=99.00 avg60=0 avg300=0 total=9\n";
    file("proc/pressure/cpu", fmt::format(fmt::runtime(text), cpu));
    file("proc/pressure/memory", fmt::format(fmt::runtime(text), memory));
  };
  say(1000000, 0);
  LinuxSensor machine = sensor();
  time_ += 2;
  say(1500000, 200000);
  const DeviceSample sample = *machine.sample();
  EXPECT_DOUBLE_EQ(sample.cpu_pressure.value(), 0.125);
  EXPECT_DOUBLE_EQ(sample.cpu_stalled.value(), 0.25);
  EXPECT_DOUBLE_EQ(sample.memory_stalled.value(), 0.1);
  time_ += 1;
  EXPECT_DOUBLE_EQ(machine.sample()->cpu_stalled.value(), 0);
}

TEST_F(LinuxSensorTest, MemoryIsWhatTheMachineOrTheGroupHasLess) {
  file("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:  400 kB\n");
  EXPECT_DOUBLE_EQ(sensor().sample()->memory_used.value(), 0.6);
  EXPECT_EQ(sensor().sample()->memory_free_bytes.value(), 409600);
  file("proc/self/cgroup", "0::/box\n");
  file("sys/fs/cgroup/box/memory.max", "102400\n");
  file("sys/fs/cgroup/box/memory.current", "92400\n");
  file("sys/fs/cgroup/box/memory.stat", "anon 70000\nfile 20000\ninactive_file 10000\n");
  const DeviceSample sample = *sensor().sample();
  EXPECT_DOUBLE_EQ(sample.memory_used.value(), 82400.0 / 102400);
  EXPECT_EQ(sample.memory_free_bytes.value(), 20000);
  EXPECT_EQ(sample.memory_limit_bytes.value(), 102400);
  file("sys/fs/cgroup/box/memory.max", "10240000\n");
  EXPECT_FALSE(sensor().sample()->memory_limit_bytes) << "more than the machine has";
}

TEST_F(LinuxSensorTest, WatchesTheTightestGroup) {
  file("proc/self/cgroup", "1:name=systemd:/x\n0::/outer/inner\n");
  file("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  file("sys/fs/cgroup/outer/cpu.stat",
       "usage_usec 1000000\nnr_periods 100\nnr_throttled 10\nthrottled_usec 5\n");
  LinuxSensor machine = sensor();
  time_ += 2;
  file("sys/fs/cgroup/outer/cpu.stat",
       "usage_usec 2500000\nnr_periods 120\nnr_throttled 15\nthrottled_usec 7\n");
  DeviceSample sample = *machine.sample();
  EXPECT_DOUBLE_EQ(sample.cpu_limit.value(), 1.5);
  EXPECT_DOUBLE_EQ(sample.quota_used.value(), 0.5);
  EXPECT_DOUBLE_EQ(sample.throttled.value(), 0.25);
  time_ += 1;
  file("sys/fs/cgroup/outer/cpu.max", "50000 100000\n");
  sample = *machine.sample();
  EXPECT_DOUBLE_EQ(sample.cpu_limit.value(), 0.5) << "a limit may be changed at any time";
  EXPECT_DOUBLE_EQ(sample.throttled.value(), 0);
  file("sys/fs/cgroup/outer/cpu.max", "max 100000\n");
  EXPECT_FALSE(machine.sample()->quota_used);
}

TEST_F(LinuxSensorTest, KnowsTheFirstVersionOfGroups) {
  file("proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:  400 kB\n");
  file("proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/job\n0::/\n");
  file("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000\n");
  file("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  file("sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
  file("sys/fs/cgroup/cpu/job/cpuacct.usage", "1000000000\n");
  file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "204800\n");
  file("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "200000\n");
  file("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 97600\n");
  LinuxSensor machine = sensor();
  time_ += 1;
  file("sys/fs/cgroup/cpu/job/cpuacct.usage", "1500000000\n");
  file("sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 0\n");
  const DeviceSample sample = *machine.sample();
  EXPECT_DOUBLE_EQ(sample.cpu_limit.value(), 2);
  EXPECT_DOUBLE_EQ(sample.quota_used.value(), 0.25);
  EXPECT_DOUBLE_EQ(sample.throttled.value(), 0.4);
  EXPECT_EQ(sample.memory_limit_bytes.value(), 204800);
  EXPECT_EQ(sample.memory_free_bytes.value(), 102400);
}

TEST_F(LinuxSensorTest, TemperatureIsTheProcessors) {
  file("sys/class/thermal/thermal_zone0/type", "iwlwifi\n");
  file("sys/class/thermal/thermal_zone0/temp", "99000\n");
  EXPECT_DOUBLE_EQ(sensor().sample()->temperature_c.value(), 99) << "better than nothing";
  file("sys/class/hwmon/hwmon0/name", "k10temp\n");
  file("sys/class/hwmon/hwmon0/temp1_input", "51500\n");
  EXPECT_DOUBLE_EQ(sensor().sample()->temperature_c.value(), 51.5);
  file("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
  file("sys/class/thermal/thermal_zone1/temp", "61000\n");
  file("sys/class/thermal/thermal_zone2/type", "cpu-thermal\n");
  file("sys/class/thermal/thermal_zone2/temp", "-274000\n");
  LinuxSensor machine = sensor();
  EXPECT_DOUBLE_EQ(machine.sample()->temperature_c.value(), 61) << "a broken sensor does not count";
  file("sys/class/thermal/thermal_zone1/temp", "62000\n");
  time_ += 0.5;
  EXPECT_DOUBLE_EQ(machine.sample()->temperature_c.value(), 61) << "asked a moment ago";
  time_ += 0.5;
  EXPECT_DOUBLE_EQ(machine.sample()->temperature_c.value(), 62);
}

TEST_F(LinuxSensorTest, EnergyOfPackagesAndTheirMemoryWrapsAround) {
  const auto zone = [&](const std::string& name, const std::string& what, int microjoules) {
    const std::string folder = "sys/class/powercap/" + name + "/";
    file(folder + "name", what + "\n");
    file(folder + "max_energy_range_uj", "10000000\n");
    file(folder + "energy_uj", fmt::format("{}\n", microjoules));
  };
  zone("intel-rapl:0", "package-0", 9000000);
  zone("intel-rapl:0:0", "core", 500000);
  zone("intel-rapl:0:1", "dram", 100000);
  LinuxSensor machine = sensor();
  EXPECT_DOUBLE_EQ(machine.sample()->energy_j.value(), 0);
  zone("intel-rapl:0", "package-0", 9500000);
  zone("intel-rapl:0:0", "core", 900000);
  EXPECT_DOUBLE_EQ(machine.sample()->energy_j.value(), 0.5) << "cores are in their package";
  zone("intel-rapl:0", "package-0", 1000000);
  zone("intel-rapl:0:1", "dram", 350000);
  EXPECT_DOUBLE_EQ(machine.sample()->energy_j.value(), 0.5 + 1.5 + 0.25);
}

TEST_F(LinuxSensorTest, PowerOfARailIsAddedUp) {
  file("sys/class/hwmon/hwmon0/name", "nvme\n");
  file("sys/class/hwmon/hwmon0/power1_input", "9000000\n");
  file("sys/class/hwmon/hwmon1/name", "ina3221\n");
  file("sys/class/hwmon/hwmon1/in1_label", "VDD_IN\n");
  file("sys/class/hwmon/hwmon1/in1_input", "5000\n");
  file("sys/class/hwmon/hwmon1/curr1_input", "1000\n");
  file("sys/class/hwmon/hwmon1/in2_label", "VDD_CPU\n");
  file("sys/class/hwmon/hwmon1/in2_input", "5000\n");
  file("sys/class/hwmon/hwmon1/curr2_input", "400\n");
  file("sys/class/hwmon/hwmon2/name", "ina226\n");
  file("sys/class/hwmon/hwmon2/power1_input", "3000000\n");
  LinuxSensor machine = sensor();
  time_ += 2;
  file("sys/class/hwmon/hwmon1/curr1_input", "2000\n");
  EXPECT_DOUBLE_EQ(machine.sample()->energy_j.value(), 15)
      << "from 5 to 10 W in 2 s, without what VDD_IN feeds";
}

TEST_F(LinuxSensorTest, RailsOfSeveralChipsAddUp) {
  file("sys/class/hwmon/hwmon0/name", "ina226\n");
  file("sys/class/hwmon/hwmon0/power1_input", "3000000\n");
  file("sys/class/hwmon/hwmon0/power1_average", "2900000\n");
  file("sys/class/hwmon/hwmon0/in1_input", "5000\n");
  file("sys/class/hwmon/hwmon0/curr1_input", "600\n");
  file("sys/class/hwmon/hwmon1/name", "ina3221\n");
  file("sys/class/hwmon/hwmon1/in1_input", "5000\n");
  file("sys/class/hwmon/hwmon1/curr1_input", "1000\n");
  LinuxSensor machine = sensor();
  time_ += 1;
  EXPECT_DOUBLE_EQ(machine.sample()->energy_j.value(), 8) << "3 W and 5 W, each rail once";
}

TEST(LinuxSensor, SeesThatThisProcessIsBusy) {
  LinuxSensor machine({.gpu_library = ""});
  const double start = now_seconds();
  volatile double work = 0;
  while (now_seconds() - start < 0.2) work = work + 1;
  const DeviceSample sample = *machine.sample();
  EXPECT_EQ(sample.problem(), "");
  ASSERT_TRUE(sample.cpu_own && sample.cpu_busy && sample.memory_used);
  EXPECT_GT(*sample.cpu_own, 0);
  EXPECT_GT(sample.memory_free_bytes.value(), 0);
}

}  // namespace
}  // namespace limber
