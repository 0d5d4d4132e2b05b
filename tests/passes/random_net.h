// Random networks of the shapes that channels take in real ones: streams, branches, groups, shuffles, heads.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/random.h"
#include "ops/op_def.h"

namespace limber {

// Images of [N,3,6,6] in, five numbers each out. N is symbolic.
class RandomNet {
 public:
  explicit RandomNet(uint64_t seed) : random_(seed) {}

  Graph build() {
    graph_.name = "random";
    ValueId x = graph_.add_input("x", {DType::kF32, Shape{Dim(Symbol("N")), 3, 6, 6}});
    x = act(conv(x, pick(4, 12), 3));
    const int64_t blocks = pick(1, 5);
    for (int64_t i = 0; i < blocks; ++i) x = block(x);
    const ValueId y = coin() ? image_head(x) : token_head(x);
    graph_.add_output(y, "y");
    const Status status = verify(graph_);
    EXPECT_TRUE(status.ok()) << status.message();
    return std::move(graph_);
  }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.below(static_cast<uint64_t>(high - low + 1)));
  }
  bool coin() { return random_.below(2) == 0; }
  const Shape& shape(ValueId v) const { return graph_.type(v).shape; }
  int64_t channels(ValueId v) const { return shape(v).dim(1); }
  int64_t side(ValueId v) const { return shape(v).dim(2); }
  std::string fresh(std::string_view what) { return fmt::format("{}{}", what, counter_++); }

  ValueId op(OpKind kind, std::vector<ValueId> inputs, Attrs attrs = {}) {
    auto made = emit(graph_, kind, std::move(inputs), std::move(attrs), fresh(op_name(kind)));
    EXPECT_TRUE(made.ok()) << made.status().message();
    LIMBER_ASSERT(made.ok());
    return *made;
  }
  ValueId param(std::vector<int64_t> dims, Role role = Role::kParameter) {
    return graph_.add_parameter(fresh("p"), {DType::kF32, Shape::of(dims)}, role);
  }
  ValueId ints(std::vector<int64_t> values) {
    const auto size = static_cast<int64_t>(values.size());
    return graph_.add_constant(fresh("i"), Tensor::from<int64_t>(values, Shape{size}));
  }
  ValueId reshape(ValueId x, std::vector<int64_t> dims) {
    Shape to{Dim(Symbol("N"))};
    for (int64_t dim : dims) to.push_back(dim);
    return op(OpKind::kReshape, {x}, {{"shape", to}});
  }
  ValueId transpose(ValueId x, std::vector<int64_t> perm) {
    return op(OpKind::kTranspose, {x}, {{"perm", std::move(perm)}});
  }

  ValueId conv(ValueId x, int64_t out, int64_t kernel, int64_t groups = 1, int64_t stride = 1) {
    std::vector<ValueId> inputs{x, param({out, channels(x) / groups, kernel, kernel})};
    if (coin()) inputs.push_back(param({out}));
    const int64_t pad = kernel / 2;
    return op(OpKind::kConv, std::move(inputs),
              {{"strides", std::vector<int64_t>{stride, stride}},
               {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
               {"dilations", std::vector<int64_t>{1, 1}},
               {"groups", groups}});
  }

  ValueId norm(ValueId x) {
    const int64_t c = channels(x);
    switch (random_.below(4)) {
      case 0:
        return x;
      case 1:
        return op(OpKind::kInstanceNorm, {x, param({c}), param({c})}, {{"epsilon", 1e-5}});
      case 2:
        if (c % 2 == 0)
          return op(OpKind::kGroupNorm, {x, param({c}), param({c})}, {{"groups", c / 2}, {"epsilon", 1e-5}});
        [[fallthrough]];
      default:
        return op(OpKind::kBatchNorm,
                  {x, param({c}), param({c}), param({c}, Role::kState), param({c}, Role::kState)},
                  {{"epsilon", 1e-5}});
    }
  }

  // Most are not 0 at 0, so that a channel that should be gone shows.
  ValueId act(ValueId x) {
    x = norm(x);
    switch (random_.below(6)) {
      case 0:
        return op(OpKind::kRelu, {x});
      case 1:
        return op(OpKind::kSigmoid, {x});
      case 2:
        return op(OpKind::kCos, {x});
      case 3:
        return op(OpKind::kPRelu, {x, param({channels(x), 1, 1})});
      case 4:
        return op(OpKind::kAdd, {op(OpKind::kGelu, {x}), param({1, channels(x), 1, 1})});
      default:
        return op(OpKind::kHardSwish, {x});
    }
  }

  ValueId block(ValueId x) {
    using Maker = ValueId (RandomNet::*)(ValueId);
    constexpr std::array<Maker, 17> kMakers = {
        &RandomNet::residual, &RandomNet::inverted,    &RandomNet::grouped,   &RandomNet::branches,
        &RandomNet::shuffle,  &RandomNet::squeeze,     &RandomNet::pad_short, &RandomNet::pools,
        &RandomNet::up,       &RandomNet::depth_space, &RandomNet::permuted,  &RandomNet::dense,
        &RandomNet::tiled,    &RandomNet::channel_ln,  &RandomNet::gated,     &RandomNet::group_shuffle,
        &RandomNet::mixed};
    return (this->*kMakers[random_.below(kMakers.size())])(x);
  }

  ValueId residual(ValueId x) {
    ValueId y = act(conv(x, pick(2, 10), 1));
    y = act(conv(y, pick(2, 10), 3));
    const bool project = coin();
    const int64_t out = project ? pick(4, 12) : channels(x);
    y = norm(conv(y, out, 1));
    return op(OpKind::kRelu, {op(OpKind::kAdd, {y, project ? norm(conv(x, out, 1)) : x})});
  }

  ValueId inverted(ValueId x) {
    ValueId y = act(conv(x, pick(3, 10), 1));
    y = act(conv(y, channels(y) * pick(1, 2), 3, channels(y)));
    return op(OpKind::kAdd, {norm(conv(y, channels(x), 1)), x});
  }

  ValueId grouped(ValueId x) {
    const int64_t groups = pick(2, 4), in = groups * pick(1, 4), out = groups * pick(1, 4);
    return act(conv(act(conv(conv(x, in, 1), out, 3, groups)), pick(4, 12), 1));
  }

  ValueId branches(ValueId x) {
    const ValueId a = act(conv(x, pick(2, 6), 1)), b = act(conv(x, pick(2, 6), 3));
    const ValueId both = coin() ? op(OpKind::kConcat, {a, x, b}, {{"axis", int64_t{1}}})
                                : op(OpKind::kConcat, {b, a}, {{"axis", int64_t{1}}});
    return coin() ? both : act(conv(norm(both), pick(4, 12), 1));
  }

  ValueId shuffled(ValueId x, int64_t groups) {
    const int64_t c = channels(x), s = side(x);
    return reshape(transpose(reshape(x, {groups, c / groups, s, s}), {0, 2, 1, 3, 4}), {c, s, s});
  }

  // Half of the channels pass, as in ShuffleNet v2.
  ValueId shuffle(ValueId x) {
    const int64_t half = pick(2, 5);
    x = act(conv(x, 2 * half, 1));
    const int64_t times = pick(1, 2);
    for (int64_t i = 0; i < times; ++i) {
      ValueId pass, work;
      if (coin()) {
        auto parts = emit_node(graph_, OpKind::kSplit, {x},
                               {{"axis", int64_t{1}}, {"sizes", std::vector<int64_t>{half, half}}}, 2);
        LIMBER_ASSERT(parts.ok());
        pass = graph_.node(*parts).outputs[0];
        work = graph_.node(*parts).outputs[1];
      } else {
        pass = channel_slice(x, 0, half);
        work = channel_slice(x, -half, INT64_MAX);
      }
      work = act(conv(act(conv(work, half, 3, half)), half, 1));
      x = shuffled(op(OpKind::kConcat, {pass, work}, {{"axis", int64_t{1}}}), 2);
    }
    return x;
  }

  ValueId group_shuffle(ValueId x) {
    const int64_t groups = pick(2, 3), width = pick(3, 4);
    x = shuffled(act(conv(act(conv(x, groups * width, 1)), groups * width, 1, groups)), groups);
    return act(conv(x, groups * pick(2, 4), 3, groups));
  }

  ValueId channel_slice(ValueId x, int64_t start, int64_t end) {
    return op(OpKind::kSlice, {x},
              {{"axes", std::vector<int64_t>{1}},
               {"starts", std::vector<int64_t>{start}},
               {"ends", std::vector<int64_t>{end}},
               {"steps", std::vector<int64_t>{1}}});
  }

  ValueId squeeze(ValueId x) {
    ValueId s = op(OpKind::kGlobalAveragePool, {x});
    if (coin()) {
      s = op(OpKind::kSigmoid, {conv(act(conv(s, pick(2, 4), 1)), channels(x), 1)});
    } else {
      const int64_t c = channels(x), hidden = pick(2, 4);
      s = op(OpKind::kRelu, {op(OpKind::kGemm, {reshape(s, {c}), param({c, hidden}), param({hidden})})});
      s = op(OpKind::kGemm, {s, param({c, hidden})}, {{"trans_b", int64_t{1}}});
      s = reshape(op(OpKind::kSigmoid, {s}), {c, 1, 1});
    }
    return op(OpKind::kMul, {x, s});
  }

  ValueId pad_short(ValueId x) {
    if (side(x) < 3) return x;
    const int64_t before = pick(0, 3), after = pick(1, 3);
    const ValueId y = act(conv(x, channels(x) + before + after, 3, 1, 2));
    const ValueId small = op(OpKind::kSlice, {x},
                             {{"axes", std::vector<int64_t>{2, 3}},
                              {"starts", std::vector<int64_t>{0, 0}},
                              {"ends", std::vector<int64_t>{INT64_MAX, INT64_MAX}},
                              {"steps", std::vector<int64_t>{2, 2}}});
    const ValueId padded =
        op(OpKind::kPad, {small}, {{"pads", std::vector<int64_t>{0, before, 0, 0, 0, after, 0, 0}}});
    return op(OpKind::kAdd, {y, padded});
  }

  ValueId pools(ValueId x) {
    const Attrs window{{"kernel", std::vector<int64_t>{3, 3}},
                       {"strides", std::vector<int64_t>{1, 1}},
                       {"pads", std::vector<int64_t>{1, 1, 1, 1}}};
    if (coin()) return op(OpKind::kAveragePool, {x}, window);
    Attrs dilated = window;
    dilated.set("dilations", std::vector<int64_t>{1, 1});
    return op(OpKind::kMaxPool, {x}, dilated);
  }

  ValueId up(ValueId x) {
    if (side(x) > 6) return pools(x);
    const int64_t groups = pick(1, 3), in = groups * pick(1, 4), width = pick(1, 4);
    x = conv(x, in, 1);
    const Attrs attrs{{"strides", std::vector<int64_t>{1, 1}},
                      {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                      {"dilations", std::vector<int64_t>{1, 1}},
                      {"output_padding", std::vector<int64_t>{0, 0}},
                      {"groups", groups}};
    x = op(OpKind::kConvTranspose, {x, param({in, width, 3, 3}), param({groups * width})}, attrs);
    const Shape to{Dim(Symbol("N")), channels(x), 2 * side(x), 2 * side(x)};
    const ValueId large = op(OpKind::kResize, {x},
                             {{"shape", to},
                              {"scales", std::vector<double>{1, 1, 2, 2}},
                              {"mode", std::string("nearest")},
                              {"coordinates", std::string("asymmetric")},
                              {"nearest", std::string("floor")}});
    return act(conv(large, pick(4, 10), 3, 1, 2));
  }

  ValueId depth_space(ValueId x) {
    const int64_t c = pick(2, 4);
    x = op(OpKind::kDepthToSpace, {act(conv(x, 4 * c, 1))},
           {{"blocksize", int64_t{2}}, {"mode", std::string(coin() ? "CRD" : "DCR")}});
    return act(conv(op(OpKind::kSpaceToDepth, {act(x)}, {{"blocksize", int64_t{2}}}), pick(4, 10), 1));
  }

  ValueId permuted(ValueId x) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < channels(x); ++i) order.push_back((i * 5 + 2) % channels(x));
    if (coin()) order.back() = -1;
    return act(op(OpKind::kGather, {x, ints(order)}, {{"axis", int64_t{1}}}));
  }

  ValueId dense(ValueId x) {
    for (int i = 0; i < 2; ++i) {
      const ValueId fresh_channels = conv(act(conv(act(x), pick(2, 5), 1)), 3, 3);
      x = op(OpKind::kConcat, {x, fresh_channels}, {{"axis", int64_t{1}}});
    }
    return x;
  }

  ValueId tiled(ValueId x) {
    x = act(conv(x, pick(2, 4), 1));
    return act(op(OpKind::kTile, {x}, {{"repeats", std::vector<int64_t>{1, 2, 1, 1}}}));
  }

  // Pins the stream.
  ValueId channel_ln(ValueId x) {
    const int64_t c = channels(x);
    const ValueId last = op(OpKind::kLayerNorm, {transpose(x, {0, 2, 3, 1}), param({c}), param({c})},
                            {{"axis", int64_t{3}}, {"epsilon", 1e-5}});
    return act(conv(transpose(last, {0, 3, 1, 2}), pick(4, 10), 1));
  }

  // Operators that look at all channels at once, which must then stay.
  ValueId mixed(ValueId x) {
    ValueId y = act(conv(x, pick(3, 8), 1));
    if (coin()) {
      y = op(OpKind::kSoftmax, {y}, {{"axis", int64_t{1}}});
    } else {
      const Attrs over{{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}};
      y = op(OpKind::kSub, {y, op(coin() ? OpKind::kReduceMean : OpKind::kReduceMax, {y}, over)});
    }
    return op(OpKind::kAdd, {conv(y, channels(x), 1), x});
  }

  // A gate from the sum over channels.
  ValueId gated(ValueId x) {
    const ValueId sum =
        op(OpKind::kReduceSum, {x}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}});
    return op(OpKind::kMul, {x, op(OpKind::kSigmoid, {sum})});
  }

  ValueId image_head(ValueId x) {
    const int64_t s = side(x);
    x = coin() ? reshape(op(OpKind::kGlobalAveragePool, {x}), {channels(x)})
               : reshape(x, {channels(x) * s * s});
    x = op(OpKind::kRelu, {linear(x, pick(4, 10))});
    return linear(x, 5);
  }

  ValueId linear(ValueId x, int64_t out) {
    const int64_t in = shape(x).dim(shape(x).rank() - 1);
    if (shape(x).rank() == 2 && coin())
      return op(OpKind::kGemm, {x, param({out, in}), param({out})}, {{"trans_b", int64_t{1}}});
    return op(OpKind::kAdd, {op(OpKind::kMatMul, {x, param({in, out})}), param({out})});
  }

  ValueId token_norm(ValueId x) {
    const int64_t c = shape(x).dim(2);
    if (coin()) return x;
    return op(OpKind::kLayerNorm, {x, param({c}), param({c})}, {{"axis", int64_t{2}}, {"epsilon", 1e-5}});
  }

  ValueId token_head(ValueId x) {
    const int64_t s = side(x);
    x = transpose(reshape(x, {channels(x), s * s}), {0, 2, 1});
    const int64_t blocks = pick(1, 2);
    for (int64_t i = 0; i < blocks; ++i) {
      x = op(OpKind::kAdd, {x, attention(token_norm(x))});
      const ValueId hidden = op(OpKind::kGelu, {linear(token_norm(x), pick(3, 9))});
      x = op(OpKind::kAdd, {x, linear(hidden, shape(x).dim(2))});
    }
    const ValueId first =
        op(OpKind::kGather, {x, graph_.add_constant(fresh("i"), Tensor::scalar<int64_t>(0))},
           {{"axis", int64_t{1}}});
    return linear(first, 5);
  }

  // q, k, v from one product that is cut, or from three.
  std::array<ValueId, 3> heads_of(ValueId x, int64_t heads, int64_t width) {
    const int64_t tokens = shape(x).dim(1);
    std::array<ValueId, 3> qkv;
    if (coin()) {
      ValueId all = reshape(linear(x, 3 * heads * width), {tokens, 3, heads, width});
      all = transpose(all, {2, 0, 3, 1, 4});
      for (int64_t i = 0; i < 3; ++i) {
        const ValueId index = graph_.add_constant(fresh("i"), Tensor::scalar<int64_t>(i));
        qkv[static_cast<size_t>(i)] = op(OpKind::kGather, {all, index}, {{"axis", int64_t{0}}});
      }
      return qkv;
    }
    for (ValueId& v : qkv)
      v = transpose(reshape(linear(x, heads * width), {tokens, heads, width}), {0, 2, 1, 3});
    return qkv;
  }

  // One head, so that its features are the units.
  ValueId single_head(ValueId x) {
    const int64_t width = pick(2, 5);
    const ValueId q = linear(x, width), k = linear(x, width), v = linear(x, pick(2, 5));
    return linear(op(OpKind::kAttention, {q, k, v}, {{"scale", 0.5}}), shape(x).dim(2));
  }

  ValueId attention(ValueId x) {
    if (pick(0, 3) == 0) return single_head(x);
    const int64_t heads = pick(2, 4), width = pick(2, 5), tokens = shape(x).dim(1), c = shape(x).dim(2);
    const auto [q, k, v] = heads_of(x, heads, width);
    ValueId y;
    if (coin()) {
      y = op(OpKind::kAttention, {q, k, v, param({heads, 1, tokens})}, {{"scale", 0.5}});
    } else {
      ValueId scores = op(OpKind::kMatMul, {q, transpose(k, {0, 1, 3, 2})});
      scores = op(OpKind::kMul, {scores, graph_.add_constant(fresh("s"), Tensor::scalar<float>(0.5f))});
      scores = op(OpKind::kAdd, {scores, param({1, heads, tokens, tokens})});
      y = op(OpKind::kMatMul, {op(OpKind::kSoftmax, {scores}, {{"axis", int64_t{3}}}), v});
    }
    return linear(reshape(transpose(y, {0, 2, 1, 3}), {tokens, heads * width}), c);
  }

  Random random_;
  Graph graph_;
  int counter_ = 0;
};

}  // namespace limber
