#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

// Two applications of which one gains much by retraining.
json cameras() {
  const json options = {{{"name", "whole"}, {"size", 1}, {"latency_s", 0.01}, {"seconds", {60, 40}}},
                        {{"name", "third"}, {"size", 0.3}, {"latency_s", 0.004}, {"seconds", {15, 10}}}};
  const json gate = {{{"name", "fog"}, {"before", {0.5, 0.45}}, {"after", {0.9, 0.85}}},
                     {{"name", "rain"}, {"before", {0.7, 0.6}}, {"after", {0.8, 0.78}}}};
  const json yard = json::array({{{"name", "fog"}, {"before", {0.8, 0.7}}, {"after", {0.82, 0.72}}}});
  return {{"format", "limber-app-profiles"},
          {"version", 1},
          {"window_s", 100},
          {"threads", 2},
          {"applications",
           {{{"name", "gate"}, {"requests_per_s", 5}, {"options", options}, {"domains", gate}},
            {{"name", "yard"}, {"requests_per_s", 5}, {"options", options}, {"domains", yard}}}}};
}

class AppsCommandTest : public testing::Test {
 protected:
  AppsCommandTest() { write_text(file_, cameras().dump()); }
  const Folder folder_;
  const std::string file_ = folder_ / "cameras.json";
};

TEST_F(AppsCommandTest, PlanIsATableAndJson) {
  const Outcome table = limber_program("apps plan " + file_);
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* part :
       {"gate", "yard", "fog", "no schedule is better", "ekya", "uniform", "no retraining"})
    EXPECT_TRUE(contains(table.out, part)) << part << "\n" << table.out;

  const json plan = json_of(limber_program("apps plan --json " + file_));
  EXPECT_EQ(plan["exact"], true);
  EXPECT_EQ(plan["optimum_share"], 1);
  EXPECT_EQ(plan["applications"].size(), 2u);
  EXPECT_EQ(plan["applications"][0]["name"], "gate");
  EXPECT_GT(plan["applications"][0]["threads"], 0);
  EXPECT_LE(plan["applications"][0]["end_s"], 100);
  for (const char* other : {"ekya", "uniform", "none", "whole_models"})
    EXPECT_GE(plan["accuracy"], plan["instead"][other]) << other;
}

TEST_F(AppsCommandTest, ExportIsForOthersAndItsOptionsForIt) {
  write_text(folder_ / "apps.toml", "[[app]]\nname = \"gate\"\nmodel = \"builtin:resnet8\"\n");
  const Outcome unit = limber_program("apps export " + (folder_ / "apps.toml") + " --cores 2");
  EXPECT_EQ(unit.code, 0) << unit.err;
  EXPECT_TRUE(contains(unit.out, "CPUQuota=200%")) << unit.out;
  const Outcome plan = limber_program("apps plan --cores 2 " + file_);
  EXPECT_EQ(plan.code, 2);
  EXPECT_TRUE(contains(plan.err, "'apps export'")) << plan.err;
}

TEST_F(AppsCommandTest, PlanGoesToADomainAndAWindow) {
  const json plan = json_of(limber_program("apps plan --json --domain rain --window 1 " + file_));
  EXPECT_EQ(plan["applications"][0]["domain"], "rain");
  EXPECT_EQ(plan["applications"][0]["threads"], 0);
  EXPECT_FALSE(plan["applications"][0].contains("end_s"));
  const Outcome unknown = limber_program("apps plan --domain sand " + file_);
  EXPECT_EQ(unknown.code, 1);
  EXPECT_TRUE(contains(unknown.err, "'sand'"));
}

TEST_F(AppsCommandTest, SimulatesTheSameForTheSameSeed) {
  const std::string command = "apps simulate --json --apps 6 --windows 4 --seed 3 " + file_;
  const json a = json_of(limber_program(command)), b = json_of(limber_program(command));
  EXPECT_EQ(a["policies"], b["policies"]);
  EXPECT_EQ(a["applications"], 6);
  EXPECT_EQ(a["policies"][0]["name"], "optimised");
  const Outcome table = limber_program("apps simulate --windows 2 " + file_);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(contains(table.out, "2 applications")) << table.out;
}

TEST_F(AppsCommandTest, WhatIsWrongIsNamed) {
  const auto refused = [](const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = limber_program("apps " + arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  };
  refused("plan", 2, "profiles");
  refused("dance " + file_, 2, "plan, simulate");
  refused("plan " + (folder_ / "none.json"), 1, "none.json");
  json wrong = cameras();
  wrong["applications"][0]["options"][0]["seconds"] = {0};
  write_text(file_, wrong.dump());
  refused("plan " + file_, 1, "seconds");
  wrong = cameras();
  wrong["applications"][0]["requests_per_s"] = 5000;
  write_text(file_, wrong.dump());
  refused("plan " + file_, 1, "answering alone takes");
}

}  // namespace
}  // namespace limber
