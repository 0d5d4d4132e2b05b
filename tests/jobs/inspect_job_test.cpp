// What is in a model, whether it can run, and where its time goes.
#include "jobs/inspect_job.h"

#include <set>

#include "tests/jobs/tiny.h"

namespace limber {
namespace {

using test::contains;

JobOptions of(const std::string& model) {
  JobOptions options;
  options.model = model;
  options.threads = 1;
  options.tune_cache = "";
  return options;
}

TEST(InspectJob, CostsAreThoseOfTheShapes) {
  const Folder folder;
  JobOptions options = of(test::write_tiny(folder));
  options.batch = 2;
  const auto model = load(options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto cost = cost_of_model(*model, options);
  ASSERT_TRUE(cost.ok() && cost->why_not.ok());
  // 2 images, 8x8 places, 8 channels of 3x3x3 weights, each a product and a sum.
  EXPECT_EQ(cost->operators.at("Conv").flops, 2.0 * 8 * 8 * 8 * 27 * 2);
  EXPECT_EQ(cost->operators.at("Conv").count, 1);
  EXPECT_EQ(cost->shapes, "f32[2,3,16,16]");
  EXPECT_EQ(cost->io_bytes, (2U * 3 * 16 * 16 + 2 * 10) * sizeof(float));
  double sum = 0;
  for (const auto& [name, use] : cost->operators) sum += use.flops;
  EXPECT_EQ(cost->flops, sum);
  EXPECT_GT(cost->steps, 0U);
}

TEST(InspectJob, WithoutSizesOperatorsAreStillCounted) {
  const Folder folder;
  const JobOptions options = of(test::write_tiny(folder, "open.onnx", 1, R"(graph "open" {
    input %x: f32[N,3,H,W]
    %y: f32[N,3,H,W] = Relu(%x)
    output %y as "y"
  })"));
  const auto model = load(options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto cost = cost_of_model(*model, options);
  ASSERT_TRUE(cost.ok()) << cost.status().message();
  EXPECT_EQ(cost->operators.at("Relu").count, 1);
  EXPECT_FALSE(cost->why_not.ok());
  EXPECT_TRUE(contains(cost->why_not.message(), "H")) << cost->why_not.message();
}

TEST(CheckJob, ListsWhatAFileAsksFor) {
  const Folder folder;
  const auto good = check_model(of(test::write_tiny(folder)));
  ASSERT_TRUE(good.ok()) << good.status().message();
  EXPECT_TRUE(good->runs.ok());
  std::set<std::string> names;
  for (const OperatorUse& use : good->uses) {
    names.insert(use.op_type);
    EXPECT_TRUE(use.forward && use.gradient) << use.op_type;
  }
  EXPECT_TRUE(names.contains("Conv") && names.contains("BatchNormalization") && names.contains("Gemm"));
  expect_failure(check_model(of(folder / "none.onnx")), Code::kNotFound, {"none.onnx"});
  EXPECT_FALSE(check_model(of(folder.write("bad.onnx", "rubbish"))).ok());
  EXPECT_FALSE(check_model(of("builtin:resnet8"))->uses.empty());
}

TEST(ProfileJob, RowsAreStepsOrKindsOfThem) {
  ProfileJobOptions options;
  static_cast<JobOptions&>(options) = of("builtin:resnet8");
  options.tune = Tune::kOff;
  options.runs = 2;
  options.in_order = true;
  const auto steps = run_profile(options);
  ASSERT_TRUE(steps.ok()) << steps.status().message();
  EXPECT_EQ(steps->rows.size(), steps->steps);
  options.in_order = false;
  options.per_op = true;
  const auto kinds = run_profile(options);
  ASSERT_TRUE(kinds.ok()) << kinds.status().message();
  std::set<std::string> seen;
  int64_t count = 0;
  double flops = 0, before = kinds->rows[0].seconds;
  for (const ProfileRow& row : kinds->rows) {
    EXPECT_TRUE(seen.insert(row.op).second) << row.op << " twice";
    EXPECT_LE(row.seconds, before);
    before = row.seconds;
    count += row.count;
    flops += row.flops;
  }
  EXPECT_EQ(count, static_cast<int64_t>(kinds->steps));
  double of_steps = 0;
  for (const ProfileRow& row : steps->rows) of_steps += row.flops;
  EXPECT_DOUBLE_EQ(flops, of_steps);
  options.runs = 0;
  expect_failure(run_profile(options), Code::kInvalidArgument, {"0 runs"});
}

TEST(ProfileJob, ATrainingStepHasMoreInIt) {
  ProfileJobOptions options;
  static_cast<JobOptions&>(options) = of("builtin:resnet8");
  options.tune = Tune::kOff;
  options.runs = 1;
  options.batch = 2;
  const auto forward = run_profile(options);
  options.last = 1;
  const auto last = run_profile(options);
  options.last = 0;
  options.train = true;
  const auto all = run_profile(options);
  ASSERT_TRUE(forward.ok() && last.ok() && all.ok());
  const auto flops = [](const ProfileResult& of) {
    double sum = 0;
    for (const ProfileRow& row : of.rows) sum += row.flops;
    return sum;
  };
  EXPECT_LT(flops(*forward), flops(*last));
  EXPECT_LT(flops(*last), flops(*all));
}

// An exporter that was shown two images wrote the two into the reshape as well.
TEST(Source, AFixedBatchComesWithARemedy) {
  const Folder folder;
  JobOptions options = of(test::write_tiny(folder, "two.onnx", 1, R"(graph "two" {
    input %x: f32[2,3,4,4]
    %y: f32[4,24] = Reshape(%x) {shape=<4,24>}
    output %y as "y"
  })"));
  EXPECT_TRUE(load(options).ok());
  options.batch = 4;
  expect_failure(load(options), Code::kInvalidArgument,
                 {"with batch 4", "exported for 2 at a time", "use a batch of 2", "dynamic_axes"});
}

TEST(Source, SaysWhatToDoWithAnElasticModel) {
  const Folder folder;
  expect_failure(model_file(folder.path()), Code::kNotFound, {"neither"});
  EXPECT_EQ(*model_file("builtin:vit"), "builtin:vit");
  EXPECT_EQ(*model_file("any.onnx"), "any.onnx");
}

}  // namespace
}  // namespace limber
