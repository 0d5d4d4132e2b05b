#include "record/fields.h"

#include <gtest/gtest.h>

#include <cmath>

#include "record/notes.h"

namespace limber {
namespace {

struct Part {
  std::string name;
  std::vector<double> values;
  static void fields(auto& self, auto& field) {
    field("name", self.name);
    field("values", self.values);
  }
  std::string problem() const { return name == "bad" ? "'name' is bad" : ""; }
};

struct Everything {
  bool yes = false;
  int64_t count = 0;
  uint64_t seed = 0;
  double number = 0;
  std::string text;
  std::optional<double> maybe;
  std::vector<Part> parts;
  std::map<std::string, std::vector<int64_t>> lists;
  std::map<std::string, std::string> texts;
  int64_t newer = 7;
  static void fields(auto& self, auto& field) {
    field("yes", self.yes);
    field("count", self.count);
    field("seed", self.seed);
    field("number", self.number);
    field("text", self.text);
    field("maybe", self.maybe);
    field("parts", self.parts);
    field("lists", self.lists);
    field("texts", self.texts);
    field("newer", self.newer, Need::kOptional);
  }
};

Everything something() {
  Everything e{
      .yes = true, .count = int64_t{1} << 53, .seed = UINT64_MAX, .number = 0.1, .text = "a\"\n\x01ü"};
  e.parts = {{"p", {1, -2.5, 1e-300}}, {"q", {}}};
  e.lists = {{"x", {1, 2}}, {"y{", {}}};
  e.texts = {{"key", "{"}};
  return e;
}

std::string problem_of(const std::string& text) {
  const auto read = parse_fields<Everything>(text);
  EXPECT_FALSE(read.ok()) << text;
  EXPECT_EQ(read.status().code(), Code::kCorrupt);
  return read.status().message();
}

TEST(Fields, WhatIsWrittenIsReadBackToTheBit) {
  Everything e = something();
  const std::string text = format_fields(e);
  const auto read = parse_fields<Everything>(text);
  ASSERT_TRUE(read.ok()) << read.status().message() << text;
  EXPECT_TRUE(read->yes);
  EXPECT_EQ(read->count, e.count);
  EXPECT_EQ(read->seed, e.seed);
  EXPECT_EQ(read->number, e.number);
  EXPECT_EQ(read->text, e.text);
  EXPECT_FALSE(read->maybe);
  ASSERT_EQ(read->parts.size(), 2U);
  EXPECT_EQ(read->parts[0].values, e.parts[0].values);
  EXPECT_EQ(read->lists, e.lists);
  EXPECT_EQ(read->texts, e.texts);
  EXPECT_EQ(format_fields(*read), text);
  EXPECT_EQ(text.find('\n'), std::string::npos) << "one line";
}

TEST(Fields, AreInTheOrderOfTheirDeclaration) {
  EXPECT_EQ(format_fields(Part{"a", {1, 2.5}}), R"({"name":"a","values":[1.0,2.5]})");
}

TEST(Fields, NumbersThatAreNoneAreNull) {
  Everything e = something();
  e.number = -INFINITY;
  e.maybe = NAN;
  e.parts[0].values[1] = NAN;
  const auto read = parse_fields<Everything>(format_fields(e));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(std::isnan(read->number));
  EXPECT_FALSE(read->maybe);
  EXPECT_TRUE(std::isnan(read->parts[0].values[1]));
}

TEST(Fields, OfANewerVersionAreSkippedAndOfAnOlderOneMissing) {
  std::string text = format_fields(something());
  text.insert(1, R"("unknown":[{"a":1}],)");
  EXPECT_EQ(parse_fields<Everything>(text)->newer, 7);
  const std::string old = R"(,"newer":7)";
  text.erase(text.find(old), old.size());
  EXPECT_EQ(parse_fields<Everything>(text)->newer, 7);
}

TEST(Fields, ThatAreNotWhatTheyShouldBeAreNamed) {
  const std::string good = format_fields(something());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return problem_of(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(with("\"yes\":true,", ""), "there is no 'yes'");
  EXPECT_EQ(with("\"yes\":true", "\"yes\":1"), "'yes' should be true or false");
  EXPECT_EQ(with("\"count\":9007199254740992", "\"count\":9007199254740993"),
            "'count' should be a whole number that is not negative");
  EXPECT_EQ(with("\"count\":9007199254740992", "\"count\":-1"),
            "'count' should be a whole number that is not negative");
  EXPECT_EQ(with("\"count\":9007199254740992", "\"count\":1.5"),
            "'count' should be a whole number that is not negative");
  EXPECT_EQ(with("\"seed\":18446744073709551615", "\"seed\":18446744073709551616"),
            "'seed' should be a whole number that is not negative");
  EXPECT_EQ(with("\"number\":0.1", "\"number\":\"0.1\""), "'number' should be a number");
  EXPECT_EQ(with("-2.5", "true"), "'parts' should be a number, at parts/0/values/1");
  EXPECT_EQ(with("\"name\":\"q\"", "\"name\":\"bad\""), "'name' is bad");
  EXPECT_EQ(with("\"lists\":{", "\"lists\":[],\"other\":{"), "'lists' should be an object");
  EXPECT_EQ(with("\"parts\":[", "\"parts\":7,\"other\":["),
            "'parts' should be a list of at most 1048576 items");
  EXPECT_EQ(with("[{\"name\":\"p\"", "[[],{\"name\":\"p\""), "'parts' should be an object, at parts/0");
}

struct SeedNote {
  static constexpr std::string_view kName = "seed";
  uint64_t seed = 0;
  static void fields(auto& self, auto& field) { field("seed", self.seed); }
};

TEST(Notes, ArePutAndFoundByName) {
  Notes notes = {{"other", "5"}};
  EXPECT_FALSE(find_note<SeedNote>(notes)->has_value());
  put_note(notes, SeedNote{UINT64_MAX});
  EXPECT_EQ(notes.size(), 2U);
  EXPECT_EQ((*find_note<SeedNote>(notes))->seed, UINT64_MAX);
  notes["seed"] = "500 7";  // as an older version may have written it
  EXPECT_EQ(find_note<SeedNote>(notes).status().message(), "note 'seed': not JSON");
}

TEST(Fields, OfSomethingElseThanAnObjectAreAnError) {
  for (const char* text : {"", "{", "nonsense", "{\"yes\":tru", "\xFF", "{\"a\":1} x"})
    EXPECT_EQ(problem_of(text), "not JSON") << text;
  for (const char* text : {"[]", "1", "null", "\"text\""}) EXPECT_EQ(problem_of(text), "not a JSON object");
  EXPECT_NE(problem_of("{\"a\":" + std::string(100'000, '[')).find("levels"), std::string::npos);
}

}  // namespace
}  // namespace limber
