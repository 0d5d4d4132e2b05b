#include "sched/profile.h"

#include <gtest/gtest.h>

#include <cmath>

namespace limber::sched {
namespace {

const std::string kText = R"({"format": "limber-app-profiles", "version": 1, "window_s": 100, "threads": 2,
 "applications": [{"name": "gate", "importance": 2, "latency_budget_s": 0.02, "minimum_accuracy": 0.5,
  "requests_per_s": 20, "options": [
   {"name": "whole", "size": 1, "latency_s": 0.01, "seconds": [40, 25]},
   {"name": "half", "size": 0.5, "latency_s": 0.005}],
  "domains": [{"name": "fog", "features": [1, 0], "before": [0.4, 0.35], "after": [0.8, 0.35]},
              {"name": "snow", "features": [0, 0], "before": [0.6, 0.5], "after": [0.7, 0.5]}]}]})";

std::string with(const std::string& part, const std::string& instead) {
  std::string text = kText;
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), instead);
}

TEST(AppProfiles, AreRead) {
  const auto profiles = parse_profiles(kText);
  ASSERT_TRUE(profiles.ok()) << profiles.status().message();
  EXPECT_EQ(profiles->window.seconds, 100);
  const ApplicationProfile& gate = profiles->applications.at(0);
  EXPECT_EQ(gate.application.importance, 2);
  EXPECT_NEAR(gate.application.options[0].load, 0.1, 1e-12);  // 20 requests of 10 ms on two threads
  EXPECT_EQ(gate.application.options[0].before, 0.4);
  EXPECT_TRUE(gate.application.options[1].seconds.empty());
  EXPECT_EQ(in_domain(gate, 1).options[0].after, 0.7);
  EXPECT_NEAR(gate.domains[0].features[0], 1, 1e-12);  // in deviations from the mean
  EXPECT_NEAR(gate.domains[0].features[1], 0, 1e-12);
  EXPECT_NEAR(distance(gate.domains[0], gate.domains[1]), std::sqrt(2.0), 1e-12);
}

TEST(AppProfiles, WhatIsWrongIsNamed) {
  const auto expect_refused = [](const std::string& text, const std::string& part) {
    const auto profiles = parse_profiles(text);
    ASSERT_FALSE(profiles.ok()) << part;
    EXPECT_NE(profiles.status().message().find(part), std::string::npos) << profiles.status().message();
  };
  expect_refused("[]", "object");
  expect_refused(with("limber-app-profiles", "other"), "format");
  expect_refused(with("\"version\": 1", "\"version\": 9"), "update Limber");
  expect_refused(with("\"threads\": 2", "\"threads\": 0"), "threads");
  expect_refused(with("[40, 25]", "[40, \"x\"]"), "seconds");
  expect_refused(with("[40, 25]", "[40, -1]"), "seconds of option 'whole'");
  expect_refused(with("[0.4, 0.35]", "[0.4]"), "applications[0]: domains[0]");
  expect_refused(with("[0.4, 0.35]", "[0.4, 7]"), "accuracies");
  expect_refused(with("[1, 0]", "[1]"), "features");
  expect_refused(with("\"latency_budget_s\": 0.02", "\"latency_budget_s\": 0.001"), "answers within");
}

TEST(AppProfiles, NoTextThatIsCutCrashes) {
  for (size_t length = 0; length < kText.size(); ++length)
    EXPECT_FALSE(parse_profiles(kText.substr(0, length)).ok());
}

}  // namespace
}  // namespace limber::sched
