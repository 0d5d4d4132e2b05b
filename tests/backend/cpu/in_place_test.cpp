// What the planner may do to kernels: let a result take its input's memory, and run them on any number of
// threads. Neither changes a bit.
#include <gtest/gtest.h>

#include <cstring>

#include "base/parallel.h"
#include "ops/op_def.h"
#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

using Ints = std::vector<int64_t>;

TEST(InPlace, GradientsTakeTheMemoryOfTheGradient) {
  const Shape shape{3, 20, 9, 31};
  const Tensor x = random_tensor(shape, 1), dy = random_tensor(shape, 2), c = random_tensor({20}, 3, 0.5, 2);
  for (const char* act : {"", "relu"}) {
    expect_same_in_place(
        {OpKind::kBatchNormBackward, {x, dy, c, c, c, c}, {{"frozen", int64_t{0}}, {"act", act}}, 3});
    expect_same_in_place({OpKind::kBatchNormTraining,
                          {x, c, c, c, c},
                          {{"epsilon", 1e-5}, {"momentum", 0.9}, {"act", act}},
                          5});
    expect_same_in_place({OpKind::kBatchNormApply, {x, c, c, c, c}, {{"act", act}}});
  }
  expect_same_in_place({OpKind::kSoftmaxBackward,
                        {random_tensor({40, 33}, 1, 0, 1), random_tensor({40, 33}, 2)},
                        {{"axis", int64_t{1}}}});
  for (const char* act : {"relu", "silu", "gelu", "hard_swish"}) {
    expect_same_in_place(
        {OpKind::kActivationBackward,
         {dy, x},
         {{"act", act}, {"act_alpha", 0.0}, {"act_beta", 0.0}, {"from_output", int64_t{0}}}});
  }
}

// Output k over input k wherever the operator says that any kernel may.
void expect_update_in_place(const NodeCase& test) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (const Tensor& input : test.inputs)
    inputs.push_back(input.valid() ? graph.add_input("x", input.type()) : kNoValue);
  const auto node = emit_node(graph, test.op, inputs, test.attrs, test.outputs, "node");
  ASSERT_TRUE(node.ok()) << node.status().message();
  for (const SimdTable* const* table = simd_tables(); *table != nullptr; ++table) {
    const std::vector<Tensor> want = run_own(test, **table, 2);
    const ForcedSimd forced(*table);
    const ThreadScope threads(2);
    const auto kernel = own_kernel(graph, graph.node(*node));
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    KernelIo io;
    std::vector<Tensor> memory, results;
    for (const Tensor& input : test.inputs) {
      memory.push_back(input.valid() ? *input.copy() : Tensor());
      io.inputs.push_back(input.valid() ? memory.back().raw() : nullptr);
    }
    for (ValueId v : graph.node(*node).outputs) {
      results.push_back(*Tensor::zeros(graph.type(v)));
      io.outputs.push_back(results.back().raw());
    }
    size_t shared = 0;
    for (const InPlace& place : op_def(test.op).in_place) {
      if (static_cast<size_t>(place.output) >= results.size() ||
          static_cast<size_t>(place.input) >= memory.size())
        continue;
      if (!memory[static_cast<size_t>(place.input)].valid()) continue;
      results[static_cast<size_t>(place.output)] = memory[static_cast<size_t>(place.input)];
      io.outputs[static_cast<size_t>(place.output)] = memory[static_cast<size_t>(place.input)].raw();
      ++shared;
    }
    EXPECT_GE(shared, 1u);
    const auto scratch = *Buffer::allocate((*kernel)->scratch_bytes());
    io.scratch = scratch->data();
    (*(*kernel)->bind(std::move(io)))->run();
    for (size_t k = 0; k < want.size(); ++k) {
      EXPECT_EQ(std::memcmp(results[k].raw(), want[k].raw(), want[k].bytes()), 0)
          << op_name(test.op) << " " << (*table)->name << ", output " << k;
    }
  }
}

TEST(InPlace, UpdatesWriteOverWeightsAndState) {
  const Shape shape{7, 4001};  // more than a thread's share, and no whole vectors
  const Tensor w = random_tensor(shape, 1), g = random_tensor(shape, 2), m = random_tensor(shape, 3),
               v = random_tensor(shape, 4, 0, 1), rate = Tensor::scalar(0.1f), factor = Tensor::scalar(0.5f),
               step = Tensor::scalar(3.0f);
  expect_update_in_place({OpKind::kSgdUpdate, {w, g, rate}, {{"decay", 0.01}}});
  for (int64_t nesterov : {0, 1}) {
    expect_update_in_place(
        {OpKind::kSgdUpdate, {w, g, rate, m, factor}, {{"momentum", 0.9}, {"nesterov", nesterov}}, 3});
  }
  expect_update_in_place({OpKind::kAdamUpdate,
                          {w, g, rate, m, v, step, factor},
                          {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"decay", 0.01}},
                          5});
}

void expect_same_on_threads(const NodeCase& test) {
  for (const SimdTable* const* table = simd_tables(); *table != nullptr; ++table) {
    const std::vector<Tensor> one = run_own(test, **table, 1);
    for (int threads : {2, 3, 7}) {
      const std::vector<Tensor> more = run_own(test, **table, threads);
      ASSERT_EQ(more.size(), one.size());
      for (size_t k = 0; k < one.size(); ++k) {
        EXPECT_EQ(std::memcmp(more[k].raw(), one[k].raw(), one[k].bytes()), 0)
            << op_name(test.op) << " " << (*table)->name << ", output " << k << ", " << threads << " threads";
      }
    }
  }
}

// Large enough to be divided; threads never meet inside what one of them sums.
TEST(Threads, DoNotChangeABit) {
  const Shape image{3, 21, 37, 41};
  const Tensor x = random_tensor(image, 1), y = random_tensor(image, 2, 0.5, 2),
               c = random_tensor({21}, 3, 0.5, 2);
  for (OpKind op : {OpKind::kGelu, OpKind::kExp, OpKind::kSigmoid}) expect_same_on_threads({op, {x}});
  for (OpKind op : {OpKind::kAdd, OpKind::kDiv, OpKind::kPow}) expect_same_on_threads({op, {y, y}});
  expect_same_on_threads({OpKind::kMul, {x, random_tensor({21, 1, 1}, 4)}});
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2, 3}, Ints{0, 2, 3}, Ints{3}}) {
    expect_same_on_threads({OpKind::kReduceSum, {x}, {{"axes", axes}, {"keepdims", int64_t{1}}}});
    expect_same_on_threads({OpKind::kReduceLogSumExp, {x}, {{"axes", axes}, {"keepdims", int64_t{1}}}});
  }
  for (int64_t axis : {1, 3}) expect_same_on_threads({OpKind::kSoftmax, {x}, {{"axis", axis}}});
  expect_same_on_threads({OpKind::kGroupNorm, {x, c, c}, {{"epsilon", 1e-5}, {"groups", int64_t{3}}}});
  expect_same_on_threads(
      {OpKind::kAttention,
       {random_tensor({3, 97, 33}, 1), random_tensor({3, 65, 33}, 2), random_tensor({3, 65, 17}, 3)},
       {{"scale", 0.2}}});
}

TEST(Threads, DoNotChangeABitOfATrainingStep) {
  const Shape image{4, 21, 37, 41};
  const Tensor x = random_tensor(image, 1), dy = random_tensor(image, 2), c = random_tensor({21}, 3, 0.5, 2);
  expect_same_on_threads({OpKind::kBatchNormTraining,
                          {x, c, c, c, c},
                          {{"epsilon", 1e-5}, {"momentum", 0.9}, {"act", "relu"}},
                          5});
  expect_same_on_threads({OpKind::kBatchNormBackward, {x, dy, c, c, c, c}, {{"act", "relu"}}, 3});
  const Shape rows{137, 193};
  expect_same_on_threads({OpKind::kLayerNormBackward,
                          {random_tensor(rows, 1), random_tensor(rows, 2), random_tensor({137, 1}, 3),
                           random_tensor({137, 1}, 4, 0.5, 2), random_tensor({193}, 5)},
                          {{"axis", int64_t{1}}},
                          3});
  const Tensor w = random_tensor({5, 20001}, 1), g = random_tensor({5, 20001}, 2),
               rate = Tensor::scalar(0.1f);
  expect_same_on_threads({OpKind::kSgdUpdate, {w, g, rate, w, Tensor::scalar(0.5f)}, {{"momentum", 0.9}}, 3});
  expect_same_on_threads({OpKind::kGatherBackward,
                          {random_tensor({9, 500, 8}, 1), random_ints({500}, 2, 0, 99)},
                          {{"shape", Shape{9, 100, 8}}, {"axis", int64_t{1}}}});
}

}  // namespace
}  // namespace limber
