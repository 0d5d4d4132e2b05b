// Random nets give the same numbers before and after the passes.
#include <algorithm>
#include <cmath>

#include "tests/passes/golden.h"
#include "tests/passes/interpret.h"

namespace limber {
namespace {

void expect_same_numbers(const Graph& before, const Graph& after, uint64_t seed) {
  const TensorMap tensors = random_tensors(before, seed);
  const auto expected = interpret(before, tensors), found = interpret(after, tensors);
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].type(), found[i].type());
    EXPECT_EQ(before.outputs()[i].name, after.outputs()[i].name);
    const auto a = expected[i].data<float>(), b = found[i].data<float>();
    double scale = 1;
    for (float v : a) scale = std::max(scale, std::abs(static_cast<double>(v)));
    for (size_t k = 0; k < a.size(); ++k) {
      ASSERT_NEAR(a[k], b[k], 2e-5 * scale) << "seed " << seed << " element " << k << "\n"
                                            << print(before) << print(after);
    }
  }
}

void expect_passes_keep_numbers(const Graph& graph, uint64_t seed) {
  Graph optimized = graph;
  const Status status = optimize_for_inference(optimized);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(verify(optimized).ok()) << verify(optimized).message();
  expect_same_numbers(graph, optimized, seed);
}

// Builds random nets out of what vision models are made of.
class NetMaker {
 public:
  explicit NetMaker(uint64_t seed) : random_(seed) {}

  Graph image_net() {
    ValueId x = graph_.add_input("x", {DType::kF32, {2, 4, 6, 6}});
    values_ = {x};
    const int length = 4 + pick(8);
    for (int i = 0; i < length; ++i) {
      x = image_layer(pick(4) == 0 ? values_[static_cast<size_t>(pick(static_cast<int>(values_.size())))]
                                   : x);
      values_.push_back(x);
    }
    x = emit(OpKind::kGlobalAveragePool, {x});
    const int64_t channels = graph_.type(x).shape.dim(1);
    x = emit(OpKind::kReshape, {x}, {{"shape", Shape{2, channels}}});
    x = gemm(x, channels, 5);
    return finish(x);
  }

  Graph token_net() {
    ValueId x = graph_.add_input("x", {DType::kF32, {2, 5, 8}});
    const int length = 2 + pick(4);
    for (int i = 0; i < length; ++i) x = pick(2) == 0 ? attention(x) : mlp(x);
    return finish(layer_norm(x));
  }

 private:
  int pick(int count) { return static_cast<int>(random_.below(static_cast<uint64_t>(count))); }
  ValueId emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    auto v = limber::emit(graph_, op, std::move(inputs), std::move(attrs), fmt::format("n{}", next_++));
    EXPECT_TRUE(v.ok()) << v.status().message();
    return *v;
  }
  ValueId param(Shape shape, Role role = Role::kParameter) {
    return graph_.add_parameter(fmt::format("p{}", next_++), {DType::kF32, std::move(shape)}, role);
  }
  ValueId scalar(float value) {
    return graph_.add_constant(fmt::format("c{}", next_++), Tensor::scalar(value));
  }
  ValueId either_way(OpKind op, ValueId a, ValueId b) {
    return pick(2) == 0 ? emit(op, {a, b}) : emit(op, {b, a});
  }

  Graph finish(ValueId last) {
    graph_.add_output(last, "y");
    if (!values_.empty() && pick(3) == 0) graph_.add_output(values_[values_.size() / 2], "middle");
    return std::move(graph_);
  }

  // --- images ---------------------------------------------------------------------------------------------

  ValueId image_layer(ValueId x) {
    switch (pick(9)) {
      case 0:
      case 1:
        return conv(x);
      case 2:
        return batch_norm(conv(x));
      case 3:
        return activation(batch_norm(conv(x)));
      case 4:
        return batch_norm(x);
      case 5:
        return residual(x);
      case 6:
        return per_channel(x);
      case 7:
        return transposed_conv(x);
      default:
        return activation(x);
    }
  }

  ValueId conv(ValueId x, int64_t out = 0) {
    const int64_t in = graph_.type(x).shape.dim(1), kernel = pick(2) == 0 ? 1 : 3;
    const int64_t groups = pick(3) == 0 ? 2 : 1, channels = out != 0 ? out : 2 * (1 + pick(3));
    const int64_t pad = kernel / 2;
    std::vector<ValueId> inputs{x, param({channels, in / groups, kernel, kernel})};
    if (pick(2) == 0) inputs.push_back(param({channels}));
    return emit(OpKind::kConv, std::move(inputs),
                {{"strides", std::vector<int64_t>{1, 1}},
                 {"dilations", std::vector<int64_t>{1, 1}},
                 {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                 {"groups", groups}});
  }

  ValueId transposed_conv(ValueId x) {
    const int64_t in = graph_.type(x).shape.dim(1), groups = pick(2) == 0 ? 2 : 1;
    const ValueId y = emit(OpKind::kConvTranspose, {x, param({in, 4 / groups, 3, 3})},
                           {{"strides", std::vector<int64_t>{1, 1}},
                            {"dilations", std::vector<int64_t>{1, 1}},
                            {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                            {"output_padding", std::vector<int64_t>{0, 0}},
                            {"groups", groups}});
    return pick(2) == 0 ? batch_norm(y) : per_channel(y);
  }

  ValueId batch_norm(ValueId x) {
    const Dim c = graph_.type(x).shape[1];
    return emit(OpKind::kBatchNorm, {x, param({c}), param({c}), param({c}), param({c}, Role::kState)},
                {{"epsilon", 1e-3}});
  }

  ValueId per_channel(ValueId x) {
    const Dim c = graph_.type(x).shape[1];
    const ValueId t = pick(2) == 0 ? param({c, 1, 1}) : pick(2) == 0 ? param({1, c, 1, 1}) : scalar(0.7f);
    switch (pick(4)) {
      case 0:
        return either_way(OpKind::kMul, x, t);
      case 1:
        return either_way(OpKind::kAdd, x, t);
      case 2:
        return emit(OpKind::kSub, {x, t});
      default:
        return emit(OpKind::kDiv, {x, scalar(pick(2) == 0 ? 4.0f : 3.0f)});
    }
  }

  ValueId residual(ValueId x) {
    const int64_t channels = graph_.type(x).shape.dim(1);
    const ValueId branch = conv(activation(conv(x)), channels);
    const ValueId shortcut = pick(3) == 0 ? conv(x, channels) : x;
    const ValueId sum = either_way(OpKind::kAdd, branch, shortcut);
    return pick(2) == 0 ? activation(sum) : sum;
  }

  ValueId activation(ValueId x) {
    switch (pick(11)) {
      case 0:
        return emit(OpKind::kRelu, {x});
      case 1:
        return emit(OpKind::kClip, {x}, {{"min", 0.0}, {"max", 6.0}});
      case 2:
        return either_way(OpKind::kMul, x, emit(OpKind::kSigmoid, {x}));
      case 3:
        return emit(OpKind::kLeakyRelu, {x}, {{"alpha", 0.1}});
      case 4:
        return hard_swish(x);
      case 5:
        return gelu(x);
      case 6:
        return gelu_tanh(x);
      case 7:
        return either_way(OpKind::kMul, x, emit(OpKind::kTanh, {emit(OpKind::kSoftplus, {x})}));
      case 8:
        return emit(OpKind::kElu, {x}, {{"alpha", 0.5}});
      case 9:
        return emit(OpKind::kPow, {x, scalar(2)});
      default:
        return emit(OpKind::kTanh, {emit(OpKind::kIdentity, {x})});
    }
  }

  ValueId hard_swish(ValueId x) {
    const ValueId clipped =
        emit(OpKind::kClip, {either_way(OpKind::kAdd, x, scalar(3))}, {{"min", 0.0}, {"max", 6.0}});
    if (pick(2) == 0) return emit(OpKind::kDiv, {either_way(OpKind::kMul, x, clipped), scalar(6)});
    return either_way(OpKind::kMul, x, emit(OpKind::kDiv, {clipped, scalar(6)}));
  }

  ValueId half_of_product(ValueId x, ValueId gate) {
    const ValueId sum = either_way(OpKind::kAdd, gate, scalar(1));
    if (pick(2) == 0) return either_way(OpKind::kMul, either_way(OpKind::kMul, x, scalar(0.5f)), sum);
    return either_way(OpKind::kMul, either_way(OpKind::kMul, x, sum), scalar(0.5f));
  }

  ValueId gelu(ValueId x) {
    return half_of_product(x, emit(OpKind::kErf, {emit(OpKind::kDiv, {x, scalar(1.41421356f)})}));
  }

  ValueId gelu_tanh(ValueId x) {
    const ValueId cube = pick(2) == 0 ? emit(OpKind::kPow, {x, scalar(3)})
                                      : emit(OpKind::kMul, {emit(OpKind::kMul, {x, x}), x});
    const ValueId inner = either_way(OpKind::kAdd, x, either_way(OpKind::kMul, cube, scalar(0.044715f)));
    return half_of_product(x, emit(OpKind::kTanh, {either_way(OpKind::kMul, inner, scalar(0.7978845608f))}));
  }

  // --- tokens ---------------------------------------------------------------------------------------------

  ValueId gemm(ValueId x, int64_t in, int64_t out) {
    const bool transposed = pick(2) == 0;
    return emit(OpKind::kGemm, {x, param(transposed ? Shape{out, in} : Shape{in, out}), param({out})},
                {{"alpha", 0.5}, {"beta", pick(2) == 0 ? 1.0 : 2.0}, {"trans_b", int64_t{transposed}}});
  }

  ValueId linear(ValueId x, int64_t in, int64_t out) {
    const ValueId w =
        pick(2) == 0 ? param({in, out})
                     : emit(OpKind::kTranspose, {param({out, in})}, {{"perm", std::vector<int64_t>{1, 0}}});
    return either_way(OpKind::kAdd, emit(OpKind::kMatMul, {x, w}), param({out}));
  }

  ValueId layer_norm(ValueId x) {
    const auto mean = [this](ValueId v) {
      return emit(OpKind::kReduceMean, {v}, {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{1}}});
    };
    const ValueId d = emit(OpKind::kSub, {x, mean(x)});
    const ValueId square = pick(2) == 0 ? emit(OpKind::kMul, {d, d}) : emit(OpKind::kPow, {d, scalar(2)});
    const ValueId root = emit(OpKind::kSqrt, {emit(OpKind::kAdd, {mean(square), scalar(1e-3f)})});
    const ValueId normal = pick(2) == 0 ? emit(OpKind::kDiv, {d, root})
                                        : emit(OpKind::kMul, {d, emit(OpKind::kReciprocal, {root})});
    return either_way(OpKind::kAdd, either_way(OpKind::kMul, normal, param({8})), param({8}));
  }

  ValueId mlp(ValueId x) {
    const ValueId hidden = activation(linear(layer_norm(x), 8, 12));
    ValueId y = linear(hidden, 12, 8);
    if (pick(2) == 0) y = either_way(OpKind::kMul, y, param({8}));
    return either_way(OpKind::kAdd, x, y);
  }

  ValueId heads(ValueId x, const std::vector<int64_t>& perm) {
    return emit(OpKind::kTranspose, {emit(OpKind::kReshape, {x}, {{"shape", Shape{2, 5, 2, 4}}})},
                {{"perm", perm}});
  }

  ValueId attention(ValueId x) {
    const ValueId n = layer_norm(x);
    ValueId q = heads(linear(n, 8, 8), {0, 2, 1, 3});
    ValueId k = heads(linear(n, 8, 8), {0, 2, 3, 1});
    const ValueId v = heads(linear(n, 8, 8), {0, 2, 1, 3});
    const int where = pick(3);
    if (where == 0) q = either_way(OpKind::kMul, q, scalar(0.6f));
    if (where == 1) k = emit(OpKind::kDiv, {k, scalar(3)});
    ValueId scores = emit(OpKind::kMatMul, {q, k});
    if (where == 2) scores = either_way(OpKind::kMul, scores, scalar(0.4f));
    if (pick(2) == 0) scores = either_way(OpKind::kAdd, scores, param({1, 1, 5, 5}));
    const ValueId weights = emit(OpKind::kSoftmax, {scores}, {{"axis", int64_t{3}}});
    const ValueId mixed = emit(OpKind::kTranspose, {emit(OpKind::kMatMul, {weights, v})},
                               {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    const ValueId joined = emit(OpKind::kReshape, {mixed}, {{"shape", Shape{2, 5, 8}}});
    return either_way(OpKind::kAdd, linear(joined, 8, 8), x);
  }

  Graph graph_;
  Random random_;
  std::vector<ValueId> values_;
  int next_ = 0;
};

TEST(PassesKeepNumbers, OfRandomImageNets) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed)
    expect_passes_keep_numbers(NetMaker(seed).image_net(), seed);
}

TEST(PassesKeepNumbers, OfRandomTokenNets) {
  for (uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed)
    expect_passes_keep_numbers(NetMaker(seed).token_net(), seed);
}

TEST(PassesKeepNumbers, AndFuseEverythingInATokenNet) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Graph graph = NetMaker(seed).token_net();
    const int softmaxes = count_ops(graph, OpKind::kSoftmax);
    ASSERT_TRUE(optimize_for_inference(graph).ok());
    EXPECT_EQ(count_ops(graph, OpKind::kSoftmax), 0);
    EXPECT_EQ(count_ops(graph, OpKind::kAttention), softmaxes);
    EXPECT_EQ(count_ops(graph, OpKind::kReduceMean), 0);
    EXPECT_EQ(count_ops(graph, OpKind::kErf), 0);
    EXPECT_EQ(count_ops(graph, OpKind::kSqrt), 0);
    for (const Node& node : graph.nodes()) {
      EXPECT_FALSE(node.op == OpKind::kAdd && graph.type(node.outputs[0]).rank() == 3) << print(graph);
    }
  }
}

}  // namespace
}  // namespace limber
