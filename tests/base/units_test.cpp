#include "base/units.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

TEST(Units, NumbersAreTakenWhole) {
  EXPECT_EQ(parse_number("2.5"), 2.5);
  EXPECT_EQ(parse_number("-1e-3"), -1e-3);
  EXPECT_EQ(parse_number("0"), 0);
  for (const char* text :
       {"", " ", "2.5x", "x", "1,5", " 1", "1 ", "nan", "inf", "-inf", "1e999", "0x10", "+1"})
    EXPECT_FALSE(parse_number(text)) << "'" << text << "'";
}

TEST(Units, ListsOfNumbersAreAllOrNothing) {
  EXPECT_EQ(parse_numbers("0.5"), std::vector<double>{0.5});
  EXPECT_EQ(parse_numbers("1,2,-3"), (std::vector<double>{1, 2, -3}));
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "1,two", "1;2", "1, 2"})
    EXPECT_TRUE(parse_numbers(text).empty()) << "'" << text << "'";
}

TEST(Units, WholeNumbersMayBeWrittenWithAnExponent) {
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("1e3"), 1000);
  EXPECT_EQ(parse_integer("2.0"), 2);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"", "2.5", "1e-3", "9223372036854775808", "1e19", "1e16", "four", "4 ", "nan"})
    EXPECT_FALSE(parse_integer(text)) << "'" << text << "'";
}

// What a parser of texts makes of one; nothing when it complains.
template <typename T>
std::optional<T> read(std::string (*parse)(const std::string&, T&), const std::string& text) {
  T value = 77;
  const std::string problem = parse(text, value);
  if (problem.empty()) return value;
  EXPECT_NE(problem.find("'" + text + "'"), std::string::npos) << problem;
  EXPECT_EQ(value, T(77)) << text << ": set in spite of a problem";
  return std::nullopt;
}

TEST(Units, BytesInPowersOf1024) {
  EXPECT_EQ(read(parse_bytes, "100000"), 100000u);
  EXPECT_EQ(read(parse_bytes, "512M"), size_t{512} << 20);
  EXPECT_EQ(read(parse_bytes, "1.5K"), 1536u);
  EXPECT_EQ(read(parse_bytes, "2G"), size_t{2} << 30);
  for (const char* text :
       {"", "M", "0", "-1", "0.5", "2T", "2GB", "2 G", "nan", "inf", "1e16", "1e15G", "1e300G"})
    EXPECT_FALSE(read(parse_bytes, text)) << text;
}

TEST(Units, CountsInPowersOf1000) {
  EXPECT_EQ(read(parse_count, "300000"), 3e5);
  EXPECT_EQ(read(parse_count, "1.5M"), 1.5e6);
  EXPECT_EQ(read(parse_count, "20K"), 2e4);
  EXPECT_EQ(read(parse_count, "2G"), 2e9);
  for (const char* text : {"", "K", "0", "-3", "1k", "1MM", "nan", "1e99"})
    EXPECT_FALSE(read(parse_count, text)) << text;
}

TEST(Units, TimesNeedAUnit) {
  EXPECT_EQ(read(parse_seconds, "90s"), 90);
  EXPECT_EQ(read(parse_seconds, "12ms"), 12 * 1e-3);
  EXPECT_EQ(read(parse_seconds, "5us"), 5 * 1e-6);
  EXPECT_EQ(read(parse_seconds, "20min"), 1200);
  EXPECT_EQ(read(parse_seconds, "1.5h"), 5400);
  for (const char* text : {"", "60", "s", "-1s", "0s", "10m", "1 s", "nans", "1e10s", "1d"})
    EXPECT_FALSE(read(parse_seconds, text)) << text;
  double unused = 0;
  EXPECT_NE(parse_seconds("60", unused).find("60ms, 60s or 60min"), std::string::npos);
}

TEST(Units, LatenciesAreTimesOrShares) {
  double seconds = 0, share = 0;
  EXPECT_EQ(parse_latency("60%", seconds, share), "");
  EXPECT_EQ(seconds, 0);
  EXPECT_DOUBLE_EQ(share, 0.6);
  share = 0;
  EXPECT_EQ(parse_latency("12ms", seconds, share), "");
  EXPECT_DOUBLE_EQ(seconds, 12e-3);
  EXPECT_EQ(share, 0);
  for (const char* text : {"0%", "-5%", "101%", "%", "nan%", "6 0%", "60", ""})
    EXPECT_NE(parse_latency(text, seconds, share), "") << text;
  EXPECT_EQ(parse_latency("100%", seconds, share), "");
}

TEST(Units, SharesHaveAPercentSign) {
  EXPECT_DOUBLE_EQ(*read(parse_share, "25%"), 0.25);
  EXPECT_DOUBLE_EQ(*read(parse_share, "100%"), 1);
  for (const char* text : {"", "%", "0.25", "25", "0%", "101%", "nan%", "-5%", "2 5%"})
    EXPECT_FALSE(read(parse_share, text)) << text;
}

}  // namespace
}  // namespace limber
