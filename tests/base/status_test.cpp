#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace limber {
namespace {

Result<int> half_of(int n) {
  if (n % 2 != 0) return invalid("{} is odd; give an even number", n);
  return n / 2;
}

Result<int> quarter_of(int n) {
  LIMBER_ASSIGN(const int half, half_of(n));
  LIMBER_ASSIGN(const int quarter, half_of(half));
  return quarter;
}

Status check_quarter(int n, bool& reached_end) {
  LIMBER_TRY(quarter_of(n).status());
  reached_end = true;
  return {};
}

TEST(Status, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_TRUE(status.message().empty());
}

TEST(Status, HelpersSetCodeAndFormatMessage) {
  EXPECT_EQ(invalid("a {}", 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(unsupported("a {}", 1).code(), Code::kUnsupported);
  EXPECT_EQ(corrupt("a {}", 1).code(), Code::kCorrupt);
  EXPECT_EQ(error(Code::kIo, "{}: {}", "f", 7).message(), "f: 7");
}

TEST(Status, ContextComesFirstAndKeepsTheCode) {
  const Status status = corrupt("bad magic").in("node 'a'").in("model.onnx");
  EXPECT_EQ(status.message(), "model.onnx: node 'a': bad magic");
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_TRUE(Status().in("x").ok());
  EXPECT_EQ(Status().in("x").message(), "");
}

TEST(Status, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) {
    EXPECT_STRNE(code_name(static_cast<Code>(code)), "unknown");
  }
}

TEST(Result, CarriesValueOrStatus) {
  EXPECT_EQ(*half_of(8), 4);
  EXPECT_TRUE(half_of(8).status().ok());
  EXPECT_EQ(half_of(7).status().message(), "7 is odd; give an even number");
}

TEST(Result, MovesOutMoveOnlyValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
  const std::unique_ptr<int> moved = *std::move(result);
  EXPECT_EQ(*moved, 3);
}

TEST(Result, MacrosReturnTheFirstFailure) {
  EXPECT_EQ(*quarter_of(12), 3);
  EXPECT_EQ(quarter_of(6).status().message(), "3 is odd; give an even number");
  bool reached_end = false;
  EXPECT_FALSE(check_quarter(5, reached_end).ok());
  EXPECT_FALSE(reached_end);
  EXPECT_TRUE(check_quarter(4, reached_end).ok());
  EXPECT_TRUE(reached_end);
}

TEST(ResultDeathTest, ValueOfAFailureStops) {
  const Result<int> result = half_of(1);
  EXPECT_DEATH(static_cast<void>(result.value()), "assertion failed");
}

}  // namespace
}  // namespace limber
