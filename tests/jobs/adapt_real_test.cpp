// A real model in a real world that drifts. Skipped where they are not at hand.
#include <cstdlib>
#include <filesystem>

#include "jobs/adapt_job.h"
#include "tests/jobs/tiny.h"

namespace limber {
namespace {

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string real_data() {
  const std::string asked = from_environment("LIMBER_DATA");
  return (asked.empty() ? from_environment("HOME") + "/.cache/limber-data" : asked) + "/cifar10";
}

TEST(AdaptReal, DriftIsFoundAndAccuracyEstimatedOnCifar) {
  const std::string model = std::string(LIMBER_SHARED) + "/models/resnet20-cifar10.onnx", data = real_data();
  if (!std::filesystem::exists(model) || !std::filesystem::exists(data))
    GTEST_SKIP() << model << " and " << data;
  AdaptJobOptions options;
  options.model = model;
  options.stream = "clean*500,gaussian-noise@5*300,clean*300,fog@5*300;data=" + data;
  options.source_images = 1000;
  options.threads = 1;
  options.workers = 0;
  options.image.normalisation = Normalisation{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  const auto result = run_adapt(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const AdaptResult& found = **result;
  EXPECT_GT(found.source_accuracy, 0.85);
  EXPECT_EQ(found.alarm_score.found, 3);
  EXPECT_LT(found.alarm_score.longest_delay, 100);
  EXPECT_EQ(found.alarm_score.false_alarms, 0);
  EXPECT_LT(found.score.estimate_error, 0.15);
}

}  // namespace
}  // namespace limber
