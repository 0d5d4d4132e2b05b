#include "jobs/compare_job.h"

#include "io/builtin_models.h"
#include "io/onnx.h"
#include "tests/jobs/elastic.h"

namespace limber {
namespace {

using test::kNaN;
using test::Watcher;

CompareJobOptions job_of(const std::string& a, const std::string& b) {
  CompareJobOptions job;
  job.a.model = a;
  job.b.model = b;
  job.data = "synthetic:count=40";
  job.threads = 1;
  job.batch = 16;
  job.seconds = 0.01;
  return job;
}

TEST(CompareJob, AModelIsOfOneMindWithItself) {
  const auto same = run_compare(job_of("builtin:resnet8", "builtin:resnet8"));
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_EQ(same->images.count, 40);
  EXPECT_EQ(same->same, 40);
  EXPECT_TRUE(same->labelled);
  EXPECT_EQ(same->a.accuracy, same->b.accuracy);
  EXPECT_EQ(same->only_a + same->only_b, 0);
  EXPECT_EQ(same->gain(), 0);
  EXPECT_LT(same->gain_95().low, 0) << "40 images do not prove that there is no difference";
  EXPECT_EQ(same->a.parameters, same->b.parameters);
  EXPECT_GT(same->a.memory_bytes, same->a.parameter_bytes);
  EXPECT_GT(same->a.seconds, 0);
}

// What is counted is what the two say, image by image.
TEST(CompareJob, CountsAddUp) {
  const auto other = run_compare(job_of("builtin:resnet8", "builtin:resnet14"));
  ASSERT_TRUE(other.ok()) << other.status().message();
  const auto all = static_cast<double>(other->images.count);
  EXPECT_DOUBLE_EQ(*other->a.accuracy, static_cast<double>(other->both + other->only_a) / all);
  EXPECT_DOUBLE_EQ(*other->b.accuracy, static_cast<double>(other->both + other->only_b) / all);
  EXPECT_NEAR(other->gain(), *other->b.accuracy - *other->a.accuracy, 1e-12);
  EXPECT_GE(other->same, other->both);
  EXPECT_LE(other->same + other->only_a + other->only_b, other->images.count);
  EXPECT_GT(other->b.parameters, other->a.parameters);
  CompareJobOptions few = job_of("builtin:resnet8", "builtin:resnet14");
  few.images = 10;
  few.batch = 4;
  const auto some = run_compare(few);
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_EQ(some->images.count, 10);
  few.data.clear();
  const auto none = run_compare(few);
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none->images.count, 0);
  EXPECT_FALSE(none->a.accuracy.has_value());
}

TEST(CompareJob, TakesElasticModelsAndTheirVariants) {
  const Folder folder;
  ElastifyJobOptions elastify = test::small_job(folder / "elastic", test::write_images(folder, 80));
  elastify.budget = 0;
  const auto made = run_elastify(elastify);
  ASSERT_TRUE(made.ok()) << made.status().message();
  CompareJobOptions job = job_of("builtin:resnet8", elastify.output);
  job.data = elastify.data;
  const auto whole = run_compare(job);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->same, whole->images.count) << "the original is the model";
  EXPECT_EQ(whole->images.part, JudgedImages::Part::kHeldOut);
  EXPECT_EQ(whole->images.count, 8);
  const Variant variant = original_variant(made->folder.model);
  job.b.variant = print(made->folder.model, variant);
  EXPECT_TRUE(run_compare(job).ok());
  job.b.variant = "nonsense";
  EXPECT_EQ(run_compare(job).status().code(), Code::kInvalidArgument);
}

TEST(CompareJob, RefusesWhatCannotWork) {
  const auto refuses = [&](auto change, const std::string& part) {
    CompareJobOptions job = job_of("builtin:resnet8", "builtin:resnet8");
    change(job);
    const auto done = run_compare(job);
    EXPECT_EQ(done.status().code(), Code::kInvalidArgument) << part;
    EXPECT_NE(done.status().message().find(part), std::string::npos) << done.status().message();
  };
  refuses([](CompareJobOptions& job) { job.b.model = ""; }, "two models");
  refuses([](CompareJobOptions& job) { job.a.variant = "0.0"; }, "no elastic model");
  refuses([](CompareJobOptions& job) { job.images = -1; }, "images");
  refuses([](CompareJobOptions& job) { job.batch = 0; }, "batch");
  refuses([](CompareJobOptions& job) { job.seconds = kNaN; }, "seconds");
}

// Other classes than the data's: nobody knows what is right, and that is said.
TEST(CompareJob, SaysWhenLabelsMeanNothing) {
  const Folder folder;
  for (const char* name : {"cat/1.png", "dog/2.png", "owl/3.png"}) folder.write_image(name, 90, 32);
  CompareJobOptions job = job_of("builtin:resnet8", "builtin:resnet14");
  job.data = folder.path();
  Watcher watcher;
  const auto done = run_compare(job, watcher.control());
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_FALSE(done->labelled);
  EXPECT_FALSE(done->a.accuracy.has_value());
  ASSERT_FALSE(watcher.notes.empty());
  EXPECT_NE(watcher.notes.back().second.find("nobody knows"), std::string::npos);
}

TEST(CompareJob, ANetworkWhoseOutputsAreNoNumbersFails) {
  const Folder folder;
  const Model model = *make_builtin("resnet8");
  const std::string name = "classifier.weight";  // behind the last layer that hides what is no number
  Tensor weights = *(*model.params->get(name)).copy();
  for (float& x : weights.data<float>()) x = static_cast<float>(kNaN);
  model.params->set(name, weights);
  ASSERT_TRUE(export_onnx(model.graph, *model.params, folder / "nan.onnx", {}).ok());
  const auto done = run_compare(job_of("builtin:resnet8", folder / "nan.onnx"));
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.status().message().find("not a number"), std::string::npos) << done.status().message();
}

}  // namespace
}  // namespace limber
