#include "jobs/doctor_job.h"

#include <gtest/gtest.h>

#include "tests/data/files.h"

namespace limber {
namespace {

// A machine on which nothing is slow.
DoctorReport healthy() {
  DoctorReport report;
  report.cpu = {.name = "CPU", .cores = 4, .features = {"sse4.2", "avx", "avx2", "fma"}};
  report.host = {.system = "Linux", .online_cores = 4, .memory_bytes = uint64_t{8} << 30, .load = 0.1};
  report.threads = 4;
  report.quick_s = 1e-3;
  report.slow_s = 1.1e-3;
  report.tune_cache.path = "tune.json";
  return report;
}

TEST(Doctor, FindsWhatIsSlowAndNothingElse) {
  EXPECT_TRUE(diagnose(healthy(), {}).empty());
  const auto finds = [](auto change, const std::string& part, const EngineOptions& options = {}) {
    DoctorReport report = healthy();
    change(report);
    const std::vector<Finding> found = diagnose(report, options);
    ASSERT_EQ(found.size(), 1u) << part;
    EXPECT_NE(found[0].what.find(part), std::string::npos) << found[0].what;
    EXPECT_FALSE(found[0].remedy.empty());
  };
  finds([](DoctorReport& r) { r.cpu.features = {"sse4.2", "avx"}; }, "AVX2");
  finds([](DoctorReport& r) { r.threads = 1; }, "one thread");
  finds([](DoctorReport& r) { r.threads = 8; }, "8 threads on 4 cores");
  finds([](DoctorReport& r) { r.host.cpu_limit = 1.5; }, "1.5 cores");
  finds([](DoctorReport& r) { r.host.load = 4; }, "busy");
  finds([](DoctorReport& r) { r.host.governor = "powersave"; }, "powersave");
  finds([](DoctorReport& r) { r.slow_s = 3e-3; }, "unsteady");
  finds([](DoctorReport& r) { r.host.memory_limit = 512 << 20; }, "512 MiB");
  finds([](DoctorReport& r) { r.tune_cache.path = ""; }, "nowhere");
  finds([](DoctorReport& r) { r.tune_cache.there = true; }, "cannot be read");
  EngineOptions reference;
  reference.reference = true;
  finds([](DoctorReport&) {}, "reference", reference);
  DoctorReport arm = healthy();
  arm.cpu.features = {"neon"};
  EXPECT_TRUE(diagnose(arm, {}).empty()) << "has no AVX2 and needs none";
}

TEST(Doctor, KnowsTheTuneCache) {
  const Folder folder;
  EXPECT_FALSE(inspect_tune_cache(folder / "none.json").there);
  const TuneCacheInfo damaged = inspect_tune_cache(folder.write("bad.json", "{\"version\":"));
  EXPECT_TRUE(damaged.there);
  EXPECT_FALSE(damaged.readable);
  const TuneCacheInfo good = inspect_tune_cache(folder.write(
      "good.json",
      R"({"version":3,"machines":{"x":{"layers":{"a":[],"b":[]},"reorders":{"c":1.0},"plans":{}},"y":{}}})"));
  EXPECT_TRUE(good.readable);
  EXPECT_EQ(good.machines, 2);
  EXPECT_EQ(good.entries, 3);
  EXPECT_GT(good.bytes, 0u);
  EXPECT_GE(good.age_s, 0);
}

TEST(Doctor, MeasuresThisMachine) {
  DoctorJobOptions job;
  job.threads = 1;
  job.tune_cache = "";
  const auto report = run_doctor(job);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->quick_s, 0);
  EXPECT_GE(report->slow_s, report->quick_s);
  EXPECT_GT(report->roofline.flops, 0);
  EXPECT_FALSE(report->cpu.name.empty());
  EXPECT_FALSE(report->kernels.empty());
  job.threads = -1;
  EXPECT_EQ(run_doctor(job).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace limber
