// Operators between convolutions, run in the layouts convolutions like: the same numbers as plain, and zeros
// where the layout pads.
#include <gtest/gtest.h>

#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "ops/op_def.h"
#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

using Ints = std::vector<int64_t>;

// Whole blocks, parts of blocks, one channel; one, two and three spatial axes.
const Shape kImages[] = {{1, 16, 3, 3}, {2, 20, 5, 7},   {1, 1, 4, 5},  {3, 7, 9},
                         {2, 32, 17},   {1, 9, 2, 3, 4}, {2, 33, 1, 1}, {1, 8, 1, 31}};

void expect_ways(const NodeCase& test, size_t at_least) {
  EXPECT_GE(expect_candidates_match(test, /*tune=*/false), at_least) << op_name(test.op);
}

TEST(Layouts, UnaryOperatorsThatKeepZero) {
  struct Case {
    OpKind op;
    Attrs attrs = {};
  };
  const Case cases[] = {{OpKind::kRelu},
                        {OpKind::kLeakyRelu, {{"alpha", 0.1}}},
                        {OpKind::kSilu},
                        {OpKind::kHardSwish},
                        {OpKind::kMish},
                        {OpKind::kGelu},
                        {OpKind::kGelu, {{"approximate", "tanh"}}},
                        {OpKind::kElu, {{"alpha", 1.3}}},
                        {OpKind::kCelu, {{"alpha", 0.7}}},
                        {OpKind::kSelu, {{"alpha", 1.67326}, {"gamma", 1.0507}}},
                        {OpKind::kTanh},
                        {OpKind::kErf},
                        {OpKind::kAbs},
                        {OpKind::kNeg},
                        {OpKind::kSqrt},
                        {OpKind::kSoftsign}};
  for (const Case& c : cases) {
    for (const Shape& shape : kImages) {
      expect_ways({c.op, {random_tensor(shape, 1, c.op == OpKind::kSqrt ? 0 : -3, 3)}, c.attrs}, 4);
    }
  }
}

// exp(0) is 1: with partial blocks these run in a layout without padding or not at all.
TEST(Layouts, UnaryOperatorsThatDoNotKeepZero) {
  for (OpKind op : {OpKind::kExp, OpKind::kSigmoid, OpKind::kSoftplus, OpKind::kCos, OpKind::kReciprocal,
                    OpKind::kLog, OpKind::kAcos}) {
    for (const Shape& shape : kImages) expect_ways({op, {random_tensor(shape, 1, 0.1, 0.9)}}, 2);
  }
  expect_ways({OpKind::kClip, {random_tensor({2, 20, 5, 7}, 1)}, {{"min", 0.5}, {"max", 1.0}}}, 2);
  expect_ways({OpKind::kHardSigmoid, {random_tensor({2, 20, 5, 7}, 1)}, {{"alpha", 0.2}, {"beta", 0.5}}}, 2);
}

TEST(Layouts, BinaryOperatorsOfEqualShapes) {
  for (OpKind op : {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv, OpKind::kMin, OpKind::kMax,
                    OpKind::kPow, OpKind::kPRelu}) {
    for (const Shape& shape : kImages) {
      expect_ways({op, {random_tensor(shape, 1, 0.2, 2), random_tensor(shape, 2, 0.5, 3)}}, 2);
    }
  }
}

TEST(Layouts, BinaryOperatorsThatBroadcast) {
  struct Pair {
    Shape a, b;
  };
  const Pair pairs[] = {{{2, 16, 5, 7}, {1, 16, 1, 1}},
                        {{2, 16, 5, 7}, {2, 16, 1, 1}},
                        {{2, 32, 5, 7}, {32, 1, 1}},
                        {{2, 20, 5, 7}, {1, 20, 1, 1}},
                        {{2, 20, 5, 7}, {1}},
                        {{2, 20, 5, 7}, {7}},
                        {{2, 20, 5, 7}, {5, 1}},
                        {{2, 20, 5, 7}, {1, 1, 5, 7}},
                        {{2, 20, 5, 7}, {2, 1, 1, 1}},
                        {{1, 16, 5, 7}, {3, 16, 1, 1}},
                        {{2, 8, 9}, {8, 1}},
                        {{1, 6, 2, 3, 4}, {6, 1, 1, 1}}};
  for (const Pair& p : pairs) {
    for (OpKind op : {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv, OpKind::kMax}) {
      expect_ways({op, {random_tensor(p.a, 1), random_tensor(p.b, 2, 0.5, 3)}}, 1);
      expect_ways({op, {random_tensor(p.b, 1), random_tensor(p.a, 2, 0.5, 3)}}, 1);
    }
  }
}

Attrs pool_attrs(const Ints& kernel, const Ints& strides, const Ints& pads, bool maximum, int64_t ceil = 0) {
  Attrs attrs = {{"kernel", kernel}, {"strides", strides}, {"pads", pads}, {"ceil_mode", ceil}};
  if (maximum) attrs.set("dilations", Ints(kernel.size(), 1));
  return attrs;
}

struct PoolCase {
  const char* what;
  Shape x;
  Ints kernel, strides, pads;
};

const PoolCase kPools[] = {
    {"halves", {2, 16, 8, 8}, {2, 2}, {2, 2}, {0, 0, 0, 0}},
    {"overlapping, padded", {1, 20, 9, 8}, {3, 3}, {2, 2}, {1, 1, 1, 1}},
    {"padded on one side", {1, 7, 6, 7}, {3, 2}, {2, 1}, {0, 1, 2, 0}},
    {"stride beyond the kernel", {2, 5, 11, 11}, {1, 2}, {3, 3}, {0, 0, 0, 0}},
    {"one pixel", {1, 1, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
    {"the whole image", {2, 33, 5, 3}, {5, 3}, {1, 1}, {0, 0, 0, 0}},
    {"one axis", {2, 16, 19}, {3}, {2}, {1, 0}},
    {"three axes", {1, 8, 5, 6, 7}, {2, 3, 2}, {1, 2, 2}, {0, 1, 0, 1, 1, 0}},
};

TEST(Layouts, PoolsOfAllKinds) {
  for (const PoolCase& p : kPools) {
    SCOPED_TRACE(p.what);
    for (int64_t ceil : {0, 1}) {
      const Tensor x = random_tensor(p.x, 1);
      expect_ways({OpKind::kMaxPool, {x}, pool_attrs(p.kernel, p.strides, p.pads, true, ceil)}, 2);
      for (int64_t include : {0, 1}) {
        Attrs attrs = pool_attrs(p.kernel, p.strides, p.pads, false, ceil);
        attrs.set("count_include_pad", include);
        const NodeCase average{OpKind::kAveragePool, {x}, attrs};
        Graph graph;
        const auto node = emit_node(graph, average.op, {graph.add_input("x", x.type())}, attrs, 1, "node");
        ASSERT_TRUE(node.ok()) << node.status().message();
        const std::vector<bool> statics(graph.num_values(), false);
        // What ceil mode adds beyond the padding is not counted, which the library cannot say: others do it.
        if (make_cpu_backend({.threads = 1})->begin(graph, statics)->supports(*node)) {
          expect_ways(average, 2);
        } else {
          EXPECT_TRUE(ceil == 1 && include == 1);
        }
      }
    }
  }
}

TEST(Layouts, GlobalPoolsAndMeans) {
  for (const Shape& shape : kImages) {
    expect_ways({OpKind::kGlobalAveragePool, {random_tensor(shape, 1)}}, 2);
    expect_ways({OpKind::kGlobalMaxPool, {random_tensor(shape, 1)}}, 2);
    Ints axes;
    for (int i = 2; i < shape.rank(); ++i) axes.push_back(i);
    expect_ways({OpKind::kReduceMean, {random_tensor(shape, 1)}, {{"axes", axes}, {"keepdims", int64_t{1}}}},
                2);
    expect_ways({OpKind::kReduceMean, {random_tensor(shape, 1)}, {{"axes", axes}, {"keepdims", int64_t{0}}}},
                1);
    expect_ways(
        {OpKind::kReduceMean, {random_tensor(shape, 1)}, {{"axes", Ints{1}}, {"keepdims", int64_t{1}}}}, 1);
  }
}

TEST(Layouts, ConcatAlongEveryAxis) {
  for (int axis = 0; axis < 4; ++axis) {
    for (const Ints& sizes : {Ints{16, 32, 8}, Ints{1, 3}, Ints{5}, Ints{7, 16, 1, 2}}) {
      NodeCase test{OpKind::kConcat, {}, {{"axis", int64_t{axis}}}};
      for (int64_t size : sizes) {
        Shape shape{2, 20, 3, 5};
        shape[axis] = size;
        test.inputs.push_back(random_tensor(shape, static_cast<uint64_t>(size)));
      }
      expect_ways(test, 2);
    }
  }
}

TEST(Layouts, SlicesPadsAndSplitsInChannelsLast) {
  const Tensor x = random_tensor({2, 20, 9, 11}, 1);
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{3}, Ints{1, 3}, Ints{3, 2}, Ints{0, 1, 2, 3}}) {
    const Ints starts(axes.size(), 1), ends(axes.size(), INT64_MAX), steps(axes.size(), 2);
    expect_ways({OpKind::kSlice, {x}, {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}}},
                2);
  }
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    for (const Ints& pads :
         {Ints{0, 0, 1, 2, 0, 0, 3, 0}, Ints{0, 3, 0, 0, 0, 1, 0, 0}, Ints{1, 2, 3, 4, 0, 1, 2, -1}}) {
      expect_ways({OpKind::kPad, {x}, {{"pads", pads}, {"mode", mode}, {"value", 1.5}}}, 2);
    }
  }
  struct Parts {
    int64_t axis;
    Ints sizes;
  };
  for (const Parts& p : {Parts{0, {1, 1}}, Parts{1, {3, 16, 1}}, Parts{2, {9}}, Parts{3, {1, 2, 3, 5}}}) {
    expect_ways(
        {OpKind::kSplit, {x}, {{"axis", p.axis}, {"sizes", p.sizes}}, static_cast<int>(p.sizes.size())}, 2);
  }
}

// A node of a graph with its compiler, and the layouts of images.
struct OneNode {
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
  Graph graph;
  NodeId node;
  std::vector<bool> statics;
  std::unique_ptr<NodeCompiler> compiler;

  OneNode(OpKind op, const std::vector<TensorType>& types, Attrs attrs = {}, int outputs = 1) {
    std::vector<ValueId> inputs;
    for (const TensorType& type : types) inputs.push_back(graph.add_input("x", type));
    auto made = emit_node(graph, op, inputs, std::move(attrs), outputs, "node");
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (made.ok()) node = *made;
    statics.assign(graph.num_values(), false);
    compiler = backend->begin(graph, statics);
  }
};

constexpr Layout kLast{1}, kBlocked8{2}, kBlocked16{3};

TensorType image(const Shape& shape) { return {DType::kF32, shape}; }

bool has_view(OneNode& one, Layout from, Layout to) {
  const Layout nearby[] = {kPlain, kLast};
  const auto candidates = one.compiler->candidates(one.node, nearby);
  EXPECT_TRUE(candidates.ok());
  for (const Candidate& c : *candidates) {
    if (c.view && c.inputs[0] == from && c.outputs[0] == to) return true;
  }
  return false;
}

TEST(Layouts, ATransposeToOrFromChannelsLastIsFree) {
  OneNode to(OpKind::kTranspose, {image({2, 20, 5, 7})}, {{"perm", Ints{0, 2, 3, 1}}});
  EXPECT_TRUE(has_view(to, kLast, kPlain));
  EXPECT_FALSE(has_view(to, kPlain, kLast));
  OneNode from(OpKind::kTranspose, {image({2, 5, 7, 20})}, {{"perm", Ints{0, 3, 1, 2}}});
  EXPECT_TRUE(has_view(from, kPlain, kLast));
  OneNode other(OpKind::kTranspose, {image({2, 20, 5, 7})}, {{"perm", Ints{0, 3, 2, 1}}});
  EXPECT_FALSE(has_view(other, kLast, kPlain) || has_view(other, kPlain, kLast));
  OneNode reshape(OpKind::kReshape, {image({2, 20, 5, 7})}, {{"shape", Shape{2, 700}}});
  EXPECT_TRUE(has_view(reshape, kPlain, kPlain));
}

TEST(Layouts, ReordersThereAndBackGiveTheSame) {
  const auto backend = make_cpu_backend({.threads = 2});
  for (const Shape& shape : kImages) {
    const Tensor x = random_tensor(shape, 1);
    for (Layout from : {kPlain, kLast, kBlocked8, kBlocked16}) {
      for (Layout to : {kPlain, kLast, kBlocked8, kBlocked16}) {
        SCOPED_TRACE(x.type().to_string() + " " + backend->layout_name(from) + ">" +
                     backend->layout_name(to));
        std::shared_ptr<Buffer> memory[2];
        const auto run = [&](Layout a, Layout b, const void* src, void* dst) {
          const auto kernel = backend->reorder(x.type(), a, b);
          ASSERT_TRUE(kernel.ok()) << kernel.status().message();
          const auto scratch = *Buffer::allocate((*kernel)->scratch_bytes());
          (*(*kernel)->bind({{src}, {dst}, scratch->data()}))->run();
        };
        memory[0] = *Buffer::allocate(backend->bytes(x.type(), from));
        memory[1] = *Buffer::allocate(backend->bytes(x.type(), to));
        Tensor back = *Tensor::zeros(x.type());
        run(kPlain, from, x.raw(), memory[0]->data());
        run(from, to, memory[0]->data(), memory[1]->data());
        run(to, kPlain, memory[1]->data(), back.raw());
        EXPECT_EQ(std::memcmp(back.raw(), x.raw(), x.bytes()), 0);
      }
    }
  }
}

TEST(Layouts, BlocksArePaddedToWholeOnes) {
  const auto backend = make_cpu_backend({.threads = 1});
  const TensorType type = image({2, 20, 5, 7});
  EXPECT_EQ(backend->bytes(type, kPlain), type.bytes());
  EXPECT_EQ(backend->bytes(type, kLast), type.bytes());
  EXPECT_EQ(backend->bytes(type, kBlocked8), type.bytes() / 20 * 24);
  EXPECT_EQ(backend->bytes(type, kBlocked16), type.bytes() / 20 * 32);
}

// Update rules may run over packed memory only as long as its padding stays zero.
TEST(Layouts, ElementWiseNodesKeepThePaddingZero) {
  const TensorType type = image({2, 20, 5, 7}), number{DType::kF32, {}}, one{DType::kF32, {1}};
  const Attrs adam = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}};
  EXPECT_TRUE(OneNode(OpKind::kAdd, {type, type}).compiler->element_wise(NodeId{0}, kBlocked16));
  EXPECT_TRUE(OneNode(OpKind::kMul, {type, type}).compiler->element_wise(NodeId{0}, kBlocked16));
  EXPECT_TRUE(OneNode(OpKind::kMul, {type, number}).compiler->element_wise(NodeId{0}, kBlocked16));
  EXPECT_TRUE(
      OneNode(OpKind::kSgdUpdate, {type, type, number}).compiler->element_wise(NodeId{0}, kBlocked16));
  EXPECT_TRUE(OneNode(OpKind::kAdamUpdate, {type, type, number, type, type, number}, adam, 4)
                  .compiler->element_wise(NodeId{0}, kBlocked16));
  for (const TensorType& b : {number, one}) {  // would fill the padding with the number
    EXPECT_FALSE(OneNode(OpKind::kAdd, {type, b}).compiler->element_wise(NodeId{0}, kBlocked16));
    EXPECT_TRUE(OneNode(OpKind::kAdd, {type, b}).compiler->element_wise(NodeId{0}, kLast)) << "no padding";
  }
  Attrs without = adam;
  without.set("epsilon", 0.0);  // 0 / 0
  EXPECT_FALSE(OneNode(OpKind::kAdamUpdate, {type, type, number, type, type, number}, without, 4)
                   .compiler->element_wise(NodeId{0}, kBlocked16));
}

TEST(Layouts, OtherNodesAreNotElementWise) {
  const TensorType type = image({2, 20, 5, 7});
  EXPECT_FALSE(OneNode(OpKind::kRelu, {type}).compiler->element_wise(NodeId{0}, kBlocked16));
  EXPECT_FALSE(OneNode(OpKind::kAdd, {type, image({1, 20, 1, 1})}).compiler->element_wise(NodeId{0}, kLast))
      << "broadcasts";
  EXPECT_FALSE(OneNode(OpKind::kAdd, {{DType::kI64, {3}}, {DType::kI64, {3}}})
                   .compiler->element_wise(NodeId{0}, kPlain));
  const auto squares = [&](const Ints& axes, int64_t keep) {
    return OneNode(OpKind::kReduceSumSquare, {type}, {{"axes", axes}, {"keepdims", keep}})
        .compiler->element_wise(NodeId{0}, kBlocked16)
        .has_value();
  };
  EXPECT_TRUE(squares({0, 1, 2, 3}, 0));
  EXPECT_FALSE(squares({0, 1, 2, 3}, 1));
  EXPECT_FALSE(squares({1, 2, 3}, 0));
}

TEST(Layouts, ReordersThatDoNotExistAreNeverChosen) {
  const auto backend = make_cpu_backend({.threads = 1});
  EXPECT_GE(backend->reorder_seconds({DType::kI64, {4, 4}}, kPlain, kLast), 1);
  EXPECT_LT(backend->reorder_seconds(image({1, 16, 8, 8}), kPlain, kLast), 1e-2);
  EXPECT_LT(backend->reorder_seconds(image({1, 16, 8, 8}), kPlain, kLast),
            backend->reorder_seconds(image({8, 16, 64, 64}), kPlain, kLast));
}

}  // namespace
}  // namespace limber
