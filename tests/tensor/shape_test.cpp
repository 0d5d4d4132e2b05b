#include "tensor/shape.h"

#include <gtest/gtest.h>

#include <limits>

namespace limber {
namespace {

const Symbol kN("N"), kH("H");
constexpr int64_t kBig = std::numeric_limits<int64_t>::max();

Dim n(int64_t scale = 1, int64_t offset = 0) { return Dim(kN, scale, offset); }

TEST(Symbol, KeepsOnlyItsAlphabet) {
  EXPECT_EQ(Symbol("batch size").name(), "batch_size");
  EXPECT_EQ(Symbol("2d").name(), "_2d");
  EXPECT_EQ(Symbol("").name(), "_");
  EXPECT_EQ(Symbol("abcdefghijklmnopqrst").name(), "abcdefghijklmno");
}

TEST(Dim, ZeroScaleIsAConstant) {
  EXPECT_EQ(Dim(kN, 0, 5), Dim(5));
  EXPECT_TRUE(Dim(kN, 0, 5).is_constant());
}

TEST(Dim, Arithmetic) {
  EXPECT_EQ(add(n(), Dim(2)), n(1, 2));
  EXPECT_EQ(add(n(2, 1), n(3, -1)), n(5));
  EXPECT_EQ(add(n(), Dim(kH)), std::nullopt);
  EXPECT_EQ(sub(n(2, 3), n(2, 1)), Dim(2));
  EXPECT_EQ(sub(Dim(4), n()), n(-1, 4));
  EXPECT_EQ(mul(n(2, 1), Dim(3)), n(6, 3));
  EXPECT_EQ(mul(n(), Dim(0)), Dim(0));
  EXPECT_EQ(mul(n(), n()), std::nullopt);
}

TEST(Dim, ArithmeticRefusesOverflow) {
  EXPECT_EQ(add(Dim(kBig), Dim(1)), std::nullopt);
  EXPECT_EQ(mul(Dim(kBig), Dim(2)), std::nullopt);
  EXPECT_EQ(mul(n(kBig), Dim(2)), std::nullopt);
  EXPECT_EQ(sub(Dim(0), Dim(std::numeric_limits<int64_t>::min())), std::nullopt);
  EXPECT_EQ(n(kBig).bind(kN, 2), std::nullopt);
  EXPECT_EQ(n(1, kBig).bind(kN, 1), std::nullopt);
}

TEST(Dim, ExactDivision) {
  EXPECT_EQ(div_exact(n(4, 8), Dim(4)), n(1, 2));
  EXPECT_EQ(div_exact(n(4, 2), Dim(4)), std::nullopt);
  EXPECT_EQ(div_exact(n(6, 3), n(2, 1)), Dim(3));
  EXPECT_EQ(div_exact(n(6, 4), n(2, 1)), std::nullopt);
  EXPECT_EQ(div_exact(Dim(7), Dim(0)), std::nullopt);
  EXPECT_EQ(div_exact(Dim(std::numeric_limits<int64_t>::min()), Dim(-1)), std::nullopt);
  EXPECT_EQ(div_exact(Dim(6), n()), std::nullopt);
  EXPECT_EQ(div_exact(n(), Dim(kH)), std::nullopt);
}

TEST(Dim, Binding) {
  EXPECT_EQ(n(2, 1).bind(kN, 8), Dim(17));
  EXPECT_EQ(n(2, 1).bind(kH, 8), n(2, 1));
  EXPECT_EQ(Dim(3).bind(kN, 8), Dim(3));
}

TEST(Dim, TextRoundTrips) {
  const Dim dims[] = {Dim(0),
                      Dim(3),
                      Dim(-1),
                      Dim(kBig),
                      n(),
                      n(2),
                      n(-3),
                      n(1, 1),
                      n(4, -1),
                      Dim(Symbol("batch_size")),
                      Dim(Symbol("2d"), 7, 5)};
  for (const Dim& dim : dims) EXPECT_EQ(parse_dim(dim.to_string()), dim) << dim.to_string();
  EXPECT_EQ(n(4, -1).to_string(), "4N-1");
  EXPECT_EQ(n(1, 2).to_string(), "N+2");
}

TEST(Dim, ParseRefusesNonsense) {
  for (const char* text : {"", "-", "+", "N+", "N-", "N+x", "N+1x", "2 N", "N*2", "99999999999999999999",
                           "a.b", "abcdefghijklmnopq", "N+99999999999999999999", "[", "%"}) {
    EXPECT_EQ(parse_dim(text), std::nullopt) << text;
  }
}

TEST(Shape, TextAndConstness) {
  EXPECT_EQ(Shape({n(), 3, n(2, 1)}).to_string(), "N,3,2N+1");
  EXPECT_FALSE(Shape({n(), 3}).is_constant());
  EXPECT_TRUE(Shape({2, 3}).is_constant());
  EXPECT_EQ(Shape({2, 3}).elements(), 6);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({2, 0, 3}).elements(), 0);
}

TEST(Shape, CheckedElements) {
  const auto count = [](std::vector<int64_t> dims, int64_t limit) { return checked_elements(dims, limit); };
  EXPECT_EQ(count({}, 1), 1);
  EXPECT_EQ(count({2, 3, 4}, 24), 24);
  EXPECT_EQ(count({2, 3, 4}, 23), std::nullopt);
  EXPECT_EQ(count({2, -1}, 100), std::nullopt);
  EXPECT_EQ(count({kBig, 2}, kBig), std::nullopt);
  EXPECT_EQ(count({0, 5}, 10), 0);
  EXPECT_EQ(count({kBig, kBig, 0}, kBig), std::nullopt) << "strides of such a shape would overflow";
}

TEST(Shape, Broadcasting) {
  EXPECT_EQ(broadcast({2, 3}, {2, 3}), Shape({2, 3}));
  EXPECT_EQ(broadcast({2, 1}, {4, 1, 3}), Shape({4, 2, 3}));
  EXPECT_EQ(broadcast({}, {5}), Shape({5}));
  EXPECT_EQ(broadcast({0}, {1}), Shape({0}));
  EXPECT_EQ(broadcast({2}, {3}), std::nullopt);
  EXPECT_EQ(broadcast({n(), 3}, {1, 3}), Shape({n(), 3}));
  EXPECT_EQ(broadcast({n(), 3}, {n(), 1}), Shape({n(), 3}));
  EXPECT_EQ(broadcast({n()}, {4}), std::nullopt);
  EXPECT_EQ(broadcast({n()}, {Dim(kH)}), std::nullopt);
}

TEST(Shape, Strides) {
  EXPECT_EQ(strides_of({2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_TRUE(strides_of({}).empty());
}

}  // namespace
}  // namespace limber
