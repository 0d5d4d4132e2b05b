#include "serve/model_server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "base/clock.h"
#include "tests/serve/elastic_source.h"

namespace limber {
namespace {

using test::ask;
using test::request_for;

// Idle until somebody says otherwise.
class DialSensor final : public DeviceSensor {
 public:
  explicit DialSensor(const std::atomic<double>& others) : others_(others) {}
  Result<DeviceSample> sample() override {
    DeviceSample sample;
    sample.time_s = now_seconds();
    sample.cpu_others = others_.load();
    sample.cpu_busy = others_.load();
    return sample;
  }

 private:
  const std::atomic<double>& others_;
};

class OneModel final : public ModelRepository {
 public:
  std::vector<std::string> names() const override { return {"m"}; }
  Result<ServedSource> open(const std::string& name) const override {
    if (name == "broken") return error(Code::kCorrupt, "broken: is damaged");
    if (name != "m") return error(Code::kNotFound, "no model '{}'", name);
    ServedSource source = test::elastic_source(1);
    source.version = fmt::format("{}", version);
    return source;
  }
  std::vector<std::shared_ptr<Backend>> backends() const override { return test::served_backends(); }
  int version = 1;
};

struct Fixture {
  explicit Fixture(Policy policy = Policy::kForecast) {
    ModelServerOptions options;
    options.version = "1.2.3";
    options.model.governor.policy = policy;
    options.model.governor.budget_s = 0.5;
    options.model.least_share = 0;  // all variants, however they were judged
    server = std::make_unique<ModelServer>(repository, std::make_unique<DialSensor>(others), options);
  }
  std::atomic<double> others = 0;
  OneModel repository;
  std::unique_ptr<ModelServer> server;
};

TEST(ModelServer, IsReadyWhenItsModelsAre) {
  Fixture f;
  EXPECT_TRUE(f.server->live());
  EXPECT_FALSE(f.server->ready());
  EXPECT_EQ(f.server->model_ready("m", "").refusal, Refusal::kNotFound);
  ASSERT_TRUE(f.server->load("m").ok());
  EXPECT_TRUE(f.server->ready());
  EXPECT_TRUE(f.server->model_ready("m", "1").ok());
  EXPECT_EQ(f.server->model_ready("m", "7").message, "model 'm' has no version '7'; there is: 1");
  ModelMetadata metadata;
  ASSERT_TRUE(f.server->metadata("m", "", metadata).ok());
  EXPECT_EQ(metadata.inputs[0].shape, (std::vector<int64_t>{-1, 3, 8, 8}));
  f.server->drain();
  EXPECT_FALSE(f.server->ready());
  EXPECT_EQ(f.server->load("m").refusal, Refusal::kUnavailable);
}

TEST(ModelServer, IsNotReadyBeforeAllThatWereAnnouncedWereTried) {
  Fixture f;
  f.server->announce({"broken", "m"});
  EXPECT_FALSE(f.server->ready());
  EXPECT_EQ(f.server->index(false).at(0).state, "LOADING");
  ASSERT_TRUE(f.server->load("m").ok());
  EXPECT_FALSE(f.server->ready()) << "the other is still to come";
  EXPECT_EQ(f.server->open("broken").code(), Code::kCorrupt);
  // What cannot be loaded does not take away what can, now or later.
  EXPECT_TRUE(f.server->ready());
  EXPECT_EQ(f.server->load("broken").refusal, Refusal::kBadRequest);
  EXPECT_EQ(f.server->load("nobody").refusal, Refusal::kNotFound);
  EXPECT_TRUE(f.server->ready());
  ASSERT_TRUE(f.server->unload("m").ok());
  EXPECT_FALSE(f.server->ready()) << "there is nothing left to ask";
}

TEST(ModelServer, SaysHowFarFromTheLimitsAModelIs) {
  const auto said = [](auto change) {
    Fixture f;
    ModelServerOptions options;
    change(options.model.governor.limits);
    ModelServer server(f.repository, std::make_unique<DialSensor>(f.others), options);
    return server.load("m").message;
  };
  EXPECT_EQ(said([](ChoiceLimits& l) { l.accuracy = 0.99; }),
            "m: its best variant has accuracy 0.95, and at least 0.99 was asked for");
  EXPECT_EQ(said([](ChoiceLimits& l) { l.accuracy = 0.5; }), "");
}

TEST(ModelServer, GettingReadyEndsEarlyWhenNobodyWantsItAnyMore) {
  Fixture f;
  ModelServerOptions options;
  options.model.least_share = 0;
  const std::atomic<bool> stop = true;
  options.model.stop = &stop;
  ModelServer server(f.repository, std::make_unique<DialSensor>(f.others), options);
  ASSERT_TRUE(server.load("m").ok());
  size_t warm = 0;
  for (const auto& entry : server.models().at(0).second->view().pool) warm += entry.warm ? 1 : 0;
  EXPECT_LE(warm, 2U);  // the one that is active, and one that it might have been
}

TEST(ModelServer, AFailedLoadLeavesWhatWasThere) {
  Fixture f;
  ASSERT_TRUE(f.server->load("m").ok());
  EXPECT_EQ(f.server->load("nobody").refusal, Refusal::kNotFound);
  EXPECT_EQ(f.server->load("broken").message, "broken: is damaged");
  const auto source = test::elastic_source(1);
  EXPECT_TRUE(ask(*f.server, request_for(source, test::random_images(1))).status.ok());
  // It stands in the index with its reason.
  bool listed = false;
  for (const RepositoryEntry& entry : f.server->index(false))
    listed |= entry.name == "broken" && entry.reason == "broken: is damaged";
  EXPECT_TRUE(listed);
  EXPECT_EQ(f.server->index(true).size(), 1U);
  // A newer version takes over.
  f.repository.version = 2;
  ASSERT_TRUE(f.server->load("m").ok());
  EXPECT_TRUE(f.server->model_ready("m", "2").ok());
  ASSERT_TRUE(f.server->unload("m").ok());
  EXPECT_EQ(ask(*f.server, request_for(source, test::random_images(1))).status.refusal, Refusal::kNotFound);
}

TEST(ModelServer, CountsWhatModelsDidThatAreGone) {
  Fixture f;
  const auto source = test::elastic_source(1);
  const auto ask_for = [&](int requests) {
    for (int i = 0; i < requests; ++i)
      ASSERT_TRUE(ask(*f.server, request_for(source, test::random_images(1))).status.ok());
  };
  ASSERT_TRUE(f.server->load("m").ok());
  ask_for(3);
  ASSERT_TRUE(f.server->load("m").ok());  // the same version once more
  ask_for(2);
  ASSERT_TRUE(f.server->unload("m").ok());
  f.repository.version = 2;
  ASSERT_TRUE(f.server->load("m").ok());
  ask_for(1);
  for (const bool drained : {false, true}) {
    if (drained) f.server->drain();
    const auto served = f.server->served();
    ASSERT_EQ(served.size(), 2U);
    EXPECT_EQ(served[0].version, "1");
    EXPECT_EQ(served[0].totals.answered, 5U);
    EXPECT_EQ(served[0].totals.rows, 10U);  // two images each
    EXPECT_EQ(served[1].version, "2");
    EXPECT_EQ(served[1].totals.requests, 1U);
  }
}

TEST(ModelServer, ReloadingUnderLoadLosesNothing) {
  Fixture f;
  ASSERT_TRUE(f.server->load("m").ok());
  const auto source = test::elastic_source(1);
  std::atomic<bool> over = false;
  std::atomic<int> failed = 0, answered = 0;
  std::thread client([&] {
    while (!over) {
      const InferResponse response = ask(*f.server, request_for(source, test::random_images(1)));
      // Who was handed the old model as it ended is told to come back.
      failed += response.status.ok() || response.status.refusal == Refusal::kUnavailable ? 0 : 1;
      answered += response.status.ok() ? 1 : 0;
    }
  });
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(f.server->load("m").ok());
  over = true;
  client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_GT(answered, 0);
}

TEST(ModelServer, StatusIsWhatThePageWants) {
  Fixture f;
  ASSERT_TRUE(f.server->load("m").ok());
  const auto source = test::elastic_source(1);
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(ask(*f.server, request_for(source, test::random_images(1))).status.ok());
  ASSERT_TRUE(f.server->force("m", source.variants[1].name).ok());
  const auto status = nlohmann::json::parse(f.server->status_json());
  EXPECT_EQ(status["version"], "1.2.3");
  EXPECT_EQ(status["policy"], "forecast");
  const auto& model = status["models"].at(0);
  EXPECT_EQ(model["requests_total"], 10);
  EXPECT_EQ(model["budget_s"], 0.5);
  EXPECT_EQ(model["pool"].size(), source.variants.size());
  EXPECT_EQ(model["switches"].size(), 1U);
  EXPECT_EQ(model["switches"][0]["to"], source.variants[1].name);
  for (const char* key : {"load", "forecast", "cpu_others"})
    EXPECT_TRUE(status["device"].contains(key)) << key;
}

TEST(ModelServer, MetricsArePrometheusText) {
  Fixture f;
  ASSERT_TRUE(f.server->load("m").ok());
  const auto source = test::elastic_source(1);
  for (int i = 0; i < 10; ++i) (void)ask(*f.server, request_for(source, test::random_images(1)));
  const std::string text = f.server->metrics();
  const std::regex sample(R"(^[a-z_]+(\{([a-z]+="([^"\\]|\\.)*",?)*\})? (-?[0-9.e+-]+|NaN|\+Inf)$)"),
      comment(R"(^# (HELP|TYPE) [a-z_]+ .+$)");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(std::regex_match(line, line.starts_with('#') ? comment : sample)) << line;
  EXPECT_NE(text.find("limber_inference_requests_total{model=\"m\",version=\"1\",code=\"ok\"} 10\n"),
            std::string::npos);
  EXPECT_NE(text.find("limber_inference_duration_seconds_count{model=\"m\",version=\"1\"} 10\n"),
            std::string::npos);
  EXPECT_NE(text.find("le=\"+Inf\"} 10\n"), std::string::npos);
}

// What is not followed shows none of it.
TEST(ModelServer, TellsHowAModelFollowsItsWorld) {
  Fixture f;
  ASSERT_TRUE(f.server->load("m").ok());
  const auto model = [&] { return nlohmann::json::parse(f.server->status_json())["models"].at(0); };
  EXPECT_FALSE(model().contains("adaptation"));
  EXPECT_EQ(f.server->metrics().find("limber_adaptation"), std::string::npos);

  Followed followed{.method = "bn", .state = "following", .net = "bn 12", .domain = 3, .estimate = 0.75};
  followed.seen = 1200;
  followed.bad = 7;
  followed.passed = 40;
  followed.domains = 4;
  followed.adapted = 2;
  followed.rejected = 5;
  followed.rolled_back = 1;
  followed.events.push_back({1e9, "rejected", 3, "less sure than before", 0.7, 1.5});
  followed.events.push_back({1e9 + 1, "domain", 3, "nothing like it before", {}, 0});
  followed.points.push_back({1e9, 3, 0.75, 0.5});
  f.server->models().at(0).second->tell_followed(std::make_shared<const Followed>(followed));
  const auto told = model()["adaptation"];
  EXPECT_EQ(told["method"], "bn");
  EXPECT_EQ(told["net"], "bn 12");
  EXPECT_EQ(told["domain"], 3);
  EXPECT_EQ(told["estimate"], 0.75);
  EXPECT_FALSE(told.contains("source_accuracy")) << "nobody knows";
  EXPECT_EQ(told["rolled_back_total"], 1);
  EXPECT_EQ(told["events"][0]["reason"], "less sure than before");
  EXPECT_FALSE(told["events"][1].contains("estimate"));
  EXPECT_EQ(told["points"][0]["original"], 0.5);
  const std::string metrics = f.server->metrics();
  for (const char* line :
       {"# TYPE limber_accuracy_estimate gauge", "limber_accuracy_estimate{model=\"m\",version=\"1\"} 0.75",
        "limber_domain{model=\"m\",version=\"1\"} 3",
        "limber_domain_changes_total{model=\"m\",version=\"1\"} 4",
        "limber_adaptations_total{model=\"m\",version=\"1\",result=\"rejected\"} 5",
        "limber_adaptation_rollbacks_total{model=\"m\",version=\"1\"} 1",
        "limber_adaptation_images_total{model=\"m\",version=\"1\",use=\"passed\"} 40"})
    EXPECT_NE(metrics.find(std::string(line) + "\n"), std::string::npos) << line << "\n" << metrics;
}

TEST(ModelServer, TellsWhoseTurnItIsToLearn) {
  Fixture f;
  ASSERT_TRUE(f.server->load("m").ok());
  const auto model = [&] { return nlohmann::json::parse(f.server->status_json())["models"].at(0); };
  EXPECT_FALSE(model().contains("turn"));
  EXPECT_EQ(f.server->metrics().find("limber_learning_turn"), std::string::npos);
  Scheduled turn{.importance = 2, .learns = true, .why = "gains most", .cores = 0.5, .end_s = 12};
  turn.after = 0.8;
  f.server->models().at(0).second->tell_scheduled(std::make_shared<const Scheduled>(turn));
  const auto told = model()["turn"];
  EXPECT_EQ(told["importance"], 2);
  EXPECT_EQ(told["learns"], true);
  EXPECT_EQ(told["why"], "gains most");
  EXPECT_EQ(told["end_s"], 12);
  EXPECT_FALSE(told.contains("before")) << "nobody knows";
  const std::string metrics = f.server->metrics();
  for (const char* line :
       {"# TYPE limber_learning_turn gauge", "limber_learning_turn{model=\"m\",version=\"1\"} 1",
        "limber_learning_cores{model=\"m\",version=\"1\"} 0.5",
        "limber_accuracy_expected{model=\"m\",version=\"1\"} 0.8"})
    EXPECT_NE(metrics.find(std::string(line) + "\n"), std::string::npos) << line << "\n" << metrics;
}

TEST(ModelServer, TellsEachSwitchOnce) {
  Fixture f(Policy::kFeedback);
  std::mutex mutex;
  std::vector<std::string> told;
  f.server->on_switch([&](const std::string&, const SwitchEvent& event) {
    const std::lock_guard lock(mutex);
    told.push_back(event.to);
  });
  ASSERT_TRUE(f.server->load("m").ok());
  const auto source = test::elastic_source(1);
  for (int i = 1; i < 4; ++i) {
    ASSERT_TRUE(f.server->force("m", source.variants[static_cast<size_t>(i)].name).ok());
    const double until = now_seconds() + 20;
    while (now_seconds() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::lock_guard lock(mutex);
      if (told.size() >= static_cast<size_t>(i)) break;
    }
  }
  const std::lock_guard lock(mutex);
  ASSERT_GE(told.size(), 3U);
  for (int i = 1; i < 4; ++i)
    EXPECT_EQ(std::count(told.begin(), told.end(), source.variants[static_cast<size_t>(i)].name), 1);
}

}  // namespace
}  // namespace limber
