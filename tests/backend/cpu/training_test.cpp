// Kernels that only training uses, against the reference: plain in every instruction set, and in every
// layout and implementation the backend may choose.
#include <gtest/gtest.h>

#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

using Ints = std::vector<int64_t>;

void expect_all(NodeCase test, size_t ways) {
  expect_same_as_reference(test);
  EXPECT_GE(expect_candidates_match(test), ways);
}

struct ConvCase {
  Shape x, w, y;
  Ints strides, pads, dilations;
  int64_t groups;
};

const ConvCase kConvCases[] = {
    {{2, 16, 9, 9}, {32, 16, 3, 3}, {2, 32, 9, 9}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
    {{2, 3, 20, 20}, {16, 3, 7, 7}, {2, 16, 10, 10}, {2, 2}, {3, 3, 3, 3}, {1, 1}, 1},
    {{3, 24, 7, 5}, {40, 24, 1, 1}, {3, 40, 4, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1},
    {{2, 24, 8, 8}, {24, 1, 3, 3}, {2, 24, 4, 4}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 24},
    {{1, 8, 12, 12}, {12, 4, 3, 3}, {1, 12, 8, 8}, {1, 1}, {0, 0, 0, 0}, {2, 2}, 2},
};

Attrs window(const ConvCase& c) {
  return {{"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"groups", c.groups}};
}

TEST(Training, ConvolutionBackwardData) {
  for (const ConvCase& c : kConvCases) {
    NodeCase test{OpKind::kConvBackwardData, {random_tensor(c.y, 1), random_tensor(c.w, 2)}, window(c)};
    test.attrs.set("shape", c.x);
    test.relative = test.absolute = 1e-4;
    EXPECT_GE(expect_candidates_match(test), 2u);
  }
}

TEST(Training, ConvolutionBackwardWeights) {
  for (const ConvCase& c : kConvCases) {
    for (int outputs : {1, 2}) {
      NodeCase test{
          OpKind::kConvBackwardWeights, {random_tensor(c.x, 1), random_tensor(c.y, 2)}, window(c), outputs};
      test.attrs.set("kernel", Ints{c.w.dim(2), c.w.dim(3)});
      test.relative = test.absolute = 2e-4;
      EXPECT_GE(expect_candidates_match(test), 2u);
    }
  }
}

TEST(Training, GatherOfChannels) {
  for (const Shape& shape : {Shape{4, 16, 9, 7}, Shape{2, 40, 5, 5}, Shape{3, 5, 3, 31}, Shape{2, 20, 6}}) {
    for (const Ints& channels :
         {Ints{0}, Ints{3, 1, 1, 4}, Ints{-1, 0, 2, 4, 3, 1, -2, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4}}) {
      const Tensor indices = Tensor::from<int64_t>(channels, {static_cast<int64_t>(channels.size())});
      expect_all({OpKind::kGather, {random_tensor(shape, 1), indices}, {{"axis", int64_t{1}}}}, 4);
    }
  }
}

TEST(Training, BatchNorm) {
  for (const Shape& shape : {Shape{4, 16, 9, 7}, Shape{1, 40, 5, 5}, Shape{3, 5, 33, 31}, Shape{6, 20, 3, 3},
                             Shape{32, 64, 1, 1}}) {
    const int64_t c = shape.dim(1);
    const std::vector<Tensor> inputs = {random_tensor(shape, 1, 3, 7), random_tensor({c}, 2),
                                        random_tensor({c}, 3), random_tensor({c}, 4),
                                        random_tensor({c}, 5, 0.5, 2.0)};
    for (const char* act : {"", "relu"}) {
      NodeCase test{OpKind::kBatchNormTraining,
                    inputs,
                    {{"epsilon", 1e-5}, {"momentum", 0.9}, {"act", std::string(act)}},
                    5};
      test.absolute = 2e-5;  // what is left of x after the mean has fewer digits
      expect_all(test, 4);
    }
  }
}

TEST(Training, BatchNormApply) {
  for (const Shape& shape : {Shape{4, 16, 9, 7}, Shape{3, 5, 33, 31}, Shape{6, 20, 3, 3}}) {
    const int64_t c = shape.dim(1);
    for (const char* act : {"", "relu"}) {
      NodeCase test{OpKind::kBatchNormApply,
                    {random_tensor(shape, 1), random_tensor({c}, 2), random_tensor({c}, 3),
                     random_tensor({c}, 4), random_tensor({c}, 5, 0.5, 2.0)},
                    {{"act", std::string(act)}}};
      test.absolute = 1e-5;
      expect_all(test, 4);
    }
  }
}

TEST(Training, BatchNormBackward) {
  for (const Shape& shape :
       {Shape{4, 16, 9, 7}, Shape{1, 40, 5, 5}, Shape{3, 5, 33, 31}, Shape{6, 20, 3, 3}}) {
    const int64_t c = shape.dim(1);
    for (const char* act : {"", "relu"}) {
      for (int64_t frozen : {0, 1}) {
        NodeCase test{OpKind::kBatchNormBackward,
                      {random_tensor(shape, 1), random_tensor(shape, 2), random_tensor({c}, 3),
                       random_tensor({c}, 4), random_tensor({c}, 5), random_tensor({c}, 6, 0.5, 2.0)},
                      {{"frozen", frozen}, {"act", std::string(act)}},
                      3};
        test.relative = test.absolute = 5e-5;
        expect_all(test, 4);
      }
    }
  }
}

TEST(Training, Activations) {
  const Shape shape{2, 24, 5, 7};
  const Tensor dy = random_tensor(shape, 1), x = random_tensor(shape, 2, -4, 4),
               y = random_tensor(shape, 3, 0.1, 0.9);
  const auto check = [&](const char* act, const Tensor& from, int64_t from_output, double alpha = 0,
                         double beta = 0) {
    NodeCase test{
        OpKind::kActivationBackward,
        {dy, from},
        {{"act", std::string(act)}, {"act_alpha", alpha}, {"act_beta", beta}, {"from_output", from_output}}};
    expect_all(test, 2);
  };
  for (int64_t from_output : {0, 1}) {
    check("relu", x, from_output);
    check("leaky_relu", x, from_output, 0.1);
    check("clip", x, from_output, -1, 2);
  }
  check("hard_sigmoid", x, 0, 0.2, 0.5);
  check("hard_sigmoid", y, 1, 0.2, 0.5);
  for (const char* act : {"sigmoid", "tanh", "softplus"}) check(act, y, 1);
  check("elu", y, 1, 0.7);
  for (const char* act : {"hard_swish", "silu", "gelu", "gelu_tanh", "mish"}) check(act, x, 0);
  check("mish", random_tensor(shape, 4, -30, 60), 0);  // where the exponential alone would overflow
}

TEST(Training, Pools) {
  const Ints two{2, 2}, three{3, 3}, one{1, 1}, pads{1, 1, 1, 1}, none{0, 0, 0, 0};
  const Shape shape{2, 20, 9, 8};
  const Tensor x = random_tensor(shape, 1);
  expect_all({OpKind::kMaxPoolBackward,
              {x, random_tensor({2, 20, 5, 4}, 2)},
              {{"kernel", three}, {"strides", two}, {"pads", pads}, {"dilations", one}}},
             4);
  expect_all({OpKind::kMaxPoolBackward,
              {x, random_tensor({2, 20, 4, 4}, 2)},
              {{"kernel", two}, {"strides", two}, {"pads", none}, {"dilations", one}}},
             4);
  for (int64_t include : {0, 1}) {
    expect_all({OpKind::kAveragePoolBackward,
                {random_tensor({2, 20, 5, 4}, 2)},
                {{"shape", shape},
                 {"kernel", three},
                 {"strides", two},
                 {"pads", pads},
                 {"count_include_pad", include}}},
               4);
  }
  expect_all({OpKind::kAveragePoolBackward,
              {random_tensor({2, 20, 1, 1}, 2)},
              {{"shape", shape}, {"kernel", Ints{9, 8}}, {"strides", one}, {"pads", none}}},
             4);
}

TEST(Training, SoftmaxAndLayerNorm) {
  for (int64_t cols : {1, 7, 64, 197}) {
    const Shape shape{3, 11, cols};
    NodeCase softmax{OpKind::kSoftmaxBackward,
                     {random_tensor(shape, 1, 0, 1), random_tensor(shape, 2)},
                     {{"axis", int64_t{2}}}};
    softmax.absolute = 1e-5;
    expect_same_as_reference(softmax);
    const std::vector<Tensor> inputs = {random_tensor(shape, 1), random_tensor(shape, 2),
                                        random_tensor({3, 11, 1}, 3), random_tensor({3, 11, 1}, 4, 0.5, 2),
                                        random_tensor({cols}, 5)};
    NodeCase test{OpKind::kLayerNormBackward, inputs, {{"axis", int64_t{2}}}, 3};
    test.relative = test.absolute = 5e-5;
    expect_same_as_reference(test);
    test.inputs.pop_back();
    expect_same_as_reference(test);
  }
}

TEST(Training, GatherBackward) {
  const Shape x{3, 10, 7};
  for (int64_t axis : {0, 1, 2}) {
    Shape dy = x;
    dy[static_cast<int>(axis)] = 4;
    const int64_t size = x.dim(static_cast<int>(axis));
    expect_same_as_reference({OpKind::kGatherBackward,
                              {random_tensor(dy, 1), random_ints({4}, 2, -size, size - 1)},
                              {{"shape", x}, {"axis", axis}}});
  }
}

TEST(Training, Optimisers) {
  const Shape shape{5, 7, 11};
  const Tensor w = random_tensor(shape, 1), g = random_tensor(shape, 2), m = random_tensor(shape, 3),
               v = random_tensor(shape, 4, 0, 1), rate = Tensor::scalar(0.1f), factor = Tensor::scalar(0.5f),
               step = Tensor::scalar(3.0f);
  expect_same_as_reference({OpKind::kSgdUpdate, {w, g, rate}, {{"decay", 0.01}}});
  for (int64_t flag : {0, 1}) {
    const Attrs attrs = {
        {"momentum", 0.9}, {"dampening", 0.1}, {"nesterov", flag}, {"decay", 0.01}, {"decoupled", 1 - flag}};
    expect_same_as_reference({OpKind::kSgdUpdate, {w, g, rate, m}, attrs, 2});
    expect_same_as_reference({OpKind::kSgdUpdate, {w, g, rate, m, factor}, attrs, 2});
    expect_same_as_reference({OpKind::kSgdUpdate, {w, g, rate, m, factor}, attrs, 3});
    NodeCase adam{OpKind::kAdamUpdate,
                  {w, g, rate, m, v, step, factor},
                  {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"decay", 0.01}, {"decoupled", flag}},
                  4};
    adam.relative = 1e-4;
    expect_same_as_reference(adam);
    adam.outputs = 5;
    expect_same_as_reference(adam);
  }
}

}  // namespace
}  // namespace limber
