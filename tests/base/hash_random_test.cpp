#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/random.h"

namespace limber {
namespace {

// These numbers are on disks: a change of the hash is a change of every format that stores one.
TEST(Hasher, ValuesAreForEver) {
  EXPECT_EQ(Hasher().digest(), 0xcbf29ce484222325ULL);
  EXPECT_EQ(Hasher().add("limber").digest(), 0x222660a36b160624ULL);
  EXPECT_EQ(Hasher().add(uint64_t{42}).digest(), 0xff3add6b3789daefULL);
}

TEST(Hasher, LengthSeparatesStrings) {
  EXPECT_NE(Hasher().add("ab").add("c").digest(), Hasher().add("a").add("bc").digest());
  EXPECT_NE(Hasher().add("").digest(), Hasher().digest());
}

TEST(Random, SequenceIsForEver) {
  Random random(1);
  EXPECT_EQ(random.next(), 0x910a2dec89025cc1ULL);
  EXPECT_EQ(random.next(), 0xbeeb8da1658eec67ULL);
  Random resumed(random.state());
  EXPECT_EQ(resumed.next(), random.next());
}

TEST(Random, RangesHold) {
  Random random(7);
  double sum = 0, squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const double u = random.uniform();
    EXPECT_GE(u, 0.0);
    EXPECT_LT(u, 1.0);
    EXPECT_LT(random.below(5), 5u);
    const double n = random.normal();
    sum += n;
    squares += n * n;
  }
  EXPECT_NEAR(sum / 20000, 0.0, 0.03);
  EXPECT_NEAR(squares / 20000, 1.0, 0.05);
}

}  // namespace
}  // namespace limber
