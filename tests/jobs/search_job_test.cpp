#include "jobs/search_job.h"

#include <filesystem>
#include <fstream>

#include "jobs/elastic_report.h"
#include "jobs/exits_job.h"
#include "tests/jobs/elastic.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

using test::kNaN;
using test::Watcher;

SearchJobOptions job_for(const std::string& folder) {
  SearchJobOptions job;
  job.model = folder;
  job.threads = 1;
  job.source.data = "synthetic:count=48";
  job.source.images = 32;
  job.latency_share = 0.99;
  job.evaluations = 8;
  return job;
}

TEST(SearchJob, RefusesWhatCannotWork) {
  const auto refuses = [&](auto change, const std::string& part) {
    SearchJobOptions job = job_for("builtin:resnet8");
    change(job);
    const auto found = run_search(job);
    EXPECT_EQ(found.status().code(), Code::kInvalidArgument) << part;
    EXPECT_NE(found.status().message().find(part), std::string::npos) << found.status().message();
    EXPECT_EQ(found.status().message().find("--"), std::string::npos) << found.status().message();
  };
  refuses([](SearchJobOptions&) {}, "no elastic model");
  refuses([](SearchJobOptions& job) { job.latency_share = 0; }, "latency is missing");
  refuses([](SearchJobOptions& job) { job.latency_share = kNaN; }, "latency_share");
  refuses([](SearchJobOptions& job) { job.latency_share = 1.5; }, "latency_share");
  refuses([](SearchJobOptions& job) { job.latency = kNaN; }, "latency");
  refuses([](SearchJobOptions& job) { job.latency = -1; }, "latency");
  refuses([](SearchJobOptions& job) { job.margin = 1; }, "margin");
  refuses([](SearchJobOptions& job) { job.margin = kNaN; }, "margin");
  refuses([](SearchJobOptions& job) { job.evaluations = 0; }, "evaluations");
  refuses([](SearchJobOptions& job) { job.max_params = kNaN; }, "max_params");
  refuses([](SearchJobOptions& job) { job.max_flops = -1; }, "max_flops");
  refuses([](SearchJobOptions& job) { job.source.images = 0; }, "images");
  refuses([](SearchJobOptions& job) { job.source.data = ""; }, "data");
}

TEST(ExitsJob, RefusesWhatCannotWork) {
  const auto refuses = [&](auto change, const std::string& part) {
    ExitsJobOptions job;
    job.model = "builtin:resnet8";
    job.data = "synthetic:count=48";
    change(job);
    const auto found = run_exits(job);
    EXPECT_EQ(found.status().code(), Code::kInvalidArgument) << part;
    EXPECT_NE(found.status().message().find(part), std::string::npos) << found.status().message();
    EXPECT_EQ(found.status().message().find("--"), std::string::npos) << found.status().message();
  };
  refuses([](ExitsJobOptions&) {}, "no elastic model");
  refuses([](ExitsJobOptions& job) { job.max_drop = kNaN; }, "max_drop");
  refuses([](ExitsJobOptions& job) { job.storage = 0; }, "storage");
  refuses([](ExitsJobOptions& job) { job.rate = kNaN; }, "rate");
  refuses([](ExitsJobOptions& job) { job.budget = kNaN; }, "budget");
  refuses([](ExitsJobOptions& job) { job.count = 0; }, "count");
  refuses([](ExitsJobOptions& job) { job.images = 0; }, "images");
  refuses([](ExitsJobOptions& job) { job.held = -1; }, "held");
  refuses([](ExitsJobOptions& job) { job.data = ""; }, "data");
  refuses([](ExitsJobOptions& job) { job.dropout = 1; }, "dropout");
  refuses([](ExitsJobOptions& job) { job.dropout = kNaN; }, "dropout");
  refuses([](ExitsJobOptions& job) { job.kept_weights = 0; }, "kept_weights");
  refuses([](ExitsJobOptions& job) { job.kept_weights = kNaN; }, "kept_weights");
  refuses([](ExitsJobOptions& job) { job.order = TuningOrder::kStages; }, "tuned");
}

TEST(SearchJob, KeepsLimitsOfSizeAndOperations) {
  const Folder folder;
  ElastifyJobOptions elastify = test::small_job(folder / "elastic");
  elastify.budget = 0;
  ASSERT_TRUE(run_elastify(elastify).ok());
  SearchJobOptions job = job_for(elastify.output);
  job.latency_share = 1;
  job.margin = 0;
  job.evaluations = 4;
  const auto free = run_search(job);
  ASSERT_TRUE(free.ok()) << free.status().message();
  EXPECT_EQ(free->known, 0U);
  const auto original = static_cast<double>(free->original_parameters);
  job.max_params = 0.8 * original;
  const auto small = run_search(job);
  ASSERT_TRUE(small.ok()) << small.status().message();
  EXPECT_LE(static_cast<double>(small->best_parameters), job.max_params);
  EXPECT_GT(small->known, 0U) << "the first search is remembered";
  job.max_params = 1;
  const auto none = run_search(job);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("allow more"), std::string::npos) << none.status().message();
  job.max_params = 0;
  job.max_memory = 1024;
  const auto tight = run_search(job);
  ASSERT_FALSE(tight.ok()) << "a kilobyte";
  EXPECT_NE(tight.status().message().find("allow more"), std::string::npos) << tight.status().message();
}

// Variants and exits are judged by different images: no front and no lookup mixes them.
TEST(ElasticJobs, KeepVariantsAndExitsApart) {
  const Folder folder;
  ElastifyJobOptions elastify = test::small_job(folder / "elastic");
  elastify.budget = 0;
  const auto made = run_elastify(elastify);
  ASSERT_TRUE(made.ok()) << made.status().message();

  SearchJobOptions search = job_for(elastify.output);
  search.evaluations = 1000000;
  Watcher watcher("searching");
  const auto stopped = run_search(search, watcher.control());
  ASSERT_TRUE(stopped.ok()) << stopped.status().message();
  ASSERT_TRUE(stopped->stopped);
  ASSERT_GT(stopped->evaluated, 0u);
  search.evaluations = 4;
  const auto found = run_search(search);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->known, stopped->evaluated) << "what was evaluated is kept";
  EXPECT_EQ(found->images.text(), "32 images of the test part of synthetic:count=48");

  ExitsJobOptions exits;
  exits.model = elastify.output;
  exits.data = "synthetic:count=160";
  exits.batch = 16;
  exits.threads = 1;
  exits.storage = 0.2;
  exits.max_drop = 0.05;
  exits.images = 10;
  Result<ExitsOutcome> exited = invalid("not run");
  for (exits.budget = 2; exits.budget < 100 && !exited.ok(); exits.budget *= 2) exited = run_exits(exits);
  ASSERT_TRUE(exited.ok()) << exited.status().message();
  EXPECT_EQ(exited->held_images.part, JudgedImages::Part::kHeldOut);
  EXPECT_EQ(exited->held_images.count, 16);
  EXPECT_EQ(exited->test_images.part, JudgedImages::Part::kTest);

  const auto report = read_elastic_report(elastify.output);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->machines.size(), 2u);
  for (const ElasticReport::Machine& machine : report->machines) {
    const bool with_exits = is_exits_context(machine.name);
    for (const VariantPoint& point : machine.points) {
      EXPECT_EQ(point.images, with_exits ? 16 : 32) << machine.name << " " << point.name;
      EXPECT_TRUE(with_exits || point.kind != VariantPoint::Kind::kExits) << point.name;
    }
    EXPECT_FALSE(machine.front.empty());
  }
  // What was asked for and found is in the history; what was stopped is not.
  ASSERT_EQ(report->searches.size(), 1u);
  const SearchRecord& recorded = report->searches[0];
  EXPECT_EQ(recorded.variant, print(found->model, found->best.variant));
  EXPECT_EQ(recorded.measured_s, found->best_s);
  EXPECT_EQ(recorded.latency_share, search.latency_share);
  EXPECT_EQ(recorded.limit_s, found->limit_s);
  EXPECT_EQ(recorded.judged.images, found->images.text());
  EXPECT_EQ(recorded.known, static_cast<int64_t>(found->known));
  EXPECT_EQ(recorded.seconds, found->seconds);
  EXPECT_EQ(recorded.parts.size(), 4u);
  ASSERT_EQ(report->exits.size(), 1u);
  EXPECT_TRUE(report->exits[0].made);
  EXPECT_EQ(report->exits[0].variant, print(exited->folder.model, exited->variant));
  EXPECT_EQ(report->exits[0].measured_s, exited->real.seconds);
  EXPECT_EQ(report->exits[0].exits.size(), exited->exits.size());
  EXPECT_EQ(report->exits[0].test_accuracy, exited->test_point.accuracy);
  // Other images: nothing is lost, and nothing mixed.
  search.seed = 1;
  ASSERT_TRUE(run_search(search).ok());
  std::ofstream(history_in(elastify.output), std::ios::app) << "{\"kind\":\"search.result\"}\n";
  const auto later = read_elastic_report(elastify.output);
  EXPECT_EQ(later->searches.size(), 2u);
  ASSERT_EQ(later->damaged.size(), 1u);
  EXPECT_NE(later->damaged[0].find("history.jsonl:4: "), std::string::npos) << later->damaged[0];
  const auto loaded = load_elastic(elastify.output);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto index = *(*VariantTable::open(variants_in(elastify.output), loaded->model))->index();
  EXPECT_EQ(index->groups().size(), 3u);
  for (const VariantGroup& group : index->groups()) {
    if (is_exits_context(group.context)) {
      EXPECT_GE(index->all(group).size(), exited->exits.size() + 1);
    }
  }
}

}  // namespace
}  // namespace limber
