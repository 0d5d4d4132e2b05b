#include "tests/backend/cpu/simd_test_util.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"
#include "base/parallel.h"
#include "ops/op_def.h"

namespace limber {
namespace {

struct Built {
  Graph graph;
  NodeId node;
};

Built build(const NodeCase& test) {
  Built built;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    const bool constant =
        std::find(test.constants.begin(), test.constants.end(), static_cast<int>(i)) != test.constants.end();
    if (!test.inputs[i].valid()) {
      inputs.push_back(kNoValue);
    } else if (constant) {
      inputs.push_back(built.graph.add_constant("c", test.inputs[i]));
    } else {
      inputs.push_back(built.graph.add_input("x", test.inputs[i].type()));
    }
  }
  auto node = emit_node(built.graph, test.op, inputs, test.attrs, test.outputs, "node");
  EXPECT_TRUE(node.ok()) << node.status().message();
  if (node.ok()) built.node = *node;
  return built;
}

// `alias`: the input whose place output 0 takes, or -1.
std::vector<Tensor> run_kernel(const Built& built, const Kernel& kernel, const std::vector<Tensor>& inputs,
                               int alias = -1) {
  std::vector<Tensor> outputs;
  KernelIo io;
  for (const Tensor& input : inputs) io.inputs.push_back(input.valid() ? input.raw() : nullptr);
  for (ValueId v : built.graph.node(built.node).outputs) {
    outputs.push_back(*Tensor::zeros(built.graph.type(v)));
    io.outputs.push_back(outputs.back().raw());
  }
  if (alias >= 0) {
    const Tensor& input = inputs[static_cast<size_t>(alias)];
    std::memcpy(outputs[0].raw(), input.raw(), input.bytes());
    io.inputs[static_cast<size_t>(alias)] = outputs[0].raw();
  }
  const auto scratch = *Buffer::allocate(std::max<size_t>(64, kernel.scratch_bytes()));
  io.scratch = scratch->data();
  auto bound = kernel.bind(std::move(io));
  EXPECT_TRUE(bound.ok());
  (*bound)->run();
  if (alias < 0) (*bound)->run();  // a kernel must not depend on what it left behind
  return outputs;
}

// A failure says which case it was: types, attributes and constants.
std::string describe(const Built& built) { return print(built.graph); }

bool close(double got, double want, const NodeCase& test) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::fabs(got - want) <= test.absolute + test.relative * std::fabs(want);
}

void expect_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const NodeCase& test,
                  const std::string& where) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t o = 0; o < got.size(); ++o) {
    ASSERT_EQ(got[o].type(), want[o].type());
    for (int64_t i = 0; i < got[o].elements(); ++i) {
      const bool floating = is_float(got[o].dtype());
      const bool same = floating ? close(element_as_double(got[o], i), element_as_double(want[o], i), test)
                                 : element_as_int(got[o], i) == element_as_int(want[o], i);
      ASSERT_TRUE(same) << op_name(test.op) << " " << where << ", output " << o << " "
                        << got[o].type().to_string() << ", element " << i << ": got "
                        << element_as_double(got[o], i) << ", want " << element_as_double(want[o], i);
    }
  }
}

}  // namespace

std::vector<Tensor> run_own(const NodeCase& test, const SimdTable& table, int threads) {
  const Built built = build(test);
  const ForcedSimd forced(&table);
  const ThreadScope scope(threads);
  auto kernel = own_kernel(built.graph, built.graph.node(built.node));
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  if (!kernel.ok()) return {};
  return run_kernel(built, **kernel, test.inputs);
}

void expect_same_as_reference(const NodeCase& test) {
  const Built built = build(test);
  ASSERT_NE(built.node, kNoNode);
  SCOPED_TRACE(describe(built));
  ASSERT_TRUE(own_supports(built.graph, built.graph.node(built.node))) << op_name(test.op);
  const auto ref = make_ref_backend();
  auto kernel = ref->begin(built.graph, {})->compile(built.node, {});
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const std::vector<Tensor> want = run_kernel(built, **kernel, test.inputs);
  for (const SimdTable* const* table = simd_tables(); *table != nullptr; ++table) {
    for (int threads : {1, 2}) {
      const std::string where = std::string((*table)->name) + ", " + std::to_string(threads) + " threads";
      expect_close(run_own(test, **table, threads), want, test, where);
    }
  }
}

namespace {

void run_plain(const Kernel& kernel, const void* from, void* to) {
  const auto scratch = *Buffer::allocate(std::max<size_t>(64, kernel.scratch_bytes()));
  auto bound = kernel.bind({{from}, {to}, scratch->data()});
  ASSERT_TRUE(bound.ok());
  (*bound)->run();
}

// A tensor's bytes in another layout; padding holds zeros, as everywhere.
std::shared_ptr<Buffer> in_layout(Backend& backend, const Tensor& tensor, Layout layout) {
  auto buffer = *Buffer::allocate(std::max<size_t>(64, backend.bytes(tensor.type(), layout)));
  std::memset(buffer->data(), 0, buffer->size());
  run_plain(**backend.reorder(tensor.type(), kPlain, layout), tensor.raw(), buffer->data());
  return buffer;
}

// Everybody relies on padding being zero: `memory` holds what `tensor`, which was read from it, says, and
// zeros.
void expect_clean_padding(Backend& backend, const Tensor& tensor, Layout layout, const Buffer& memory) {
  if (layout == kPlain || tensor.dtype() != DType::kF32) return;
  const auto clean = in_layout(backend, tensor, layout);
  const size_t floats = backend.bytes(tensor.type(), layout) / sizeof(float);
  const auto* want = reinterpret_cast<const float*>(clean->data());
  const auto* got = reinterpret_cast<const float*>(memory.data());
  for (size_t i = 0; i < floats; ++i) {
    ASSERT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
        << "element " << i << " of memory in " << backend.layout_name(layout) << " is " << got[i]
        << ", should be " << want[i];
  }
}

std::vector<Tensor> run_candidate(const Built& built, Backend& backend, NodeCompiler& nodes,
                                  Candidate candidate, const std::vector<Tensor>& inputs) {
  const Node& node = built.graph.node(built.node);
  EXPECT_TRUE(nodes.prepare(built.node, candidate).ok());
  auto kernel = nodes.compile(built.node, candidate);
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  if (!kernel.ok()) return {};
  KernelIo io;
  std::vector<std::shared_ptr<Buffer>> kept;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].valid()) kept.push_back(in_layout(backend, inputs[i], candidate.inputs[i]));
    io.inputs.push_back(inputs[i].valid() ? kept.back()->data() : nullptr);
  }
  const size_t first_output = kept.size();
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const TensorType& type = built.graph.type(node.outputs[k]);
    kept.push_back(*Buffer::allocate(std::max<size_t>(64, backend.bytes(type, candidate.outputs[k]))));
    std::memset(kept.back()->data(), 0x5a, kept.back()->size());  // whatever was there before
    io.outputs.push_back(kept.back()->data());
  }
  if (const int alias = candidate.must_alias; alias >= 0) {  // the result is added to what is there
    const auto residual = in_layout(backend, inputs[static_cast<size_t>(alias)], candidate.outputs[0]);
    std::memcpy(kept[first_output]->data(), residual->data(), residual->size());
    io.inputs[static_cast<size_t>(alias)] = io.outputs[0];
  }
  kept.push_back(*Buffer::allocate(std::max<size_t>(64, (*kernel)->scratch_bytes())));
  io.scratch = kept.back()->data();
  auto bound = (*kernel)->bind(std::move(io));
  EXPECT_TRUE(bound.ok()) << bound.status().message();
  (*bound)->run();
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const TensorType& type = built.graph.type(node.outputs[k]);
    outputs.push_back(*Tensor::allocate(type));
    run_plain(**backend.reorder(type, candidate.outputs[k], kPlain), kept[first_output + k]->data(),
              outputs.back().raw());
    expect_clean_padding(backend, outputs.back(), candidate.outputs[k], *kept[first_output + k]);
  }
  return outputs;
}

}  // namespace

size_t expect_candidates_match(const NodeCase& test, bool tune) {
  const Built built = build(test);
  SCOPED_TRACE(describe(built));
  const auto ref = make_ref_backend();
  auto reference = ref->begin(built.graph, {})->compile(built.node, {});
  EXPECT_TRUE(reference.ok()) << reference.status().message();
  const std::vector<Tensor> want = run_kernel(built, **reference, test.inputs);
  const auto backend = make_cpu_backend({.threads = 2, .tune = tune, .cache_file = ""});
  const ThreadScope scope(2);
  const Layout nearby[] = {kPlain, Layout{1}, Layout{2}, Layout{3}};
  std::vector<bool> statics;
  for (const Value& value : built.graph.values()) statics.push_back(value.role == Role::kConstant);
  const auto nodes = backend->begin(built.graph, statics);
  EXPECT_TRUE(nodes->supports(built.node));
  auto candidates = nodes->candidates(built.node, nearby);
  EXPECT_TRUE(candidates.ok()) << candidates.status().message();
  if (!candidates.ok()) return 0;
  for (const Candidate& c : *candidates) {
    if (c.view) continue;
    expect_close(run_candidate(built, *backend, *nodes, c, test.inputs), want, test,
                 c.impl + " in " + backend->layout_name(c.inputs[0]));
  }
  return candidates->size();
}

void expect_same_in_place(const NodeCase& test) {
  const Built built = build(test);
  ASSERT_NE(built.node, kNoNode);
  SCOPED_TRACE(describe(built));
  const Node& node = built.graph.node(built.node);
  const int alias = own_may_alias(built.graph, node);
  ASSERT_GE(alias, 0) << op_name(test.op);
  for (const SimdTable* const* table = simd_tables(); *table != nullptr; ++table) {
    const std::vector<Tensor> want = run_own(test, **table, 2);
    const ForcedSimd forced(*table);
    const ThreadScope scope(2);
    auto kernel = own_kernel(built.graph, node);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    expect_close(run_kernel(built, **kernel, test.inputs, alias), want, test,
                 std::string((*table)->name) + " in place");
  }
}

void expect_unsupported(const NodeCase& test) {
  const Built built = build(test);
  ASSERT_NE(built.node, kNoNode);
  EXPECT_FALSE(own_supports(built.graph, built.graph.node(built.node))) << op_name(test.op);
  const auto kernel = own_kernel(built.graph, built.graph.node(built.node));
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), Code::kUnsupported);
}

Tensor random_tensor(const Shape& shape, uint64_t seed, double low, double high) {
  Random random(seed);
  Tensor tensor = *Tensor::allocate({DType::kF32, shape});
  for (float& x : tensor.data<float>()) x = static_cast<float>(random.uniform(low, high));
  return tensor;
}

Tensor random_ints(const Shape& shape, uint64_t seed, int64_t low, int64_t high) {
  Random random(seed);
  Tensor tensor = *Tensor::allocate({DType::kI64, shape});
  for (int64_t& x : tensor.data<int64_t>()) {
    x = low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
  }
  return tensor;
}

}  // namespace limber
