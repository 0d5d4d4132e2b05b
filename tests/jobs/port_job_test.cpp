#include "jobs/port_job.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "io/onnx.h"
#include "tests/jobs/elastic.h"
#include "variant/elastic_model.h"

namespace limber {
namespace {

using test::Watcher;

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string goals_file(const Folder& folder, const std::string& goals,
                       const std::string& name = "goals.json") {
  write(
      folder / name,
      R"({"format": 1, "devices": {"slow": {"gflops": 1, "gbs": 1}, "fast": {"gflops": 8, "gbs": 8}}, "goals": [)" +
          goals + "]}");
  return folder / name;
}

std::string goal(const std::string& name, const std::string& device, const std::string& targets) {
  return fmt::format(R"({{"name": "{}", "device": "{}", "targets": {{{}}}}})", name, device, targets);
}

PortJobOptions port_job(const Folder& folder, const std::string& goals) {
  PortJobOptions job;
  job.goals = goals;
  job.model = "builtin:resnet8";
  job.data = "synthetic:count=64";
  job.output = folder / "ported";
  job.batch = 8;
  job.threads = 1;
  job.workers = 0;
  job.images = 32;
  job.epochs = 0;
  job.step_images = 0;
  job.evaluations = 8;
  return job;
}

std::string elastic_model(const Folder& folder) {
  ElastifyJobOptions elastify = test::small_job(folder / "elastic");
  elastify.budget = 0;
  EXPECT_TRUE(run_elastify(elastify).ok());
  return elastify.output;
}

const PortOutcome::Entry& entry(const PortOutcome& outcome, const std::string& name) {
  for (const auto& one : outcome.goals)
    if (one.record.name == name) return one;
  ADD_FAILURE() << name;
  return outcome.goals.front();
}

// What a file takes is within the goal, as anybody can see who loads it.
void expect_kept(const PortJobOptions& job, const GoalRecord& record) {
  EXPECT_EQ(record.refused, "");
  const auto model = import_onnx(job.output + "/" + record.name + "/model.onnx");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto cost = cost_of(model->graph);
  ASSERT_TRUE(cost.ok());
  const double parameters = static_cast<double>(cost->parameter_bytes) / 4;
  EXPECT_EQ(parameters, record.parameters);
  EXPECT_LE(parameters, record.parameters_limit.value_or(1e18));
  EXPECT_LE(record.promised_s, record.latency_limit.value_or(1e18));
  EXPECT_LE(record.memory, record.memory_limit.value_or(1e18));
  EXPECT_GT(record.measured_s, 0);
  EXPECT_GE(record.accuracy.value_or(-1), 0);
}

TEST(PortJob, RefusesWhatCannotWork) {
  const Folder folder;
  const auto refuses = [&](auto change, const std::string& part) {
    PortJobOptions job = port_job(folder, folder / "none.json");
    change(job);
    const auto found = run_port(job);
    ASSERT_FALSE(found.ok()) << part;
    EXPECT_NE(found.status().message().find(part), std::string::npos) << found.status().message();
    EXPECT_EQ(found.status().message().find("--"), std::string::npos) << found.status().message();
  };
  refuses([](PortJobOptions&) {}, "none.json");
  refuses([](PortJobOptions& job) { job.goals = ""; }, "goals");
  refuses([](PortJobOptions& job) { job.model = ""; }, "model");
  refuses([](PortJobOptions& job) { job.data = ""; }, "data");
  refuses([](PortJobOptions& job) { job.output = ""; }, "output");
  refuses([](PortJobOptions& job) { job.images = 0; }, "images");
  refuses([](PortJobOptions& job) { job.epochs = -1; }, "epochs");
  refuses([](PortJobOptions& job) { job.rate = test::kNaN; }, "rate");
  refuses([](PortJobOptions& job) { job.evaluations = 0; }, "evaluations");
  refuses([](PortJobOptions& job) { job.step_images = test::kNaN; }, "step_images");
  refuses([](PortJobOptions& job) { job.budget = test::kNaN; }, "budget");
  refuses([](PortJobOptions& job) { job.plan_only = true, job.by = PortBy::kSupernet; }, "plan_only");
  const std::string wrong = goals_file(folder, goal("a", "slow", R"("latency": "soon")"), "wrong.json");
  refuses([&](PortJobOptions& job) { job.goals = wrong; }, "goals[0].targets.latency: ");
  EXPECT_FALSE(std::filesystem::exists(folder / "ported")) << "nothing is written before goals are known";
}

TEST(PortJob, SupernetKeepsEveryGoalThatCanBeKept) {
  const Folder folder;
  const std::string elastic = elastic_model(folder);
  PortJobOptions job = port_job(folder, goals_file(folder, goal("all", "slow", R"("latency": 10)")));
  job.model = elastic;
  job.plan_only = true;
  const auto plan = run_port(job);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_FALSE(std::filesystem::exists(job.output));
  EXPECT_FALSE(plan->goals[0].done);
  job.plan_only = false;
  const double whole = plan->model.operations / 1e9 + plan->model.moved_bytes / 1e9;
  const auto latency = [&](double share) { return fmt::format(R"("latency": {})", share * whole); };
  job.goals = goals_file(
      folder, goal("all", "slow", R"("latency": 10)") + "," + goal("less", "slow", latency(0.9)) + "," +
                  goal("quick", "fast", latency(0.9 / 8)) + "," +
                  goal("small", "slow", fmt::format(R"("parameters": {})", 0.8 * plan->model.parameters)) +
                  "," + goal("light", "slow", fmt::format(R"("memory": {})", plan->model.memory - 1)) + "," +
                  goal("never", "slow", R"("parameters": 3)") + "," +
                  goal("sure", "slow", R"("latency": 10, "accuracy": 1)") + "," +
                  goal("this", "here", R"("latency": 10, "memory": "1G")"));
  Watcher watcher;
  const auto done = run_port(job, watcher.control());
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->executor, "supernet");
  for (const char* kept : {"all", "less", "quick", "small", "light", "this"})
    expect_kept(job, entry(*done, kept).record);
  EXPECT_EQ(done->kept, 6u);
  EXPECT_EQ(done->refused, 2u);
  const std::string refused = entry(*done, "never").record.refused;
  EXPECT_TRUE(refused.starts_with("goals[5].targets.parameters: 3 is out of reach; the least is "))
      << refused;
  EXPECT_FALSE(entry(*done, "never").record.made);
  const std::string unsure = entry(*done, "sure").record.refused;
  EXPECT_TRUE(unsure.starts_with("goals[6].targets.accuracy: ")) << unsure;
  EXPECT_TRUE(entry(*done, "sure").record.made) << "the nearest there is";
  EXPECT_EQ(entry(*done, "less").record.parent, "all");
  EXPECT_TRUE(std::filesystem::exists(job.output + "/port.json"));
  EXPECT_LE(done->tree_way, done->alone_way);
  EXPECT_EQ(std::count(watcher.stages.begin(), watcher.stages.end(), "porting"), 1);
}

TEST(PortJob, FiltersShrinkFromGoalToGoal) {
  const Folder folder;
  PortJobOptions job =
      port_job(folder, goals_file(folder, goal("a", "slow", R"("parameters": 60000)") + "," +
                                              goal("b", "slow", R"("parameters": 40000)") + "," +
                                              goal("c", "slow", R"("parameters": 5)")));
  job.epochs = 1;
  job.step_images = 0.13;
  const auto done = run_port(job);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->executor, "filters");
  expect_kept(job, entry(*done, "a").record);
  expect_kept(job, entry(*done, "b").record);
  EXPECT_EQ(entry(*done, "b").record.parent, "a");
  EXPECT_GT(entry(*done, "b").record.steps, 0);
  EXPECT_LT(entry(*done, "b").record.way, std::log(done->model.parameters / 40000)) << "it began at a";
  EXPECT_GT(entry(*done, "b").record.parameters, 0.7 * 40000) << "no more is cut than must be";
  EXPECT_TRUE(entry(*done, "c").record.refused.find("out of reach") != std::string::npos);
}

TEST(PortJob, GoesOnWithoutDoingAnythingTwice) {
  const Folder folder;
  const std::string first = goal("a", "slow", R"("parameters": 60000)");
  PortJobOptions job = port_job(folder, goals_file(folder, first));
  ASSERT_TRUE(run_port(job).ok());
  const auto again = run_port(job);
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.status().message().find("resume"), std::string::npos);
  const auto time = [&](const std::string& name) {
    return std::filesystem::last_write_time(job.output + "/" + name + "/model.onnx");
  };
  const auto before = time("a");
  job.resume = true;
  // Killed while the second was written: there is a model, and nobody says what it is.
  goals_file(folder, first + "," + goal("b", "slow", R"("parameters": 50000)"));
  std::filesystem::create_directories(job.output + "/b");
  write(job.output + "/b/model.onnx", "half");
  const auto done = run_port(job);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->known, 1u);
  EXPECT_EQ(done->kept, 2u);
  EXPECT_EQ(time("a"), before);
  expect_kept(job, entry(*done, "b").record);
  // Another goal of the same name, and a record that nobody can read.
  goals_file(folder,
             goal("a", "slow", R"("parameters": 61000)") + "," + goal("b", "slow", R"("parameters": 50000)"));
  write(job.output + "/b/goal.json", "{");
  Watcher watcher;
  const auto anew = run_port(job, watcher.control());
  ASSERT_TRUE(anew.ok()) << anew.status().message();
  EXPECT_EQ(anew->known, 0u);
  EXPECT_NE(time("a"), before);
}

TEST(PortJob, StopsAndTakesGoalsThatAreAdded) {
  const Folder folder;
  const std::string a = goal("a", "slow", R"("parameters": 60000)"),
                    b = goal("b", "slow", R"("parameters": 50000)");
  PortJobOptions job = port_job(folder, goals_file(folder, a));
  // Adds a goal when the first is under way.
  class Adder : public JobObserver {
   public:
    explicit Adder(std::function<void()> add) : add_(std::move(add)) {}
    void on_progress(const JobProgress& progress) override {
      if (progress.stage == "porting" && add_) std::exchange(add_, nullptr)();
    }

   private:
    std::function<void()> add_;
  } adder([&] { goals_file(folder, a + "," + b); });
  const auto done = run_port(job, {.observer = &adder});
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->kept, 2u);
  EXPECT_EQ(entry(*done, "b").record.parent, "a");
  goals_file(folder, a + "," + b + "," + goal("c", "slow", R"("parameters": 30000)"));
  job.resume = true;
  Watcher watcher("porting");
  const auto stopped = run_port(job, watcher.control());
  ASSERT_TRUE(stopped.ok()) << stopped.status().message();
  EXPECT_TRUE(stopped->stopped);
  EXPECT_EQ(stopped->kept, 2u);
  EXPECT_FALSE(entry(*stopped, "c").done);
}

}  // namespace
}  // namespace limber
