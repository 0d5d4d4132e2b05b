// Jobs on models that are no classifiers.
#include <gtest/gtest.h>

#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"
#include "io/onnx.h"
#include "jobs/elastic_work.h"
#include "jobs/exits_job.h"
#include "jobs/export_job.h"
#include "jobs/search_job.h"
#include "runtime/compile.h"
#include "runtime/session.h"
#include "tests/jobs/elastic.h"
#include "tests/supernet/other_models.h"

namespace limber {
namespace {

std::string write_model(const Folder& folder, const Model& model) {
  const std::string path = folder / "model.onnx";
  const Status written = export_onnx(model.graph, *model.params, path, {});
  EXPECT_TRUE(written.ok()) << written.message();
  return path;
}

ElastifyJobOptions other_job(const Folder& folder, const Model& model) {
  ElastifyJobOptions job = test::small_job(folder / "elastic");
  job.model = write_model(folder, model);
  job.operators = {"shrink50", "shrink25"};
  job.shares = {0.8, 0.6};
  job.size_limit = 4;
  return job;
}

// By output: name and values for two seeded images.
std::map<std::string, std::vector<float>> outputs_of(const std::string& path) {
  const auto model = import_onnx(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  const auto plan = compile(model->graph, model->params, {make_cpu_backend({}), make_ref_backend()},
                            batch_settings(model->graph, 2, 1));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  const auto session = *Session::create(*plan);
  Random random(3);
  for (float& x : session->input(0).data<float>()) x = static_cast<float>(random.normal());
  EXPECT_TRUE(session->run().ok());
  std::map<std::string, std::vector<float>> found;
  for (size_t o = 0; o < model->graph.outputs().size(); ++o) {
    const auto values = session->output(o).data<float>();
    found[model->graph.outputs()[o].name].assign(values.begin(), values.end());
  }
  return found;
}

SearchJobOptions search_in(const std::string& folder) {
  SearchJobOptions job;
  job.model = folder;
  job.threads = 1;
  job.source.data = "synthetic:count=48";
  job.source.images = 32;
  job.latency_share = 0.9;
  job.evaluations = 8;
  return job;
}

TEST(OtherAnswers, ADetectorIsMadeElasticSearchedAndExported) {
  const Folder folder;
  ElastifyJobOptions job = other_job(folder, test::make_detector());
  const auto made = test::elastify_in_time(job);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(*answers_in(made->folder.info), Answers::kValues);
  EXPECT_TRUE(made->folder.info.classes.empty());
  ASSERT_GT(made->judged.size(), 1u);
  EXPECT_EQ(made->judged[0].accuracy, 1) << "the model says what it says";
  EXPECT_GT(made->range_accuracy, 0);

  const auto found = run_search(search_in(job.output));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->original_accuracy, 1);
  EXPECT_GT(found->best.accuracy, 0);

  // Files have the outputs as they were: of the original bit by bit what the model gives.
  const auto before = outputs_of(job.model);
  ExportJobOptions to_file;
  to_file.model = job.output;
  to_file.output = folder / "original.onnx";
  ASSERT_TRUE(run_export(to_file).ok());
  EXPECT_EQ(outputs_of(to_file.output), before);
  to_file.variant = print(found->model, found->best.variant);
  to_file.output = folder / "variant.onnx";
  ASSERT_TRUE(run_export(to_file).ok());
  const auto variant = outputs_of(to_file.output);
  ASSERT_EQ(variant.size(), 2u);
  EXPECT_EQ(variant.at("boxes").size(), before.at("boxes").size());

  ExitsJobOptions exits;
  exits.model = job.output;
  exits.data = "synthetic:count=64";
  exits.threads = 1;
  const auto none = run_exits(exits);
  EXPECT_EQ(none.status().code(), Code::kInvalidArgument);
  EXPECT_NE(none.status().message().find("classifier"), std::string::npos) << none.status().message();
}

TEST(OtherAnswers, PlacesOfASegmentationCount) {
  const Folder folder;
  ElastifyJobOptions job = other_job(folder, test::make_segmenter());
  job.answers = Answers::kPlaces;
  const auto made = test::elastify_in_time(job);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(*answers_in(made->folder.info), Answers::kPlaces);
  EXPECT_GT(made->range_accuracy, 0.2) << "better than one of five by chance";
  const auto found = run_search(search_in(job.output));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->original_accuracy, 1);

  job.resume = true;
  job.answers = Answers::kValues;
  const auto other = run_elastify(job);
  EXPECT_EQ(other.status().code(), Code::kInvalidArgument);
  EXPECT_NE(other.status().message().find("places"), std::string::npos) << other.status().message();
}

TEST(OtherAnswers, RefusesWhatTheModelDoesNotSay) {
  const Folder folder;
  const auto refuses = [&](auto change, const std::string& part) {
    ElastifyJobOptions job = other_job(folder, test::make_segmenter());
    change(job);
    const auto made = run_elastify(job);
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument) << part;
    EXPECT_NE(made.status().message().find(part), std::string::npos) << made.status().message();
    EXPECT_FALSE(std::filesystem::exists(job.output)) << part;
  };
  refuses([](ElastifyJobOptions& job) { job.answers = Answers::kClasses; }, "classifier");
  refuses([](ElastifyJobOptions& job) { job.tune_to = TuneTo::kLabels; }, "tune_to");
  refuses([](ElastifyJobOptions& job) { job.teach_data = "synthetic:count=4"; }, "smaller batch");
}

TEST(ElastifyJob, TeachesOnOneSetAndTunesOnAnother) {
  const Folder folder;
  ElastifyJobOptions job = test::small_job(folder / "elastic");
  job.teach_data = test::write_images(folder, 32);
  job.shares = {0.7};
  const auto made = test::elastify_in_time(job);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_FALSE(made->judged.empty());
  EXPECT_NE(made->images.text().find(job.data), std::string::npos) << made->images.text();
}

}  // namespace
}  // namespace limber
