#include "jobs/loadgen_job.h"

#include "tests/jobs/elastic.h"
#include "tests/serve/fake_server.h"

namespace limber {
namespace {

using test::FakeModel;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;
using test::kNaN;
using test::Watcher;

LoadgenJobOptions job_of(const std::string& url) {
  LoadgenJobOptions job;
  job.url = url;
  job.rate = 400;
  job.seconds = 0.1;
  job.arrivals = Arrivals::kConstant;
  return job;
}

// Calls every image class 3.
FakeModel image_model(int64_t classes = 10) {
  FakeModel model{.dims = {3, 32, 32}, .classes = classes, .variant = "original"};
  model.compute = [](const std::vector<float>&) { return std::vector<float>{0, 0, 0, 1, 0}; };
  return model;
}

TEST(LoadgenJob, SendsRandomNumbersToTheOnlyModel) {
  const FakeServer server{FakeModel()};
  const auto done = run_loadgen(job_of(server.url()));
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->target.model, "m");
  EXPECT_EQ(done->summary.requests, 40);
  EXPECT_EQ(done->summary.good, 40);
  EXPECT_EQ(done->images.count, 0);
  EXPECT_FALSE(done->summary.accuracy().has_value());
  EXPECT_GT(done->started_unix, 1e9);
}

TEST(LoadgenJob, JudgesAnswersToLabelledImages) {
  const FakeServer server{image_model()};
  LoadgenJobOptions job = job_of(server.url());
  job.model = "m";
  job.data = "synthetic:count=60";
  job.images = 20;
  const Folder folder;
  job.records = folder / "records.csv";
  const auto done = run_loadgen(job);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->images.count, 20);
  EXPECT_EQ(done->summary.judged, 40);
  EXPECT_EQ(done->variants, std::vector<std::string>{"original"});
  const auto text = os_files().read(job.records, 1 << 20);
  ASSERT_TRUE(text.ok());
  int64_t lines = 0, threes = 0;
  for (size_t at = 0; at < text->size(); ++lines) {
    const size_t end = text->find('\n', at);
    threes += text->substr(at, end - at).ends_with(",200,\"original\",3,3,0") ? 1 : 0;
    at = end + 1;
  }
  EXPECT_EQ(lines, 41) << "a head, and a line for each";
  EXPECT_EQ(done->summary.right, threes) << "the fake calls everything class 3";
  EXPECT_LT(done->summary.right, 40);
}

// A folder that knows its classes and pixels needs no options; what it held out is what is sent.
TEST(LoadgenJob, AModelOnThisMachineSaysWhatImagesBecome) {
  const Folder folder;
  ElastifyJobOptions elastify = test::small_job(folder / "elastic", test::write_images(folder, 80));
  elastify.budget = 0;
  const auto made = run_elastify(elastify);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Preprocess& input = made->folder.info.input;
  FakeModel model = image_model(static_cast<int64_t>(made->folder.info.classes.size()));
  model.dims = {input.channels, input.height, input.width};
  const FakeServer server{model};
  LoadgenJobOptions job = job_of(server.url());
  job.data = elastify.data;
  job.like = elastify.output;
  const auto done = run_loadgen(job);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->images.part, JudgedImages::Part::kHeldOut);
  EXPECT_EQ(done->images.count, 8);
  EXPECT_EQ(done->summary.good, 40);
}

TEST(LoadgenJob, SaysWhenLabelsMeanNothing) {
  const FakeServer server{image_model(7)};
  LoadgenJobOptions job = job_of(server.url());
  job.data = "synthetic:count=20";
  Watcher watcher;
  const auto done = run_loadgen(job, watcher.control());
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->summary.judged, 0);
  ASSERT_FALSE(watcher.notes.empty());
  EXPECT_NE(watcher.notes.back().second.find("nobody knows"), std::string::npos);
}

TEST(LoadgenJob, ClosedLoopAndMalformedRequests) {
  const FakeServer server{FakeModel()};
  LoadgenJobOptions job = job_of(server.url());
  job.closed = 2;
  job.seconds = 0.2;
  job.malformed = 0.5;
  const auto done = run_loadgen(job);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_GT(done->summary.good, 0);
  EXPECT_GT(done->summary.malformed, 0);
  EXPECT_EQ(done->summary.malformed_refused, done->summary.malformed);
  EXPECT_TRUE(done->malformed.empty());
}

TEST(LoadgenJob, StopsAndReportsOnWhatWasSent) {
  Watcher watcher;
  JobControl control = watcher.control();
  std::atomic<bool> stop{false};
  control.stop = &stop;
  FakeModel model;
  const FakeServer server([&](const FakeRequest& request) {
    if (request.path.ends_with("/infer")) stop = true;
    return model(request);
  });
  LoadgenJobOptions job = job_of(server.url());
  job.seconds = 1000;
  const auto done = run_loadgen(job, control);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_TRUE(done->stopped);
  EXPECT_GT(done->summary.requests, 0);
  EXPECT_LT(done->summary.requests, 100000);
}

TEST(LoadgenJob, RefusesWhatCannotWork) {
  const auto refuses = [&](auto change, const std::string& part) {
    LoadgenJobOptions job = job_of("127.0.0.1:1");
    change(job);
    const auto done = run_loadgen(job);
    EXPECT_EQ(done.status().code(), Code::kInvalidArgument) << part;
    EXPECT_NE(done.status().message().find(part), std::string::npos) << done.status().message();
  };
  refuses([](LoadgenJobOptions& job) { job.url = "a:b"; }, "port");
  refuses([](LoadgenJobOptions& job) { job.rate = -1; }, "rate");
  refuses([](LoadgenJobOptions& job) { job.seconds = kNaN; }, "phase");
  refuses([](LoadgenJobOptions& job) { job.closed = -1; }, "closed");
  refuses([](LoadgenJobOptions& job) { job.closed = 2, job.phases = {{1, 1}}; }, "phases");
  refuses([](LoadgenJobOptions& job) { job.connections = 0; }, "connections");
  refuses([](LoadgenJobOptions& job) { job.deadline = kNaN; }, "deadline");
  refuses([](LoadgenJobOptions& job) { job.give_up = 0; }, "give_up");
  refuses([](LoadgenJobOptions& job) { job.malformed = 2; }, "malformed");
  refuses([](LoadgenJobOptions& job) { job.images = 0; }, "images");
  refuses([](LoadgenJobOptions& job) { job.like = "x"; }, "like");
  EXPECT_EQ(run_loadgen(job_of("127.0.0.1:1")).status().code(), Code::kIo) << "nobody listens there";
}

TEST(LoadgenJob, RefusesImagesForAModelThatTakesNone) {
  const FakeServer server{FakeModel()};
  LoadgenJobOptions job = job_of(server.url());
  job.data = "synthetic:count=20";
  const auto done = run_loadgen(job);
  EXPECT_EQ(done.status().code(), Code::kInvalidArgument);
  EXPECT_NE(done.status().message().find("takes no images"), std::string::npos) << done.status().message();
}

}  // namespace
}  // namespace limber
