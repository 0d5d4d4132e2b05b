// The loops that kernels are made of: every element once, at the place its index says.
#include "backend/cpu/simd/loops.h"

#include <gtest/gtest.h>

#include <mutex>

#include "base/parallel.h"
#include "base/random.h"

namespace limber::own {
namespace {

using Ints = std::vector<int64_t>;

// Where each output element finds its operands, counted out index by index.
std::vector<Ints> places(const Ints& dims, const std::vector<Strides>& strides) {
  int64_t elements = 1;
  for (int64_t d : dims) elements *= d;
  std::vector<Ints> out(strides.size(), Ints(static_cast<size_t>(elements), 0));
  for (int64_t e = 0; e < elements; ++e) {
    int64_t rest = e;
    for (size_t d = dims.size(); d-- > 0;) {
      for (size_t k = 0; k < strides.size(); ++k)
        out[k][static_cast<size_t>(e)] += rest % dims[d] * strides[k][d];
      rest /= dims[d];
    }
  }
  return out;
}

// The same as the loop walks it. Every element must be met exactly once.
std::vector<Ints> walked(const StridedLoop& loop, size_t operands, int64_t grain) {
  std::vector<Ints> out(operands, Ints(static_cast<size_t>(loop.elements()), -1));
  Ints met(static_cast<size_t>(loop.elements()), 0);
  std::mutex mutex;
  loop.run(grain, [&](const LoopPart& part) {
    const std::lock_guard<std::mutex> lock(mutex);
    EXPECT_GT(part.rows * part.cols, 0);
    for (int64_t r = 0; r < part.rows; ++r) {
      for (int64_t c = 0; c < part.cols; ++c) {
        const auto at = static_cast<size_t>(part.out + r * part.cols + c);
        ASSERT_LT(at, met.size());
        ++met[at];
        for (size_t k = 0; k < operands; ++k) {
          const int operand = static_cast<int>(k);
          out[k][at] = part.in[k] + r * loop.row_stride(operand) + c * loop.col_stride(operand);
        }
      }
    }
  });
  EXPECT_EQ(met, Ints(met.size(), 1));
  return out;
}

void expect_walk(const Ints& dims, const std::vector<Strides>& strides) {
  const StridedLoop loop(dims, strides);
  const std::vector<Ints> want = places(dims, strides);
  ASSERT_EQ(static_cast<size_t>(loop.elements()), want.empty() ? loop.elements() : want[0].size());
  for (int threads : {1, 2, 3}) {
    const ThreadScope scope(threads);
    for (int64_t grain : {int64_t{1}, int64_t{64}, int64_t{1} << 20}) {
      EXPECT_EQ(walked(loop, strides.size(), grain), want) << threads << " threads, grain " << grain;
    }
  }
}

TEST(StridedLoop, WalksAnythingElementByElement) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Ints dims;
    for (uint64_t d = random.below(6); d > 0; --d) dims.push_back(1 + static_cast<int64_t>(random.below(7)));
    std::vector<Strides> strides(1 + random.below(kMaxOperands));
    for (Strides& one : strides) {
      for (size_t d = 0; d < dims.size(); ++d) one.push_back(static_cast<int64_t>(random.below(50)) - 10);
    }
    expect_walk(dims, strides);
  }
}

TEST(StridedLoop, MergesWhatLiesInOneStretch) {
  const StridedLoop dense({4, 5, 6}, {{30, 6, 1}, {30, 6, 1}});
  EXPECT_EQ(dense.cols(), 120);
  EXPECT_EQ(dense.col_stride(0), 1);
  const StridedLoop repeated({4, 5, 6}, {{30, 6, 1}, {0, 0, 0}});
  EXPECT_EQ(repeated.cols(), 120);
  EXPECT_EQ(repeated.col_stride(1), 0);
  const StridedLoop by_row({4, 5, 6}, {{30, 6, 1}, {0, 0, 1}});
  EXPECT_EQ(by_row.cols(), 6);
  EXPECT_EQ(by_row.row_stride(1), 0);
  const StridedLoop ones({1, 7, 1, 1}, {{99, 1, 99, 99}});
  EXPECT_EQ(ones.cols(), 7);
  EXPECT_EQ(ones.rank(), 2);
}

TEST(StridedLoop, ScalarsAndNothing) {
  expect_walk({}, {{}, {}});
  expect_walk({1, 1, 1}, {{5, 6, 7}});
  int calls = 0;
  StridedLoop({3, 0, 2}, {{1, 1, 1}}).run(1, [&](const LoopPart&) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST(StridedLoop, BroadcastsLikeShapesDo) {
  EXPECT_EQ(broadcast_strides({3, 1, 5}, {2, 3, 4, 5}), (Strides{0, 5, 0, 1}));
  EXPECT_EQ(broadcast_strides({}, {2, 3}), (Strides{0, 0}));
  EXPECT_EQ(broadcast_strides({2, 3}, {2, 3}), (Strides{3, 1}));
  EXPECT_EQ(broadcast_strides({1}, {4}), (Strides{0}));
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Ints out;
    for (uint64_t d = 1 + random.below(5); d > 0; --d)
      out.push_back(1 + static_cast<int64_t>(random.below(6)));
    std::vector<Shape> operands;
    std::vector<Strides> strides;
    for (int k = 0; k < 2; ++k) {
      Ints own(out.begin() + static_cast<ptrdiff_t>(random.below(out.size() + 1)), out.end());
      for (int64_t& d : own) d = random.below(3) == 0 ? 1 : d;
      operands.push_back(Shape::of(own));
      strides.push_back(broadcast_strides(operands.back(), Shape::of(out)));
    }
    const StridedLoop loop = StridedLoop::broadcast(Shape::of(out), operands);
    EXPECT_EQ(walked(loop, 2, 1), places(out, strides)) << "seed " << seed;
  }
}

TEST(ForElements, CoversEveryElementOnce) {
  for (int64_t n : {0, 1, 63, 64, 65, 127, 1000, 4097}) {
    for (int threads : {1, 2, 5}) {
      const ThreadScope scope(threads);
      Ints met(static_cast<size_t>(n), 0);
      std::mutex mutex;
      for_elements(n, 128, [&](int64_t begin, int64_t end) {
        const std::lock_guard<std::mutex> lock(mutex);
        EXPECT_EQ(begin % 64, 0) << "threads meet at whole cache lines";
        for (int64_t i = begin; i < end; ++i) ++met[static_cast<size_t>(i)];
      });
      EXPECT_EQ(met, Ints(met.size(), 1)) << n << " elements, " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace limber::own
