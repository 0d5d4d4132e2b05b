// Convolutions and matrix products in every way the backend offers, against the reference.
#include "backend/cpu/layers.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "ops/op_def.h"
#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

using Ints = std::vector<int64_t>;

struct LayerCase {
  const char* what;
  Shape x, w;
  Ints strides, pads, dilations;
  int64_t groups = 1;
};

const LayerCase kLayerCases[] = {
    {"one pixel", {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {"one channel in, prime sizes", {2, 1, 7, 11}, {13, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {"channels around a block", {1, 15, 5, 5}, {17, 15, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {"two blocks and one", {2, 33, 6, 6}, {31, 33, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {"padding on one side only", {1, 8, 6, 7}, {16, 8, 3, 3}, {1, 1}, {0, 2, 1, 0}, {1, 1}},
    {"more padding than kernel reach", {1, 4, 4, 4}, {8, 4, 2, 2}, {1, 1}, {2, 2, 2, 2}, {1, 1}},
    {"strides of two kinds", {1, 16, 11, 13}, {16, 16, 3, 3}, {2, 3}, {1, 1, 1, 1}, {1, 1}},
    {"stride beyond the kernel", {2, 16, 9, 9}, {8, 16, 1, 1}, {3, 3}, {0, 0, 0, 0}, {1, 1}},
    {"dilations of two kinds", {1, 16, 13, 15}, {16, 16, 3, 3}, {1, 1}, {2, 3, 2, 3}, {2, 3}},
    {"a row for a kernel", {1, 16, 3, 21}, {24, 16, 1, 7}, {1, 2}, {0, 3, 0, 3}, {1, 1}},
    {"the whole image for a kernel", {3, 20, 5, 4}, {10, 20, 5, 4}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {"two groups", {1, 32, 6, 6}, {48, 16, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2},
    {"groups that are no blocks", {2, 15, 6, 6}, {10, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 5},
    {"depthwise", {2, 17, 9, 7}, {17, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 17},
    {"depthwise with stride", {1, 32, 9, 9}, {32, 1, 5, 5}, {2, 2}, {1, 2, 2, 1}, {1, 1}, 32},
    {"depthwise with a multiplier", {1, 8, 6, 6}, {24, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 8},
    {"one spatial axis", {2, 16, 19}, {24, 16, 5}, {2}, {2, 1}, {1}},
    {"three spatial axes", {1, 8, 5, 6, 7}, {16, 8, 3, 3, 3}, {1, 2, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}},
};

NodeCase conv(const LayerCase& c, std::vector<Tensor> more = {}) {
  NodeCase test{OpKind::kConv,
                {random_tensor(c.x, 1), random_tensor(c.w, 2)},
                {{"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"groups", c.groups}}};
  test.inputs.insert(test.inputs.end(), more.begin(), more.end());
  test.relative = test.absolute = 1e-4;
  return test;
}

Shape result_of(const NodeCase& test) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (const Tensor& input : test.inputs)
    inputs.push_back(input.valid() ? graph.add_input("x", input.type()) : kNoValue);
  return graph.type(*emit(graph, test.op, inputs, test.attrs)).shape;
}

TEST(Layers, ConvolutionsInEveryLayout) {
  for (const LayerCase& c : kLayerCases) {
    SCOPED_TRACE(c.what);
    EXPECT_GE(expect_candidates_match(conv(c), /*tune=*/false), 2u);
    EXPECT_GE(expect_candidates_match(conv(c, {random_tensor({c.w.dim(0)}, 3)}), /*tune=*/false), 2u);
  }
}

TEST(Layers, EveryImplementationOfAConvolution) {
  for (size_t i : {2u, 6u, 8u, 13u}) {
    SCOPED_TRACE(kLayerCases[i].what);
    EXPECT_GE(expect_candidates_match(conv(kLayerCases[i], {random_tensor({kLayerCases[i].w.dim(0)}, 3)})),
              2u);
  }
}

// Every activation that a convolution can end with, alone and after a residual was added.
TEST(Layers, ActivationsAndResidualsAreApplied) {
  struct Act {
    const char* name;
    double alpha = 0, beta = 0;
  };
  const LayerCase shapes = kLayerCases[2];
  const Tensor bias = random_tensor({shapes.w.dim(0)}, 3);
  const Tensor residual = random_tensor(result_of(conv(shapes)), 4);
  for (const Act& act :
       {Act{"relu"}, Act{"leaky_relu", 0.1}, Act{"clip", 0, 6}, Act{"sigmoid"}, Act{"tanh"}, Act{"elu", 0.7},
        Act{"hard_swish"}, Act{"silu"}, Act{"gelu"}, Act{"softplus"}, Act{"hard_sigmoid", 0.2, 0.5}}) {
    SCOPED_TRACE(act.name);
    for (const std::vector<Tensor>& more :
         {std::vector<Tensor>{}, {bias}, {bias, residual}, {Tensor(), residual}}) {
      NodeCase test = conv(shapes, more);
      set_activation(test.attrs, {OpKind::kIdentity});
      test.attrs.set("act", std::string(act.name));
      test.attrs.set("act_alpha", act.alpha);
      test.attrs.set("act_beta", act.beta);
      EXPECT_GE(expect_candidates_match(test, /*tune=*/false), 1u);
    }
  }
}

TEST(Layers, TransposedConvolutions) {
  struct Case {
    Shape x, w;
    Ints strides, pads, dilations, output_padding;
    int64_t groups;
  };
  const Case cases[] = {
      {{1, 16, 5, 5}, {16, 8, 2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {0, 0}, 1},
      {{2, 5, 4, 6}, {5, 7, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 1},
      {{1, 8, 4, 4}, {8, 3, 3, 3}, {1, 2}, {0, 1, 1, 1}, {2, 1}, {0, 1}, 1},
      {{1, 12, 4, 4}, {12, 2, 4, 4}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 0}, 4},
      {{1, 6, 9}, {6, 4, 3}, {3}, {0, 0}, {1}, {0}, 1},
  };
  for (const Case& c : cases) {
    NodeCase test{OpKind::kConvTranspose,
                  {random_tensor(c.x, 1), random_tensor(c.w, 2)},
                  {{"strides", c.strides},
                   {"pads", c.pads},
                   {"dilations", c.dilations},
                   {"output_padding", c.output_padding},
                   {"groups", c.groups}}};
    test.relative = test.absolute = 1e-4;
    EXPECT_GE(expect_candidates_match(test, /*tune=*/false), 1u);
    test.inputs.push_back(random_tensor({c.w.dim(1) * c.groups}, 3));
    EXPECT_GE(expect_candidates_match(test, /*tune=*/false), 1u);
  }
}

struct ProductCase {
  const char* what;
  Shape a, b;
  int64_t trans_a = 0, trans_b = 0;
};

const ProductCase kProducts[] = {
    {"numbers", {1, 1}, {1, 1}},
    {"vectors", {1, 33}, {33, 1}},
    {"outer", {31, 1}, {1, 17}},
    {"primes", {7, 13}, {13, 11}},
    {"first transposed", {13, 7}, {13, 11}, 1, 0},
    {"second transposed", {7, 13}, {11, 13}, 0, 1},
    {"both transposed", {13, 7}, {11, 13}, 1, 1},
    {"batches on one matrix", {2, 3, 5, 16}, {16, 24}},
    {"batches on one transposed", {3, 5, 16}, {24, 16}, 0, 1},
    {"batches of both", {2, 3, 5, 8}, {2, 3, 8, 9}},
    {"batches broadcast", {2, 1, 5, 8}, {1, 3, 8, 9}},
    {"one matrix on batches", {5, 8}, {4, 8, 9}},
    {"batches both transposed", {3, 8, 5}, {3, 9, 8}, 1, 1},
};

NodeCase product(const ProductCase& p) {
  NodeCase test{OpKind::kMatMul,
                {random_tensor(p.a, 1), random_tensor(p.b, 2)},
                {{"trans_a", p.trans_a}, {"trans_b", p.trans_b}}};
  test.relative = test.absolute = 1e-4;
  return test;
}

TEST(Layers, ProductsOfAllKinds) {
  for (const ProductCase& p : kProducts) {
    SCOPED_TRACE(p.what);
    NodeCase test = product(p);
    EXPECT_GE(expect_candidates_match(test, /*tune=*/false), 1u);
    test.constants = {1};  // may be packed ahead
    EXPECT_GE(expect_candidates_match(test, /*tune=*/p.a.rank() == 2), 1u);
  }
}

TEST(Layers, ProductsWithBiasScaleResidualAndActivation) {
  for (size_t i : {3u, 5u, 7u, 9u}) {
    SCOPED_TRACE(kProducts[i].what);
    const Shape y = result_of(product(kProducts[i]));
    const Tensor bias = random_tensor({y.dim(y.rank() - 1)}, 3), residual = random_tensor(y, 4);
    for (bool constant : {false, true}) {
      for (const std::vector<Tensor>& more :
           {std::vector<Tensor>{bias}, {bias, residual}, {Tensor(), residual}}) {
        NodeCase test = product(kProducts[i]);
        test.inputs.insert(test.inputs.end(), more.begin(), more.end());
        if (constant) test.constants = {1};
        EXPECT_GE(expect_candidates_match(test, /*tune=*/false), 1u);
        test.attrs.set("act", std::string("gelu"));
        EXPECT_GE(expect_candidates_match(test, /*tune=*/false), 1u);
      }
      NodeCase scaled = product(kProducts[i]);
      if (constant) scaled.constants = {1};
      scaled.attrs.set("alpha", 0.125);
      EXPECT_GE(expect_candidates_match(scaled, /*tune=*/false), 1u);
    }
  }
}

// One node and how it is described to the library, if it can be.
std::optional<Layer> described(const NodeCase& test, bool weights_static = true) {
  static Graph graph;  // what describe_layer gives back names nothing of it, but shapes are read from it
  graph = Graph();
  std::vector<ValueId> inputs;
  for (const Tensor& input : test.inputs)
    inputs.push_back(input.valid() ? graph.add_input("x", input.type()) : kNoValue);
  const auto node = emit_node(graph, test.op, inputs, test.attrs, test.outputs, "node");
  EXPECT_TRUE(node.ok()) << node.status().message();
  return node.ok() ? describe_layer(graph, graph.node(*node), weights_static) : std::nullopt;
}

TEST(Layers, WhatTheLibraryCannotDoIsLeftToOthers) {
  EXPECT_TRUE(described(conv(kLayerCases[0])));
  NodeCase empty = conv(kLayerCases[2]);
  empty.inputs[0] = random_tensor({0, 15, 5, 5}, 1);
  EXPECT_FALSE(described(empty)) << "no images";
  NodeCase doubles{OpKind::kMatMul, {Tensor::from({1.0, 2.0}, {1, 2}), Tensor::from({1.0, 2.0}, {2, 1})}};
  EXPECT_FALSE(described(doubles)) << "f64";
  NodeCase vector{OpKind::kMatMul, {random_tensor({3}, 1), random_tensor({3, 4}, 2)}};
  EXPECT_FALSE(described(vector)) << "a vector has no rows";
  NodeCase both = product(kProducts[3]);
  both.inputs.push_back(random_tensor({11}, 3));
  EXPECT_TRUE(described(both));
  both.attrs.set("alpha", 2.0);
  EXPECT_FALSE(described(both)) << "a scaled product would scale the bias";
  NodeCase rows = product(kProducts[3]);
  rows.inputs.push_back(random_tensor({7, 1}, 3));
  EXPECT_FALSE(described(rows)) << "a bias by rows";
  EXPECT_FALSE(described({OpKind::kRelu, {random_tensor({3}, 1)}})) << "no layer at all";
}

TEST(Layers, BatchesOnOneMatrixAreRowsOfOneProduct) {
  const auto layer = described(product(kProducts[7]));
  ASSERT_TRUE(layer && layer->matmul);
  EXPECT_EQ(layer->matmul->a, (Ints{30, 16}));
  EXPECT_EQ(layer->matmul->y, (Ints{30, 24}));
  EXPECT_TRUE(layer->matmul->pack_b);
  EXPECT_FALSE(described(product(kProducts[7]), /*weights_static=*/false)->matmul->pack_b);
  EXPECT_FALSE(described(product(kProducts[9]))->matmul->pack_b);
}

TEST(Layers, WhatWasMeasuredIsTakenWhetherOrNotOneTunes) {
  onednn::Library library;
  Tuner tuner("", 1);
  const ThreadScope threads(1);
  const auto layer = described(conv(kLayerCases[2]));
  ASSERT_TRUE(layer);
  const auto guessed = layer_timings(*layer, library, tuner, /*tune=*/false, 1);
  ASSERT_TRUE(guessed.ok());
  for (const Timing& t : *guessed) {
    EXPECT_EQ(t.index, 0);
    EXPECT_EQ(t.tier, 0);
    EXPECT_GT(t.seconds, 0);
  }
  const auto measured = layer_timings(*layer, library, tuner, /*tune=*/true, 1);
  ASSERT_TRUE(measured.ok());
  const auto known = layer_timings(*layer, library, tuner, /*tune=*/false, 1);
  ASSERT_TRUE(known.ok());
  ASSERT_EQ(known->size(), measured->size());
  for (size_t i = 0; i < known->size(); ++i) {
    EXPECT_EQ((*known)[i].seconds, (*measured)[i].seconds);
    EXPECT_EQ((*known)[i].impl, (*measured)[i].impl);
    EXPECT_TRUE(make_layer(*layer, (*known)[i], library).ok());
  }
}

// A timing of another version of the library may name an implementation that does not exist.
TEST(Layers, AnImplementationThatIsNotThereIsAnError) {
  onednn::Library library;
  const auto layer = described(conv(kLayerCases[2]));
  ASSERT_TRUE(layer);
  Timing timing{
      .src = onednn::Format::kChannelsLast, .dst = onednn::Format::kChannelsLast, .variant = kDirect};
  EXPECT_TRUE(make_layer(*layer, timing, library).ok());
  timing.index = 999;
  EXPECT_FALSE(make_layer(*layer, timing, library).ok());
}

}  // namespace
}  // namespace limber
