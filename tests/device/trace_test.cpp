#include "device/trace.h"

#include "tests/device/machine.h"

namespace limber {
namespace {

class TraceTest : public MachineTest {
 protected:
  std::string refusal(const std::string& text) {
    const auto trace = TraceSensor::open(file("trace.jsonl", text));
    if (trace.ok()) return "";
    EXPECT_EQ(trace.status().code(), Code::kCorrupt);
    return trace.status().message();
  }
};

TEST_F(TraceTest, PlaysBackWhatWasRecorded) {
  DeviceSample first{.time_s = 1.25}, second{.time_s = 2.5};
  first.cpu_busy = 0.1;
  second.cpu_busy = 1.0 / 3;
  second.memory_free_bytes = 123456789012;
  second.temperature_c = -3.5;
  const std::string path = (root_ / "trace.jsonl").string();
  {
    auto writer = TraceWriter::create(path);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    ASSERT_TRUE(writer->add(first).ok());
    ASSERT_TRUE(writer->add(second).ok());
    ASSERT_TRUE(writer->sync().ok());
  }
  auto trace = TraceSensor::open(path);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->left(), 2u);
  EXPECT_EQ(format_fields(*trace->sample()), format_fields(first));
  EXPECT_EQ(format_fields(*trace->sample()), format_fields(second));
  EXPECT_EQ(trace->sample().status().code(), Code::kNotFound);
  EXPECT_EQ(TraceWriter::create(path).status().code(), Code::kInvalidArgument) << "it is there";
}

TEST_F(TraceTest, EveryFieldIsKept) {
  const std::string all =
      R"({"time_s":1.0,"cpu_busy":0.01,"cpu_own":0.02,"cpu_others":0.03,"clock_share":0.04,"memory_used":0.05,)"
      R"("memory_free_bytes":6,"cpu_pressure":0.07,"cpu_stalled":0.08,"memory_pressure":0.09,)"
      R"("memory_stalled":0.1,"cpu_limit":1.5,"quota_used":0.11,"throttled":0.12,"memory_limit_bytes":13,)"
      R"("temperature_c":14.5,"gpu_busy":0.15,"gpu_memory_used":0.16,"gpu_free_bytes":17,"gpu_power_w":18.5,)"
      R"("energy_j":19.5,"gpu_energy_j":20.5})";
  const auto sample = parse_fields<DeviceSample>(all);
  ASSERT_TRUE(sample.ok()) << sample.status().message();
  EXPECT_EQ(format_fields(*sample), all);
}

TEST_F(TraceTest, RefusesWhatIsNoTrace) {
  const std::string good = R"({"kind":"device.sample","time_s":1,"cpu_busy":0.5})";
  EXPECT_EQ(refusal(good + "\n"), "");
  EXPECT_EQ(refusal(good + "\n{\"kind\":\"dev"), "") << "half a line, left by a crash";
  EXPECT_EQ(refusal(R"({"kind":"run.event","level":"info","text":"x"})"
                    "\n" +
                    good),
            "");
  const auto says = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
  };
  says("", "there is no line");
  says(
      "\x7f"
      "ELF\n",
      "trace.jsonl:1: not JSON");
  says(good + "\n[1,2]\n", ":2: not a JSON object");
  says(R"({"kind":"device.sample","cpu_busy":0.5})", ":1: there is no 'time_s'");
  says(R"({"kind":"device.sample","time_s":null})", "'time_s' is not a number");
  says(R"({"kind":"device.sample","time_s":1,"cpu_busy":1.5})", "'cpu_busy' is 1.5; expected 0 to 1");
  says(R"({"kind":"device.sample","time_s":1,"gpu_busy":"much"})", "'gpu_busy'");
  says(R"({"kind":"device.sample","time_s":1,"memory_free_bytes":-5})", "'memory_free_bytes'");
  says(good + "\n" + good, ":2: 'time_s' is 1, and 1 in the sample before it");
  EXPECT_EQ(TraceSensor::open((root_ / "none").string()).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace limber
