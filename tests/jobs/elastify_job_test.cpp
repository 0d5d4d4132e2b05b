#include "jobs/elastify_job.h"

#include <algorithm>
#include <filesystem>

#include "io/builtin_models.h"
#include "io/onnx.h"
#include "jobs/search_job.h"
#include "supernet/teach/tune.h"
#include "tests/jobs/elastic.h"

namespace limber {
namespace {

using test::kNaN;
using test::Watcher;

TEST(ElastifyJob, RefusesWhatCannotWorkBeforeItWrites) {
  const Folder folder;
  const std::string output = folder / "elastic";
  const auto refuses = [&](auto change, const std::string& part, Code code = Code::kInvalidArgument) {
    ElastifyJobOptions job = test::small_job(output);
    change(job);
    const auto made = run_elastify(job);
    EXPECT_EQ(made.status().code(), code) << part << ": " << made.status().message();
    EXPECT_NE(made.status().message().find(part), std::string::npos) << made.status().message();
    EXPECT_EQ(made.status().message().find("--"), std::string::npos) << made.status().message();
    EXPECT_FALSE(std::filesystem::exists(output)) << part;
  };
  refuses([](ElastifyJobOptions& job) { job.budget = kNaN; }, "budget");
  refuses([](ElastifyJobOptions& job) { job.budget = -1; }, "budget");
  refuses([](ElastifyJobOptions& job) { job.rate = kNaN; }, "rate");
  refuses([](ElastifyJobOptions& job) { job.tune_rate = 2; }, "tune_rate");
  refuses([](ElastifyJobOptions& job) { job.shares = {}; }, "shares");
  refuses([](ElastifyJobOptions& job) { job.shares = {0.5, kNaN}; }, "share");
  refuses([](ElastifyJobOptions& job) { job.size_limit = 0.5; }, "size_limit");
  refuses([](ElastifyJobOptions& job) { job.data = ""; }, "data");
  refuses([](ElastifyJobOptions& job) { job.operators = {"wider"}; }, "wider");
  refuses([](ElastifyJobOptions& job) { job.batch = 65; }, "65");
  refuses([](ElastifyJobOptions& job) { job.budget = 1e-3; }, "s or more", Code::kResourceExhausted);
}

// A network that paints a picture has no classes to ask for.
TEST(ElastifyJob, RefusesANetworkThatIsNoClassifierBeforeAnyWork) {
  const Folder folder;
  Model model = *make_builtin("resnet8");
  const auto feature = std::find_if(model.graph.nodes().begin(), model.graph.nodes().end(),
                                    [](const Node& node) { return node.op == OpKind::kRelu; });
  ASSERT_NE(feature, model.graph.nodes().end());
  model.graph.mutable_outputs()[0].value = feature->outputs[0];
  model.graph.compact();
  ASSERT_TRUE(export_onnx(model.graph, *model.params, folder / "paint.onnx", {}).ok());
  ElastifyJobOptions job = test::small_job(folder / "elastic");
  job.model = folder / "paint.onnx";
  job.answers = Answers::kClasses;
  Watcher watcher;
  const auto made = run_elastify(job, watcher.control());
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
  EXPECT_NE(made.status().message().find("classifier"), std::string::npos) << made.status().message();
  EXPECT_TRUE(watcher.stages.empty()) << watcher.stages[0];
  EXPECT_FALSE(std::filesystem::exists(job.output));
}

TEST(ElastifyJob, LeavesFoldersOfOthersAlone) {
  const Folder folder;
  std::filesystem::create_directories(folder / "photos/cat");
  const auto made = run_elastify(test::small_job(folder / "photos"));
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument) << made.status().message();
  EXPECT_FALSE(std::filesystem::exists(folder / "photos/manifest.json"));
}

// Loading, timing, judging and saving are part of the budget, not only teaching.
// Bounds are wide, as other work on the machine takes time, too; what is not counted takes far longer.
TEST(ElastifyJob, KeepsItsBudget) {
#ifdef LIMBER_SANITIZED
  GTEST_SKIP() << "a budget of time is too small for everything around teaching";
#endif
  const Folder folder;
  ElastifyJobOptions job = test::small_job(folder / "elastic");
  job.budget = 4;
  Watcher watcher;
  const auto made = test::elastify_in_time(job, watcher.control());
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_LT(made->taught_s, job.budget);
  EXPECT_LT(made->seconds, 2 * job.budget + 4);
  EXPECT_EQ(made->images.part, JudgedImages::Part::kTest);
  EXPECT_GT(made->taught_s, 0);

  job.resume = true;  // next to nothing is left of the budget
  const double taught = made->taught_s;
  const auto again = run_elastify(job);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_GE(again->taught_s, taught - 0.1);  // the folder keeps tenths of a second
  EXPECT_LT(again->taught_s, taught + job.budget);
  ASSERT_EQ(again->judged.size(), made->judged.size());
  for (size_t i = 0; i < made->judged.size(); ++i) {
    EXPECT_EQ(again->judged[i].variant, made->judged[i].variant);
    EXPECT_NEAR(again->judged[i].share, made->judged[i].share, 1e-6);
  }
}

// Images that variants were tuned on say nothing about them: a part is held out, and later jobs know which.
TEST(ElastifyJob, HoldsImagesOutOfDataWithoutATestPart) {
  const Folder folder;
  const std::string data = test::write_images(folder, 80);
  ElastifyJobOptions job = test::small_job(folder / "elastic", data);
  const auto made = test::elastify_in_time(job);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_FALSE(made->judged.empty());
  EXPECT_EQ(made->images.part, JudgedImages::Part::kHeldOut);
  EXPECT_EQ(made->images.count, 8);
  EXPECT_EQ(made->judged[0].variant, original_variant(made->folder.model));
  EXPECT_EQ(made->judged[0].share, 1);
  for (size_t i = 1; i < made->judged.size(); ++i)
    EXPECT_LT(made->judged[i].share, made->judged[i - 1].share);
  EXPECT_GE(made->range_accuracy, 0);
  EXPECT_LE(made->range_accuracy, 1);
  EXPECT_LE(made->size_ratio, job.size_limit);

  SearchJobOptions search;
  search.model = job.output;
  search.threads = 1;
  search.source.data = data;
  search.latency = 10;
  search.evaluations = 3;
  const auto found = run_search(search);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->images.part, JudgedImages::Part::kHeldOut);
  EXPECT_EQ(found->images.count, 8);
  EXPECT_EQ(found->original_accuracy, made->judged[0].accuracy) << "not the same images";
  Watcher watcher;
  search.source.data = test::write_images(folder, 90);  // other data: nobody knows what was learnt from
  const auto other = run_search(search, watcher.control());
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(other->images.part, JudgedImages::Part::kWhole);
  ASSERT_FALSE(watcher.notes.empty());
  EXPECT_EQ(watcher.notes[0].first, NoteKind::kWarning);

  job.resume = true;
  job.budget *= 2;
  EXPECT_EQ(run_elastify(job).status().code(), Code::kInvalidArgument) << "the data changed";
}

TEST(ElastifyJob, MakesAlternativesWithoutTeaching) {
  const Folder folder;
  ElastifyJobOptions job = test::small_job(folder / "elastic");
  job.budget = 0;
  Watcher watcher;
  const auto made = run_elastify(job, watcher.control());
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_GT(made->alternatives, 0u);
  EXPECT_TRUE(made->judged.empty());
  EXPECT_EQ(watcher.stages, std::vector<std::string>{"making alternatives"});
  EXPECT_TRUE(is_elastic(job.output));
}

TEST(ElastifyJob, StopsAndGoesOn) {
  const Folder folder;
  ElastifyJobOptions job = test::small_job(folder / "elastic");
  job.budget = 16;
  Watcher watcher("teaching");
  const auto stopped = test::elastify_in_time(job, watcher.control());
  ASSERT_TRUE(stopped.ok()) << stopped.status().message();
  EXPECT_TRUE(stopped->stopped);
  EXPECT_TRUE(stopped->judged.empty());
  EXPECT_LT(stopped->taught_s, 0.5 * job.budget);
  job.resume = true;
  job.budget = stopped->seconds + 3;
  const auto done = run_elastify(job);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_FALSE(done->stopped);
  EXPECT_GT(done->taught_s, stopped->taught_s);
}

TEST(JudgedImages, HeldOutNotesAreReadBackOrNotAtAll) {
  ElasticInfo info;
  EXPECT_FALSE(read_held(info, kHeldNote).has_value());
  const HeldOut held{100, 10, 7};
  write_held(info, kHeldNote, held);
  EXPECT_EQ(read_held(info, kHeldNote), held);
  for (const char* damaged :
       {"", "x", "100 10 7", R"({"size":100,"count":10})", R"({"size":100,"count":0,"seed":1})",
        R"({"size":10,"count":10,"seed":1})", R"({"size":5,"count":-3,"seed":1})"}) {
    info.notes[std::string(kHeldNote)] = damaged;
    EXPECT_FALSE(read_held(info, kHeldNote).has_value()) << damaged;
  }
}

}  // namespace
}  // namespace limber
