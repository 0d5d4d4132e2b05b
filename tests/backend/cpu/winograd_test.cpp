// Winograd convolutions and their gradients against sums over every tap, for every instruction set, format
// and number of threads.
#include "backend/cpu/winograd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/simd/simd.h"
#include "base/parallel.h"
#include "base/random.h"
#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

using onednn::Convolution;
using onednn::Format;
using onednn::Pass;
using Floats = std::vector<float>;

struct WinogradCase {
  const char* what;
  int64_t images, in, out, height, width;
  std::vector<int64_t> pads;  // top, left, bottom, right
};

const WinogradCase kWinogradCases[] = {
    {"whole tiles", 2, 16, 16, 8, 8, {1, 1, 1, 1}},
    {"tiles cut off at both ends", 1, 32, 16, 7, 9, {1, 1, 1, 1}},
    {"no padding, less than a tile", 3, 16, 48, 4, 5, {0, 0, 0, 0}},
    {"more padding than pixels", 2, 16, 16, 1, 1, {2, 2, 2, 2}},
    {"padding of four kinds", 1, 48, 32, 9, 6, {0, 2, 1, 0}},
    {"several chunks for each of two workers", 6, 16, 16, 16, 20, {1, 1, 1, 1}},
    {"two panels of columns", 1, 16, 96, 5, 8, {1, 1, 1, 1}},
};

Convolution spec_of(const WinogradCase& c, Pass pass, Format format) {
  Convolution s;
  s.pass = pass;
  s.src = {c.images, c.in, c.height, c.width};
  s.weights = {c.out, c.in, 3, 3};
  s.dst = {c.images, c.out, c.height + c.pads[0] + c.pads[2] - 2, c.width + c.pads[1] + c.pads[3] - 2};
  s.strides = s.dilations = {1, 1};
  s.pad_begin = {c.pads[0], c.pads[1]};
  s.pad_end = {c.pads[2], c.pads[3]};
  s.src_format = s.dst_format = format;
  return s;
}

// Where element [n, c, y, x] lies.
size_t place(const std::vector<int64_t>& dims, Format format, int64_t n, int64_t c, int64_t y, int64_t x) {
  const int64_t block = format == Format::kChannelsLast ? dims[1] : format == Format::kBlocked8 ? 8 : 16;
  const int64_t outer = n * (dims[1] / block) + c / block;
  return static_cast<size_t>(((outer * dims[2] + y) * dims[3] + x) * block + c % block);
}

Floats random_floats(const std::vector<int64_t>& dims, uint64_t seed) {
  Floats out(static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3]));
  Random random(seed);
  for (float& f : out) f = static_cast<float>(random.uniform(-1, 1));
  return out;
}

// Calls body(index in x, in w, in y) for every product of the convolution.
template <typename Body>
void each_product(const Convolution& s, const Body& body) {
  for (int64_t n = 0; n < s.dst[0]; ++n) {
    for (int64_t k = 0; k < s.dst[1]; ++k) {
      for (int64_t c = 0; c < s.src[1]; ++c) {
        for (int64_t at = 0; at < s.dst[2] * s.dst[3] * 9; ++at) {
          const int64_t tap = at % 9, oy = at / 9 / s.dst[3], ox = at / 9 % s.dst[3];
          const int64_t y = oy + tap / 3 - s.pad_begin[0], x = ox + tap % 3 - s.pad_begin[1];
          if (y < 0 || x < 0 || y >= s.src[2] || x >= s.src[3]) continue;
          body(place(s.src, s.src_format, n, c, y, x), static_cast<size_t>((k * s.src[1] + c) * 9 + tap),
               place(s.dst, s.dst_format, n, k, oy, ox));
        }
      }
    }
  }
}

Floats run(const Convolution& s, std::vector<const void*> inputs, Floats output) {
  const auto made = winograd_layer(s);
  EXPECT_TRUE(made.has_value());
  if (!made) return output;
  KernelIo io;
  io.inputs = std::move(inputs);
  io.outputs = {output.data()};
  const auto scratch = *Buffer::allocate(made->kernel->scratch_bytes());
  std::fill_n(reinterpret_cast<float*>(scratch->data()), made->kernel->scratch_bytes() / sizeof(float), NAN);
  io.scratch = scratch->data();
  (*made->kernel->bind(std::move(io)))->run();
  return output;
}

// Errors are of the size of the largest result, as sums of many products have them.
void expect_near(const Floats& got, const std::vector<double>& want, const std::string& where) {
  double largest = 0;
  for (double w : want) largest = std::max(largest, std::fabs(w));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], 1e-5 * largest) << where << ", element " << i;
}

// Expects the kernel to give `want` with every instruction set and number of threads.
void expect_everywhere(const Convolution& s, const std::vector<const void*>& inputs, const Floats& before,
                       const std::vector<double>& want) {
  for (const SimdTable* const* table = simd_tables(); *table != nullptr; ++table) {
    if (s.src_format == Format::kBlocked8 && (*table)->lanes > 8) continue;
    const ForcedSimd forced(*table);
    for (const int threads : {1, 2}) {
      const ThreadScope scope(threads);
      const int format = static_cast<int>(s.src_format);
      expect_near(run(s, inputs, before), want,
                  fmt::format("{}, {} threads, format {}", (*table)->name, threads, format));
    }
  }
}

// body(spec) for every case in every format.
template <typename Body>
void for_cases(Pass pass, const Body& body) {
  for (const WinogradCase& c : kWinogradCases) {
    SCOPED_TRACE(c.what);
    for (const Format format : {Format::kChannelsLast, Format::kBlocked8, Format::kBlocked16})
      body(spec_of(c, pass, format));
  }
}

TEST(Winograd, Forward) {
  for_cases(Pass::kForward, [](const Convolution& s) {
    const Floats x = random_floats(s.src, 1), w = random_floats(s.weights, 2),
                 before = random_floats(s.dst, 3);
    std::vector<double> want(before.size(), 0.0);
    each_product(s, [&](size_t i, size_t j, size_t o) { want[o] += double{x[i]} * double{w[j]}; });
    expect_everywhere(s, {x.data(), w.data()}, before, want);
    Convolution more = s;
    more.bias = more.post.sum = true;
    more.post.act.op = OpKind::kRelu;
    const Floats bias = random_floats({s.dst[1], 1, 1, 1}, 4);
    const int64_t pixels = s.dst[2] * s.dst[3];
    for (int64_t at = 0; at < static_cast<int64_t>(want.size()); ++at) {
      const int64_t n = at / pixels / s.dst[1], k = at / pixels % s.dst[1];
      const size_t o = place(s.dst, s.dst_format, n, k, at % pixels / s.dst[3], at % s.dst[3]);
      want[o] = std::max(0.0, want[o] + double{bias[static_cast<size_t>(k)]} + double{before[o]});
    }
    expect_everywhere(more, {x.data(), w.data(), bias.data()}, before, want);
  });
}

TEST(Winograd, GradientOfTheInput) {
  for_cases(Pass::kBackwardData, [](const Convolution& s) {
    const Floats dy = random_floats(s.dst, 1), w = random_floats(s.weights, 2),
                 before = random_floats(s.src, 3);
    std::vector<double> want(before.size(), 0.0);
    each_product(s, [&](size_t i, size_t j, size_t o) { want[i] += double{dy[o]} * double{w[j]}; });
    expect_everywhere(s, {dy.data(), w.data()}, before, want);
  });
}

TEST(Winograd, GradientOfTheWeights) {
  for_cases(Pass::kBackwardWeights, [](const Convolution& s) {
    const Floats x = random_floats(s.src, 1), dy = random_floats(s.dst, 2),
                 before = random_floats(s.weights, 3);
    std::vector<double> want(before.size(), 0.0);
    each_product(s, [&](size_t i, size_t j, size_t o) { want[j] += double{x[i]} * double{dy[o]}; });
    expect_everywhere(s, {x.data(), dy.data()}, before, want);
  });
}

TEST(Winograd, OtherConvolutionsAreLeftToOthers) {
  const Convolution good = spec_of(kWinogradCases[0], Pass::kForward, Format::kBlocked16);
  EXPECT_TRUE(has_winograd(good));
  const auto without = [&](auto change) {
    Convolution s = good;
    change(s);
    return !has_winograd(s) && !winograd_layer(s).has_value();
  };
  EXPECT_TRUE(without([](Convolution& s) { s.strides = {1, 2}; }));
  EXPECT_TRUE(without([](Convolution& s) { s.dilations = {2, 2}; }));
  EXPECT_TRUE(without([](Convolution& s) { s.groups = 2; }));
  EXPECT_TRUE(without([](Convolution& s) { s.transposed = true; }));
  EXPECT_TRUE(without([](Convolution& s) { s.weights[3] = 5; }));
  EXPECT_TRUE(without([](Convolution& s) { s.src[1] = s.weights[1] = 24; }));
  EXPECT_TRUE(without([](Convolution& s) { s.pad_end = {3, 1}; }));
  EXPECT_TRUE(without([](Convolution& s) { s.src = {2, 16, 8}; }));
  EXPECT_TRUE(without([](Convolution& s) { s.src_format = Format::kPlain; }));
  EXPECT_TRUE(without([](Convolution& s) { s.post.act.op = OpKind::kGelu; }));
  EXPECT_TRUE(without([](Convolution& s) { s.pass = Pass::kBackwardWeights, s.bias = true; }));
}

}  // namespace
}  // namespace limber
