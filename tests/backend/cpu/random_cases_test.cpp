// Cases nobody thought of: shapes, axes and attributes drawn from a seed, each against the reference. Sizes
// are those at which kernels change their mind: one, primes, and around the widths of vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

using Ints = std::vector<int64_t>;

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed * 7919 + 1) {}

  int64_t upto(int64_t n) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(n))); }
  bool coin() { return upto(2) == 0; }
  int64_t size() {
    static constexpr int64_t kSizes[] = {1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 64, 65};
    return kSizes[upto(std::size(kSizes))];
  }
  // At most `most` elements.
  Shape shape(int min_rank, int max_rank, int64_t most = 6000) {
    Ints dims;
    int64_t elements = 1;
    for (int64_t d = min_rank + upto(max_rank - min_rank + 1); d > 0; --d) {
      int64_t next = size();
      while (elements * next > most) next = next / 2 + (next == 1);
      dims.push_back(std::max<int64_t>(1, next));
      elements *= dims.back();
    }
    return Shape::of(dims);
  }
  // What broadcasts to `shape`.
  Shape narrower(const Shape& shape) {
    Ints dims = shape.dims();
    for (int64_t& d : dims) d = upto(3) == 0 ? 1 : d;
    dims.erase(dims.begin(), dims.begin() + upto(static_cast<int64_t>(dims.size()) + 1));
    return Shape::of(dims);
  }
  Tensor tensor(const Shape& shape, double low = -2, double high = 2) {
    return random_tensor(shape, random_.next(), low, high);
  }
  Ints axes(int rank) {
    Ints out;
    for (int d = 0; d < rank; ++d)
      if (coin()) out.push_back(d);
    return out;
  }
  int64_t axis(const Shape& shape) { return upto(shape.rank()); }

 private:
  Random random_;
};

// One case per seed; a failure says which seed and prints the node.
void each_seed(uint64_t count, const std::function<void(Draw&)>& check) {
  for (uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    check(draw);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(RandomCases, BinaryBroadcasts) {
  constexpr OpKind kOps[] = {OpKind::kAdd, OpKind::kSub, OpKind::kMul,   OpKind::kDiv,    OpKind::kMin,
                             OpKind::kMax, OpKind::kPow, OpKind::kEqual, OpKind::kGreater};
  each_seed(400, [&](Draw& draw) {
    const Shape whole = draw.shape(1, 5);
    Shape a = draw.narrower(whole), b = draw.narrower(whole);
    (draw.coin() ? a : b) = whole;
    expect_same_as_reference(
        {kOps[draw.upto(std::size(kOps))], {draw.tensor(a, 0.2, 3), draw.tensor(b, 0.5, 2)}});
  });
}

TEST(RandomCases, WhereBroadcastsThreeWays) {
  each_seed(150, [&](Draw& draw) {
    const Shape whole = draw.shape(1, 4);
    Tensor condition = *Tensor::allocate({DType::kBool, draw.narrower(whole)});
    for (bool& c : condition.data<bool>()) c = draw.coin();
    expect_same_as_reference(
        {OpKind::kWhere, {condition, draw.tensor(whole), draw.tensor(draw.narrower(whole))}});
  });
}

TEST(RandomCases, ReductionsOverAnyAxes) {
  constexpr OpKind kOps[] = {OpKind::kReduceSum,       OpKind::kReduceMean,      OpKind::kReduceMax,
                             OpKind::kReduceMin,       OpKind::kReduceL1,        OpKind::kReduceL2,
                             OpKind::kReduceSumSquare, OpKind::kReduceLogSumExp, OpKind::kReduceLogSum};
  each_seed(400, [&](Draw& draw) {
    const Shape shape = draw.shape(1, 5);
    expect_same_as_reference({kOps[draw.upto(std::size(kOps))],
                              {draw.tensor(shape, 0.1, 1.5)},
                              {{"axes", draw.axes(shape.rank())}, {"keepdims", int64_t{draw.coin()}}}});
  });
}

TEST(RandomCases, ArgOverAnyAxis) {
  each_seed(200, [&](Draw& draw) {
    const Shape shape = draw.shape(1, 4);
    Tensor x = draw.tensor(shape, 0, 5);
    for (float& v : x.data<float>()) v = static_cast<float>(static_cast<int>(v));  // ties
    expect_same_as_reference({draw.coin() ? OpKind::kArgMax : OpKind::kArgMin,
                              {x},
                              {{"axis", draw.axis(shape)},
                               {"keepdims", int64_t{draw.coin()}},
                               {"select_last", int64_t{draw.coin()}}}});
  });
}

TEST(RandomCases, SoftmaxAndNormalisations) {
  each_seed(200, [&](Draw& draw) {
    const Shape shape = draw.shape(2, 4);
    const Tensor x = draw.tensor(shape, -9, 9);
    expect_same_as_reference({draw.coin() ? OpKind::kSoftmax : OpKind::kLogSoftmax,
                              {x},
                              {{"axis", draw.axis(shape)}},
                              1,
                              {},
                              1e-5,
                              1e-5});
    const int64_t c = shape.dim(1);
    const Tensor scale = draw.tensor({c}, 0.5, 2), bias = draw.tensor({c}), mean = draw.tensor({c}),
                 variance = draw.tensor({c}, 0.5, 2);
    NodeCase norm{OpKind::kBatchNorm, {x, scale, bias, mean, variance}, {{"epsilon", 1e-3}}};
    norm.absolute = 2e-5;
    expect_same_as_reference(norm);
    const int64_t axis = draw.axis(shape);
    norm = {OpKind::kLayerNorm, {x}, {{"axis", axis}, {"epsilon", 1e-3}}, draw.coin() ? 3 : 1};
    norm.relative = norm.absolute = 1e-4;
    expect_same_as_reference(norm);
    Ints divisors;
    for (int64_t g = 1; g <= c; ++g)
      if (c % g == 0) divisors.push_back(g);
    norm = {OpKind::kGroupNorm,
            {x, scale, bias},
            {{"epsilon", 1e-3}, {"groups", divisors[static_cast<size_t>(draw.upto(std::ssize(divisors)))]}}};
    norm.relative = norm.absolute = 2e-4;
    expect_same_as_reference(norm);
  });
}

TEST(RandomCases, TransposesAndDepthToSpace) {
  each_seed(300, [&](Draw& draw) {
    const Shape shape = draw.shape(1, 6);
    Ints perm(static_cast<size_t>(shape.rank()));
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t i = perm.size(); i > 1; --i)
      std::swap(perm[i - 1], perm[static_cast<size_t>(draw.upto(std::ssize(perm)))]);
    const Tensor x = draw.coin() ? draw.tensor(shape) : random_ints(shape, 3, -99, 99);
    expect_same_as_reference({OpKind::kTranspose, {x}, {{"perm", perm}}});
  });
}

TEST(RandomCases, SlicesWithAnyStep) {
  each_seed(300, [&](Draw& draw) {
    const Shape shape = draw.shape(1, 4);
    const Ints axes = draw.axes(shape.rank());
    Ints starts, ends, steps;
    for (int64_t axis : axes) {
      const int64_t size = shape.dim(static_cast<int>(axis));
      starts.push_back(draw.upto(2 * size + 5) - size - 2);
      ends.push_back(draw.upto(2 * size + 5) - size - 2);
      steps.push_back(draw.coin() ? 1 + draw.upto(4) : -1 - draw.upto(4));
    }
    expect_same_as_reference({OpKind::kSlice,
                              {draw.tensor(shape)},
                              {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}}});
  });
}

TEST(RandomCases, PadsOfEitherSign) {
  each_seed(300, [&](Draw& draw) {
    const Shape shape = draw.shape(1, 4, 2000);
    const char* kModes[] = {"constant", "edge", "reflect", "wrap"};
    const char* mode = kModes[draw.upto(4)];
    Ints begin, end;
    for (int d = 0; d < shape.rank(); ++d) {
      const int64_t size = shape.dim(d),
                    most = std::string(mode) == "constant" ? 4 : std::min<int64_t>(3, size - 1);
      const int64_t crop = std::min(most, size - 1);
      begin.push_back(draw.upto(most + crop + 1) - crop);
      end.push_back(draw.upto(most + crop + 1) - crop);
      if (size + begin.back() + end.back() < 1) begin.back() = end.back() = 0;
    }
    begin.insert(begin.end(), end.begin(), end.end());
    expect_same_as_reference(
        {OpKind::kPad, {draw.tensor(shape)}, {{"pads", begin}, {"mode", mode}, {"value", -3.5}}});
  });
}

TEST(RandomCases, ConcatSplitGatherTileExpand) {
  each_seed(200, [&](Draw& draw) {
    const Shape shape = draw.shape(1, 4, 2000);
    const auto axis = static_cast<int>(draw.axis(shape));
    NodeCase concat{OpKind::kConcat, {}, {{"axis", int64_t{axis}}}};
    Ints sizes;
    for (int64_t parts = 1 + draw.upto(5); parts > 0; --parts) {
      Shape part = shape;
      sizes.push_back(draw.upto(6));
      part[axis] = sizes.back();
      concat.inputs.push_back(draw.tensor(part));
    }
    expect_same_as_reference(concat);
    Shape whole = shape;
    whole[axis] = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    expect_same_as_reference({OpKind::kSplit,
                              {draw.tensor(whole)},
                              {{"axis", int64_t{axis}}, {"sizes", sizes}},
                              static_cast<int>(sizes.size())});
    const int64_t size = shape.dim(axis);
    expect_same_as_reference({OpKind::kGather,
                              {draw.tensor(shape), random_ints(draw.shape(0, 2, 40), 5, -size, size - 1)},
                              {{"axis", int64_t{axis}}}});
    Ints repeats;
    for (int d = 0; d < shape.rank(); ++d) repeats.push_back(1 + draw.upto(2));
    expect_same_as_reference({OpKind::kTile, {draw.tensor(shape)}, {{"repeats", repeats}}});
    expect_same_as_reference({OpKind::kExpand, {draw.tensor(draw.narrower(shape))}, {{"shape", shape}}});
  });
}

TEST(RandomCases, ResizesToAnySize) {
  const char* kCoordinates[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                "half_pixel_symmetric"};
  const char* kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  each_seed(200, [&](Draw& draw) {
    const Shape from{1 + draw.upto(2), 1 + draw.upto(4), draw.size(), draw.size()};
    const Shape to{from.dim(0), from.dim(1), draw.size(), draw.size()};
    std::vector<double> scales;
    for (int d = 0; d < 4; ++d)
      scales.push_back(static_cast<double>(to.dim(d)) / static_cast<double>(from.dim(d)));
    NodeCase test{OpKind::kResize,
                  {draw.tensor(from)},
                  {{"shape", to},
                   {"scales", scales},
                   {"mode", draw.coin() ? "nearest" : "linear"},
                   {"coordinates", kCoordinates[draw.upto(5)]},
                   {"nearest", kNearest[draw.upto(4)]}}};
    test.absolute = 1e-5;
    expect_same_as_reference(test);
  });
}

TEST(RandomCases, AttentionOfAnySize) {
  each_seed(120, [&](Draw& draw) {
    const int64_t heads = 1 + draw.upto(3), queries = draw.size(), keys = draw.size(), depth = draw.size(),
                  width = draw.size();
    NodeCase test{OpKind::kAttention,
                  {draw.tensor({heads, queries, depth}), draw.tensor({heads, keys, depth}),
                   draw.tensor({heads, keys, width})},
                  {{"scale", 0.2}}};
    if (draw.coin()) test.inputs.push_back(draw.tensor(draw.narrower({heads, queries, keys}), -3, 3));
    test.relative = test.absolute = 2e-5;
    expect_same_as_reference(test);
  });
}

TEST(RandomCases, PoolGradientsInEveryLayout) {
  each_seed(40, [&](Draw& draw) {
    const Shape x{1 + draw.upto(2), draw.size(), 3 + draw.upto(9), 3 + draw.upto(9)};
    const Ints kernel{1 + draw.upto(3), 1 + draw.upto(3)}, strides{1 + draw.upto(3), 1 + draw.upto(3)};
    const Ints pads{draw.upto(kernel[0]), draw.upto(kernel[1]), draw.upto(kernel[0]), draw.upto(kernel[1])};
    Shape y = x;
    for (int i = 0; i < 2; ++i) {
      const auto k = static_cast<size_t>(i);
      y[2 + i] = (x.dim(2 + i) + pads[k] + pads[k + 2] - kernel[k]) / strides[k] + 1;
    }
    Attrs attrs = {{"kernel", kernel}, {"strides", strides}, {"pads", pads}};
    NodeCase average{OpKind::kAveragePoolBackward, {draw.tensor(y)}, attrs};
    average.attrs.set("shape", x);
    average.attrs.set("count_include_pad", int64_t{draw.coin()});
    average.absolute = 1e-5;
    EXPECT_GE(expect_candidates_match(average, /*tune=*/false), 4u);
    attrs.set("dilations", Ints{1, 1});
    EXPECT_GE(expect_candidates_match({OpKind::kMaxPoolBackward, {draw.tensor(x), draw.tensor(y)}, attrs},
                                      /*tune=*/false),
              4u);
  });
}

}  // namespace
}  // namespace limber
