#include "porting/goals.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "porting/loss_weights.h"

namespace limber {
namespace {

Result<std::string> no_profile(const std::string& file) {
  return error(Code::kNotFound, "{}: no such file", file);
}

constexpr std::string_view kDevices = R"("devices": {"phone": {"gflops": 20, "gbs": 5, "memory": "1M"}})";

std::string file_of(const std::string& goals) {
  return fmt::format(R"({{"format": 1, {}, "goals": [{}]}})", kDevices, goals);
}

std::string problem_of(const std::string& text) {
  const auto goals = parse_goals(text, no_profile);
  EXPECT_FALSE(goals.ok()) << text;
  EXPECT_EQ(goals.status().code(), Code::kInvalidArgument);
  return goals.status().message();
}

TEST(Goals, AreReadWithUnits) {
  const auto goals = parse_goals(file_of(R"(
    {"name": "a", "device": "phone", "targets": {"latency": "12ms", "memory": "2M", "parameters": "1.5K", "accuracy": 0.9}},
    {"device": {"gflops": 1, "gbs": 2}, "targets": {"latency": 0.5}},
    {"device": "here", "targets": {"parameters": 7}})"),
                                 no_profile);
  ASSERT_TRUE(goals.ok()) << goals.status().message();
  ASSERT_EQ(goals->size(), 3u);
  const Goal& a = goals->at(0);
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.path, "goals[0]");
  EXPECT_EQ(a.device.name, "phone");
  EXPECT_DOUBLE_EQ(*a.targets.latency, 0.012);
  EXPECT_DOUBLE_EQ(*a.targets.parameters, 1500);
  EXPECT_DOUBLE_EQ(*a.targets.accuracy, 0.9);
  EXPECT_DOUBLE_EQ(limits_of(a)[1], 1024 * 1024) << "the device has less than the goal allows";
  const Bounds bounds = bounds_of(a);
  EXPECT_DOUBLE_EQ(bounds[0], 0.012 * 20e9);
  EXPECT_DOUBLE_EQ(bounds[1], 0.012 * 5e9);
  EXPECT_EQ(goals->at(1).name, "goal1");
  EXPECT_TRUE(goals->at(2).device.here);
}

TEST(Goals, WrongOnesAreNamedByTheirPath) {
  const std::string good = R"({"device": "phone", "targets": {"latency": 1}}, )";
  const auto problem = [&](const std::string& goal) { return problem_of(file_of(good + goal)); };
  const auto begins = [](const std::string& text, const std::string& with) {
    EXPECT_TRUE(text.starts_with(with)) << text;
  };
  begins(problem(R"({"device": "phone", "targets": {"latency": "12 apples"}})"),
         "goals[1].targets.latency: is \"12 ap");
  begins(problem(R"({"device": "phone", "targets": {"latency": -1}})"), "goals[1].targets.latency: is -1");
  begins(problem(R"({"device": "phone", "targets": {"latncy": 1}})"),
         "goals[1].targets.latncy: is not known");
  begins(problem(R"({"device": "phone", "targets": {"accuracy": 90}})"), "goals[1].targets.accuracy: ");
  begins(problem(R"({"device": "phone", "targets": {}})"), "goals[1].targets: ");
  begins(problem(R"({"device": "phone"})"), "goals[1].targets: is missing");
  begins(problem(R"({"targets": {"latency": 1}})"), "goals[1].device: is missing");
  begins(problem(R"({"device": "fone", "targets": {"latency": 1}})"), "goals[1].device: 'fone' is none of");
  begins(problem(R"({"device": {"gflops": 1}, "targets": {"latency": 1}})"),
         "goals[1].device.gbs: is missing");
  begins(problem(R"({"device": {"profile": "x.json"}, "targets": {"latency": 1}})"),
         "goals[1].device.profile: x.json");
  begins(problem(R"({"name": "../x", "device": "phone", "targets": {"latency": 1}})"), "goals[1].name: ");
  begins(problem(R"({"name": "goal0", "device": "phone", "targets": {"latency": 1}})"),
         "goals[1].name: 'goal0' is there");
  begins(problem("3"), "goals[1]: expected an object");
  begins(problem_of(R"({"format": 2, "goals": []})"), "format: ");
  begins(problem_of(R"({"format": 1, "goals": []})"), "goals: ");
  begins(problem_of(R"({"format": 1, "devices": {"a": {"gflops": 0, "gbs": 1}}, "goals": []})"),
         "devices.a.gflops: ");
  EXPECT_FALSE(problem_of("{").empty());
  EXPECT_FALSE(problem_of("[]").empty());
}

TEST(Goals, AMeasuredProfileIsReadBack) {
  const std::string text =
      format_profile({.name = "board", .operations_per_s = 3e9, .bytes_per_s = 2e9, .memory = 4096});
  const auto read = [&](const std::string& file) -> Result<std::string> {
    EXPECT_EQ(file, "board.json");
    return text;
  };
  const auto goals =
      parse_goals(file_of(R"({"device": {"profile": "board.json"}, "targets": {"latency": 1}})"), read);
  ASSERT_TRUE(goals.ok()) << goals.status().message();
  EXPECT_DOUBLE_EQ(goals->at(0).device.operations_per_s, 3e9);
  EXPECT_DOUBLE_EQ(goals->at(0).device.memory, 4096);
}

// The published schema knows what the parser knows, and no more.
TEST(Goals, TheSchemaSaysTheSame) {
  std::ifstream file(std::string(LIMBER_DOCS) + "/goals.schema.json");
  const auto schema = nlohmann::json::parse(file);
  const auto keys = [](const nlohmann::json& object) {
    EXPECT_EQ(object["additionalProperties"], false);
    std::vector<std::string> keys;
    for (const auto& [key, value] : object["properties"].items()) keys.push_back(key);
    return fmt::format("{}", fmt::join(keys, ", "));
  };
  const auto& goal = schema["$defs"]["goal"];
  EXPECT_EQ(keys(schema), "devices, format, goals");
  EXPECT_EQ(keys(goal), "device, name, targets");
  EXPECT_EQ(keys(schema["$defs"]["targets"]), "accuracy, latency, memory, parameters");
  EXPECT_EQ(keys(schema["$defs"]["figures"]), "gbs, gflops, memory, name");
  EXPECT_EQ(schema["required"], (nlohmann::json{"format", "goals"}));
  EXPECT_EQ(goal["required"], (nlohmann::json{"device", "targets"}));
  for (const auto& example : schema["examples"]) {
    const auto goals = parse_goals(example.dump(), no_profile);
    EXPECT_TRUE(goals.ok()) << goals.status().message();
  }
  EXPECT_FALSE(schema["examples"].empty());
}

TEST(LossWeights, AreTheShareOfTheWayThatIsLeft) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const Figures limits = {1, 10, kNone};
  EXPECT_EQ(loss_weights({2, 30, 5}, {1.5, 15, 5}, limits), (Figures{0.5, 0.25, 0}));
  EXPECT_EQ(loss_weights({2, 30, 5}, {2, 30, 5}, limits), (Figures{1, 1, 0}));
  EXPECT_EQ(loss_weights({2, 30, 5}, {3, 10, 5}, limits), (Figures{1, 0, 0})) << "further than at the start";
  EXPECT_EQ(loss_weights({0.5, 5, 5}, {0.5, 5, 5}, limits), Figures{}) << "kept from the start";
  EXPECT_EQ(loss_weights({1, 10, 5}, {1, 10, 5}, limits), Figures{}) << "nothing to share";
  EXPECT_EQ(loss_weights({0.9, 5, 5}, {1.1, 5, 5}, limits)[0], 1) << "kept at the start, missed now";
  EXPECT_TRUE(all_zero({}));
  EXPECT_FALSE(all_zero({0, 0, 1e-9}));
}

}  // namespace
}  // namespace limber
