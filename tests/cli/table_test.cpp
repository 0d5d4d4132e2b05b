#include "cli/table.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

TEST(Table, AlignsAndShortens) {
  Table table({{"name", false, 6}, {"n", true}});
  table.add({"a", "1"});
  table.add({"a/long/name", "100"});
  EXPECT_EQ(table.text(),
            "name      n\n"
            "------  ---\n"
            "a         1\n"
            "..name  100\n");
}

TEST(Numbers, HaveUnits) {
  EXPECT_EQ(show_seconds(1.25e-5), "12.5 us");
  EXPECT_EQ(show_seconds(0.0045678), "4.568 ms");
  EXPECT_EQ(show_seconds(0.045678), "45.68 ms");
  EXPECT_EQ(show_seconds(2), "2.00 s");
  EXPECT_EQ(show_bytes(512), "512 B");
  EXPECT_EQ(show_bytes(1536), "1.50 KiB");
  EXPECT_EQ(show_count(999), "999");
  EXPECT_EQ(show_count(3504872), "3.50 M");
  EXPECT_EQ(show_percent(0.1234), "12.3 %");
}

}  // namespace
}  // namespace limber
