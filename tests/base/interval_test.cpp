#include "base/interval.h"

#include <gtest/gtest.h>

#include "base/show.h"

namespace limber {
namespace {

// Values of Wilson's interval as tables give them.
TEST(Interval, IsWilsons) {
  EXPECT_NEAR(interval_of(0.5, 100).low, 0.4038, 1e-4);
  EXPECT_NEAR(interval_of(0.5, 100).high, 0.5962, 1e-4);
  EXPECT_NEAR(interval_of(1, 20).low, 0.8389, 1e-4);
  EXPECT_DOUBLE_EQ(interval_of(1, 20).high, 1);
  EXPECT_EQ(interval_of(0, 4).low, 0);
  EXPECT_NEAR(interval_of(0, 4).high, 0.4899, 1e-4);
}

TEST(Interval, NothingIsKnownOfNone) { EXPECT_EQ(interval_of(0, 0).width(), 1); }

TEST(ShowAccuracy, SaysHowFarItMayBeOffWhereThatIsMuch) {
  EXPECT_EQ(show_accuracy(0.912, 10000), "91.20 %");
  EXPECT_EQ(show_accuracy(0.975, 40), "97.50 % (87.1 to 99.6)");
}

}  // namespace
}  // namespace limber
