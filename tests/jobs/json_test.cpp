// What programs read of this one.
#include "jobs/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace limber {
namespace {

TEST(Json, KeepsTheOrderOfKeys) {
  Json out = Json::object({{"z", 1}, {"a", true}});
  out.set("m", "text");
  EXPECT_EQ(out.line(), R"({"z":1,"a":true,"m":"text"})");
  EXPECT_EQ(Json::object().line(), "{}");
  EXPECT_EQ(Json::array().line(), "[]");
}

TEST(Json, NumbersAreWhatTheyWere) {
  EXPECT_EQ(Json(INT64_MAX).line(), "9223372036854775807");
  EXPECT_EQ(Json(0.1).line(), "0.1");
  EXPECT_EQ(Json(1e300).line(), "1e+300");
  EXPECT_EQ(Json(std::nan("")).line(), "null") << "JSON has no such number";
  EXPECT_EQ(Json(HUGE_VAL).line(), "null");
  EXPECT_EQ(Json(std::vector<int64_t>{1, 3, 224}).line(), "[1,3,224]");
}

TEST(Json, TextOfOthersCannotBreakIt) {
  const std::string text = "a \"quote\",\n a tab\t and \xff";
  const auto back = nlohmann::json::parse(Json::object({{"text", text}}).text(), nullptr, false);
  ASSERT_FALSE(back.is_discarded());
  EXPECT_EQ(back["text"].get<std::string>(), "a \"quote\",\n a tab\t and \xef\xbf\xbd");
}

TEST(Json, ListsAreOfAnyRange) {
  EXPECT_EQ(Json::list(std::vector<std::string>{"a", "b"}).line(), R"(["a","b"])");
  EXPECT_EQ(Json::list(std::vector<double>{}).line(), "[]");
  const std::map<std::string, int> counts = {{"cat", 2}, {"dog", 1}};
  const Json list = Json::list(counts, [](const auto& of) {
    return Json::object({{"name", of.first}, {"n", of.second}});
  });
  EXPECT_EQ(list.line(), R"([{"name":"cat","n":2},{"name":"dog","n":1}])");
}

}  // namespace
}  // namespace limber
