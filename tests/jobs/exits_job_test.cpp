// limber exits: linear layers that are sparse, and stages, from the options to the folder.
#include "jobs/exits_job.h"

#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"
#include "io/onnx.h"
#include "jobs/export_job.h"
#include "runtime/compile.h"
#include "runtime/session.h"
#include "tests/jobs/elastic.h"

namespace limber {
namespace {

ExitsJobOptions exits_job(const std::string& folder) {
  ElastifyJobOptions elastify = test::small_job(folder);
  elastify.budget = 0;
  const auto made = run_elastify(elastify);
  EXPECT_TRUE(made.ok()) << made.status().message();
  ExitsJobOptions job;
  job.model = folder;
  job.data = "synthetic:count=160";
  job.batch = 16;
  job.threads = 1;
  job.storage = 0.2;
  job.max_drop = 0.05;
  job.images = 10;
  return job;
}

Result<ExitsOutcome> exits_in_time(ExitsJobOptions job) {
  for (job.budget = 3;; job.budget *= 2) {
    auto made = run_exits(job);
    const bool too_small = made.status().message().find("too small") != std::string::npos;
    if (!too_small || job.budget > 100) return made;
  }
}

std::vector<float> answers_of_file(const std::string& path) {
  const auto model = import_onnx(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  const auto plan = compile(model->graph, model->params, {make_cpu_backend({}), make_ref_backend()},
                            batch_settings(model->graph, 2, 1));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  const auto session = *Session::create(*plan);
  Random random(3);
  for (float& x : session->input(0).data<float>()) x = static_cast<float>(random.normal());
  EXPECT_TRUE(session->run().ok());
  const auto values = session->output(0).data<float>();
  return {values.begin(), values.end()};
}

TEST(ExitsJob, SparseLayersAreSmallerAndGoIntoFiles) {
  const Folder folder;
  ExitsJobOptions job = exits_job(folder / "elastic");
  job.count = 1;
  job.dropout = 0.2;
  job.kept_weights = 0.25;
  const auto found = exits_in_time(job);
  ASSERT_TRUE(found.ok()) << found.status().message();
  const ElasticModel& model = found->folder.model;
  ASSERT_EQ(model.exits.size(), 1u);
  const std::string weight = "exit/" + model.exits[0].name + "/classifier.weight";
  const auto features = model.params->type(weight + ".features"), weights = model.params->type(weight);
  ASSERT_TRUE(features.ok() && weights.ok());
  EXPECT_EQ(features->dtype, DType::kI32);
  EXPECT_EQ(features->shape.elements(), weights->shape.elements());
  EXPECT_LE(found->storage, job.storage);

  // The folder has it, and a file that ends there says the same.
  const auto loaded = load_elastic(job.model);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const Tensor now = *loaded->model.params->get(weight), before = *model.params->get(weight);
  EXPECT_EQ(std::memcmp(now.raw(), before.raw(), now.bytes()), 0);
  Variant ends = original_variant(loaded->model);
  ends.exit = 0;
  ExportJobOptions to_file;
  to_file.model = job.model;
  to_file.variant = print(loaded->model, ends);
  to_file.output = folder / "exit.onnx";
  const auto exported = run_export(to_file);
  ASSERT_TRUE(exported.ok()) << exported.status().message();
  const auto runner = ExitRunner::create(loaded->model, original_variant(loaded->model),
                                         {make_cpu_backend({}), make_ref_backend()}, {.batch = 2});
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  Tensor images = *Tensor::allocate({DType::kF32, {2, 3, 32, 32}});
  Random random(3);
  for (float& x : images.data<float>()) x = static_cast<float>(random.normal());
  const auto answers = (*runner)->run_all(images);
  ASSERT_TRUE(answers.ok()) << answers.status().message();
  const auto file = answers_of_file(to_file.output);
  const auto ours = answers->front().data<float>();
  ASSERT_EQ(file.size(), ours.size());
  for (size_t i = 0; i < file.size(); ++i) EXPECT_NEAR(file[i], ours[i], 1e-4F * (1 + std::abs(ours[i])));
}

TEST(ExitsJob, StagesTrainAllBlocks) {
  const Folder folder;
  ExitsJobOptions job = exits_job(folder / "elastic");
  job.blocks = ExitBlocks::kTuned;
  for (const TuningOrder order : {TuningOrder::kStages, TuningOrder::kStagesBack}) {
    job.order = order;
    const auto found = exits_in_time(job);
    ASSERT_TRUE(found.ok()) << found.status().message();
    const auto& stages = found->report.stages;
    const ElasticModel& model = found->folder.model;
    ASSERT_EQ(stages.size(), model.exits.size() + 1);
    EXPECT_EQ(stages.back().after, static_cast<int>(model.blocks.size()));
    // Copies of all blocks but the one that holds the classifier.
    EXPECT_EQ(found->variant.choices.back(), 0);
    EXPECT_NE(found->variant.choices.front(), 0);
    EXPECT_GT(found->tuned_storage, 0.5);
    // The end of the model is what was trained, no longer what it was: it is taught with labels here.
    EXPECT_EQ(found->held.endings.size(), stages.size());
    EXPECT_EQ(share_correct(found->held.endings.back()), stages.back().accuracy);
    job.again = true;
  }
}

}  // namespace
}  // namespace limber
