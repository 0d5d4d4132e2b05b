// The inner loops of every instruction set, called directly: any length, any address, and not a byte beside
// what they were given.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "backend/cpu/simd/simd.h"
#include "base/random.h"

namespace limber {
namespace {

constexpr float kGuard = -12345.678f;
constexpr int64_t kMargin = 32;  // floats: two of the widest vectors

// Floats at an address that is a multiple of 4 and no more, between two stretches nobody may write.
class Guarded {
 public:
  explicit Guarded(int64_t n, int64_t shift = 1) : n_(n), first_(kMargin + shift) {
    memory_.assign(static_cast<size_t>(n + 2 * kMargin + shift), kGuard);
  }
  float* data() { return memory_.data() + first_; }
  float& operator[](int64_t i) { return data()[i]; }
  void fill(uint64_t seed, double low = -2, double high = 2) {
    Random random(seed);
    for (int64_t i = 0; i < n_; ++i) data()[i] = static_cast<float>(random.uniform(low, high));
  }
  void expect_untouched_around(const std::string& what) const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) - first_;
      if (at < 0 || at >= n_) {
        ASSERT_EQ(memory_[i], kGuard) << what << ": wrote at " << at << " of " << n_;
      }
    }
  }

 private:
  int64_t n_, first_;
  std::vector<float> memory_;
};

std::vector<const SimdTable*> tables() {
  std::vector<const SimdTable*> out;
  for (const SimdTable* const* table = simd_tables(); *table != nullptr; ++table) out.push_back(*table);
  return out;
}

std::string at(const SimdTable& table, const char* what, int64_t n) {
  return std::string(table.name) + " " + what + " of " + std::to_string(n);
}

void expect_near(float got, double want, const std::string& what, double tolerance = 2e-6) {
  ASSERT_NEAR(got, want, tolerance * (1 + std::fabs(want))) << what;
}

#define LIMBER_NAME(name) #name,
constexpr const char* kUnaryNames[] = {LIMBER_SIMD_UNARY(LIMBER_NAME)};
constexpr const char* kBinaryNames[] = {LIMBER_SIMD_BINARY(LIMBER_NAME)};
constexpr const char* kReduceNames[] = {LIMBER_SIMD_REDUCE(LIMBER_NAME)};
constexpr const char* kGradientNames[] = {LIMBER_SIMD_GRADIENT(LIMBER_NAME)};
#undef LIMBER_NAME

TEST(SimdTable, TheBestIsFirstAndAForcedOneIsUsed) {
  const auto all = tables();
  ASSERT_FALSE(all.empty());
  EXPECT_STREQ(all.back()->name, "generic");
  for (size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i - 1]->lanes, all[i]->lanes);
  EXPECT_EQ(&simd(), all.front());
  force_simd(all.back());
  EXPECT_EQ(&simd(), all.back());
  force_simd(nullptr);
  EXPECT_EQ(&simd(), all.front());
}

TEST(SimdTable, NoEntryIsEmpty) {
  for (const SimdTable* table : tables()) {
    for (size_t i = 0; i < std::size(kUnaryNames); ++i) EXPECT_TRUE(table->unary[i]) << kUnaryNames[i];
    for (size_t i = 0; i < std::size(kBinaryNames); ++i) EXPECT_TRUE(table->binary[i]) << kBinaryNames[i];
    for (size_t i = 0; i < std::size(kReduceNames); ++i) {
      EXPECT_TRUE(table->reduce[i] && table->accumulate[i]) << kReduceNames[i];
    }
    for (size_t i = 0; i < std::size(kGradientNames); ++i)
      EXPECT_TRUE(table->gradient[i]) << kGradientNames[i];
  }
}

// Element by element the function is the same: what a long call gives, calls of one give as well.
TEST(SimdTable, UnaryOfAnyLengthIsThatOfItsElements) {
  for (const SimdTable* table : tables()) {
    for (size_t op = 0; op < std::size(kUnaryNames); ++op) {
      const UnaryParams params{0.3f, 0.7f};
      for (int64_t n = 0; n <= 3 * table->lanes + 1; ++n) {
        const std::string what = at(*table, kUnaryNames[op], n);
        Guarded x(n), y(n, 3);
        x.fill(static_cast<uint64_t>(n) + 1, 0.1, 2);
        table->unary[op](x.data(), y.data(), n, params);
        y.expect_untouched_around(what);
        for (int64_t i = 0; i < n; ++i) {
          float one = 0;
          table->unary[op](&x[i], &one, 1, params);
          ASSERT_EQ(y[i], one) << what << ", element " << i;
        }
        table->unary[op](x.data(), x.data(), n, params);  // in place
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x[i], y[i]) << what << " in place, element " << i;
      }
    }
  }
}

TEST(SimdTable, BinaryWithEveryStride) {
  for (const SimdTable* table : tables()) {
    for (size_t op = 0; op < std::size(kBinaryNames); ++op) {
      for (int64_t cols : {1, 3, 4, 7, 8, 9, 15, 16, 17, 33}) {
        for (int64_t a_col : {0, 1}) {
          for (int64_t b_col : {0, 1}) {
            const BinaryLoop loop{3, cols, a_col * cols + 1, b_col * cols + 2, a_col, b_col};
            const std::string what = at(*table, kBinaryNames[op], cols);
            Guarded a(3 * loop.a_row + cols), b(3 * loop.b_row + cols), y(3 * cols, 2);
            a.fill(1), b.fill(2, 0.5, 3);
            table->binary[op](a.data(), b.data(), y.data(), loop);
            y.expect_untouched_around(what);
            for (int64_t i = 0; i < 3 * cols; ++i) {
              const int64_t r = i / cols, c = i % cols;
              float one = 0;
              table->binary[op](&a[r * loop.a_row + c * a_col], &b[r * loop.b_row + c * b_col], &one,
                                {1, 1, 0, 0, 1, 1});
              ASSERT_EQ(y[i], one) << what << " strides " << a_col << b_col << ", element " << i;
            }
          }
        }
      }
    }
  }
}

// In double, one element after the other.
double reduced(SimdReduce op, Guarded& x, int64_t n, double shift) {
  double acc = op == SimdReduce::kMax   ? -INFINITY
               : op == SimdReduce::kMin ? INFINITY
                                        : op == SimdReduce::kProd;
  for (int64_t i = 0; i < n; ++i) {
    const double v = x[i];
    if (op == SimdReduce::kSum) acc += v;
    if (op == SimdReduce::kMax) acc = std::max(acc, v);
    if (op == SimdReduce::kMin) acc = std::min(acc, v);
    if (op == SimdReduce::kProd) acc *= v;
    if (op == SimdReduce::kAbsSum) acc += std::fabs(v);
    if (op == SimdReduce::kSquareSum) acc += v * v;
    if (op == SimdReduce::kExpSum) acc += std::exp(v - shift);
  }
  return acc;
}

TEST(SimdTable, ReductionsOfAnyLength) {
  for (const SimdTable* table : tables()) {
    for (size_t i = 0; i < std::size(kReduceNames); ++i) {
      const auto op = static_cast<SimdReduce>(i);
      for (int64_t n :
           {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 8191, 8192, 8193, 20001}) {
        if (op == SimdReduce::kProd && n > 200) continue;  // of so many: nothing or infinity
        Guarded x(n);
        x.fill(static_cast<uint64_t>(n), op == SimdReduce::kProd ? 0.9 : -1, 1.1);
        const double want = reduced(op, x, n, 1.1);
        const float got = table->reduce[i](x.data(), n, 1.1f);
        if (std::isinf(want)) {
          EXPECT_EQ(got, want) << at(*table, kReduceNames[i], n);
        } else {
          expect_near(got, want, at(*table, kReduceNames[i], n), 2e-5);
        }
      }
    }
  }
}

TEST(SimdTable, AccumulatesByColumn) {
  for (const SimdTable* table : tables()) {
    for (size_t i = 0; i < std::size(kReduceNames); ++i) {
      for (int64_t n = 1; n <= 2 * table->lanes + 1; ++n) {
        Guarded x(n), acc(n, 2), shift(n, 3);
        x.fill(1), acc.fill(2, 0.5, 1), shift.fill(3, 1, 2);
        std::vector<double> want;
        for (int64_t k = 0; k < n; ++k) {
          const double v = x[k], a = acc[k];
          const double each[] = {a + v,
                                 std::max(a, v),
                                 std::min(a, v),
                                 a * v,
                                 a + std::fabs(v),
                                 a + v * v,
                                 a + std::exp(v - static_cast<double>(shift[k]))};
          want.push_back(each[i]);
        }
        table->accumulate[i](acc.data(), x.data(), shift.data(), n);
        acc.expect_untouched_around(at(*table, kReduceNames[i], n));
        for (int64_t k = 0; k < n; ++k)
          expect_near(acc[k], want[static_cast<size_t>(k)], at(*table, kReduceNames[i], n));
      }
    }
  }
}

TEST(SimdTable, ArgOfRunsAndColumns) {
  for (const SimdTable* table : tables()) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Random random(seed);
      const int64_t n = 1 + static_cast<int64_t>(random.below(70)),
                    width = 1 + static_cast<int64_t>(random.below(40));
      const bool run = random.below(2) == 0;
      const ArgArgs args{n, run ? 1 : width, run ? 1 : width, random.below(2) == 0, random.below(2) == 0};
      Guarded x(n * args.width);
      for (int64_t i = 0; i < n * args.width; ++i) x[i] = static_cast<float>(random.below(4));  // ties
      std::vector<int64_t> y(static_cast<size_t>(args.width) + 1, -7);
      table->arg_columns(x.data(), y.data(), args);
      EXPECT_EQ(y.back(), -7);
      for (int64_t c = 0; c < args.width; ++c) {
        int64_t best = 0;
        for (int64_t i = 1; i < n; ++i) {
          const float now = x[i * args.stride + c], old = x[best * args.stride + c];
          if ((args.largest ? now > old : now < old) || (args.last && now == old)) best = i;
        }
        ASSERT_EQ(y[static_cast<size_t>(c)], best) << table->name << ", seed " << seed << ", column " << c;
      }
    }
  }
}

TEST(SimdTable, TransposesOfAnySize) {
  for (const SimdTable* table : tables()) {
    for (int64_t rows : {1, 2, 7, 8, 9, 15, 16, 17, 33}) {
      for (int64_t cols : {1, 3, 8, 9, 15, 16, 17, 31, 32}) {
        const int64_t src_stride = cols + 3, dst_stride = rows + 1;
        std::vector<uint32_t> src(static_cast<size_t>(rows * src_stride)),
            dst(static_cast<size_t>(cols * dst_stride), 7);
        for (size_t i = 0; i < src.size(); ++i)
          src[i] = 0x7f800001u + static_cast<uint32_t>(i);  // as floats NaN
        table->transpose32(src.data(), src_stride, dst.data(), dst_stride, rows, cols);
        for (int64_t c = 0; c < cols; ++c) {
          for (int64_t r = 0; r < dst_stride; ++r) {
            const uint32_t want = r < rows ? src[static_cast<size_t>(r * src_stride + c)] : 7;
            ASSERT_EQ(dst[static_cast<size_t>(c * dst_stride + r)], want)
                << table->name << rows << "x" << cols;
          }
        }
      }
    }
  }
}

TEST(SimdTable, GathersAndInterpolations) {
  for (const SimdTable* table : tables()) {
    for (int64_t n = 0; n <= 3 * table->lanes + 1; ++n) {
      Random random(static_cast<uint64_t>(n));
      Guarded x(50), y(n), weight(n, 2), b(50, 3);
      x.fill(1), b.fill(2), weight.fill(3, 0, 1);
      std::vector<int32_t> first, second;
      for (int64_t i = 0; i < n; ++i) {
        first.push_back(static_cast<int32_t>(random.below(50)));
        second.push_back(static_cast<int32_t>(random.below(50)));
      }
      table->gather32(reinterpret_cast<const uint32_t*>(x.data()), first.data(),
                      reinterpret_cast<uint32_t*>(y.data()), n);
      y.expect_untouched_around(at(*table, "gather32", n));
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], x[first[static_cast<size_t>(i)]]);
      table->lerp_gather(x.data(), first.data(), second.data(), weight.data(), y.data(), n);
      y.expect_untouched_around(at(*table, "lerp_gather", n));
      for (int64_t i = 0; i < n; ++i) {
        const double lo = x[first[static_cast<size_t>(i)]], hi = x[second[static_cast<size_t>(i)]];
        expect_near(y[i], lo + (hi - lo) * static_cast<double>(weight[i]), at(*table, "lerp_gather", n));
      }
      table->lerp_rows(x.data(), b.data(), 0.25f, y.data(), n);
      y.expect_untouched_around(at(*table, "lerp_rows", n));
      for (int64_t i = 0; i < n; ++i) {
        const double lo = x[i], hi = b[i];
        expect_near(y[i], lo + (hi - lo) * 0.25, at(*table, "lerp_rows", n));
      }
    }
  }
}

TEST(SimdTable, SoftmaxRowsAndColumnsAgree) {
  for (const SimdTable* table : tables()) {
    for (int64_t n : {1, 7, 8, 9, 31, 33}) {
      for (int64_t width : {1, 2, 15, 17, 255, 257}) {
        for (bool log : {false, true}) {
          Guarded x(n * width), y(n * width, 2), row(n), out(n);
          x.fill(static_cast<uint64_t>(n * width), -6, 6);
          table->softmax_columns(x.data(), y.data(), n, width, width, log);
          y.expect_untouched_around(at(*table, "softmax_columns", n));
          for (int64_t c = 0; c<width; c += width> 20 ? 17 : 1) {
            for (int64_t i = 0; i < n; ++i) row[i] = x[i * width + c];
            table->softmax(row.data(), out.data(), 1, n, log);
            out.expect_untouched_around(at(*table, "softmax", n));
            double sum = 0;
            for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(row[i]));
            for (int64_t i = 0; i < n; ++i) {
              const double probability = std::exp(static_cast<double>(row[i])) / sum;
              expect_near(out[i], log ? std::log(probability) : probability, at(*table, "softmax", n), 1e-5);
              expect_near(y[i * width + c], static_cast<double>(out[i]), at(*table, "softmax_columns", n),
                          1e-5);
            }
          }
        }
      }
    }
  }
}

// The sums of a panel do not depend on how its channels lie.
TEST(SimdTable, PanelsAsRunsAndInColumns) {
  for (const SimdTable* table : tables()) {
    for (int64_t rows : {1, 2, 3, 5, 17, 1025, 5000}) {
      for (int64_t width : {1, 7, 8, 16}) {
        const int64_t stride = width + 3;
        const ChannelPanel columns{rows, stride, width, false}, run{rows, 1, 1, true};
        Guarded x(rows * stride), sums(width), squares(width), mean(width);
        x.fill(static_cast<uint64_t>(rows), 1, 3);
        table->panel_sum(x.data(), columns, sums.data());
        sums.expect_untouched_around(at(*table, "panel_sum", rows));
        for (int64_t c = 0; c < width; ++c) mean[c] = sums[c] / static_cast<float>(rows);
        table->panel_squares(x.data(), columns, mean.data(), squares.data());
        squares.expect_untouched_around(at(*table, "panel_squares", rows));
        for (int64_t c = 0; c < width; ++c) {
          Guarded channel(rows);
          double sum = 0, square = 0;
          for (int64_t r = 0; r < rows; ++r) {
            channel[r] = x[r * stride + c];
            sum += static_cast<double>(channel[r]);
            square += std::pow(static_cast<double>(channel[r]) - static_cast<double>(mean[c]), 2);
          }
          float as_run = 0;
          table->panel_sum(channel.data(), run, &as_run);
          expect_near(as_run, sum, at(*table, "panel_sum of a run", rows));
          expect_near(sums[c], sum, at(*table, "panel_sum", rows));
          table->panel_squares(channel.data(), run, &mean[c], &as_run);
          expect_near(as_run, square, at(*table, "panel_squares of a run", rows), 2e-5);
          expect_near(squares[c], square, at(*table, "panel_squares", rows), 2e-5);
        }
      }
    }
  }
}

TEST(SimdTable, MomentsOfManyNumbersFarFromZero) {
  for (const SimdTable* table : tables()) {
    for (int64_t n : {1, 9, 33, 8193, 50001}) {
      Guarded x(n);
      x.fill(static_cast<uint64_t>(n), 99, 101);
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < n; ++i) mean += static_cast<double>(x[i]) / static_cast<double>(n);
      for (int64_t i = 0; i < n; ++i)
        variance += std::pow(static_cast<double>(x[i]) - mean, 2) / static_cast<double>(n);
      float got_mean = 0, got_variance = 0;
      table->moments(x.data(), n, &got_mean, &got_variance);
      expect_near(got_mean, mean, at(*table, "mean", n));
      expect_near(got_variance, variance, at(*table, "variance", n), 1e-4);
    }
  }
}

}  // namespace
}  // namespace limber
