#include "tests/backend/ref/run_op.h"

#include <cmath>
#include <cstring>

namespace limber::test {
namespace {

struct OneNode {
  Graph graph;
  NodeId node;
};

OneNode build(OpKind op, const std::vector<TensorType*>& types, const Attrs& attrs, int num_outputs) {
  OneNode one;
  std::vector<ValueId> inputs;
  for (const TensorType* type : types) {
    inputs.push_back(type == nullptr ? kNoValue : one.graph.add_input("x", *type));
  }
  auto node = emit_node(one.graph, op, inputs, attrs, num_outputs, "node");
  EXPECT_TRUE(node.ok()) << node.status().message();
  if (node.ok()) one.node = *node;
  return one;
}

// Memory that ends where the tensor ends, so that a sanitizer sees the first byte beyond.
Tensor garbage(const TensorType& type) {
  const size_t bytes = type.bytes();
  const std::shared_ptr<std::byte[]> memory(new std::byte[bytes]);
  if (bytes != 0) std::memset(memory.get(), 0xa5, bytes);
  return Tensor(type, Buffer::borrow(memory.get(), bytes, memory));
}

Tensor copy_of(const Tensor& tensor) {
  Tensor copy = garbage(tensor.type());
  if (tensor.bytes() != 0) std::memcpy(copy.raw(), tensor.raw(), tensor.bytes());
  return copy;
}

}  // namespace

Tensor counting(Shape shape, double first) {
  auto t = Tensor::allocate({DType::kF32, std::move(shape)});
  LIMBER_ASSERT(t.ok());
  for (float& x : t->data<float>()) x = static_cast<float>(first++);
  return *t;
}

Tensor as(const Tensor& tensor, DType dtype) {
  return run(OpKind::kCast, {tensor}, {{"to", std::string(dtype_name(dtype))}});
}

std::vector<Tensor> run_all(OpKind op, const std::vector<Tensor>& inputs, const Attrs& attrs,
                            int num_outputs) {
  std::vector<TensorType> types;
  std::vector<TensorType*> given;
  for (const Tensor& t : inputs) types.push_back(t.type());
  for (size_t i = 0; i < inputs.size(); ++i) given.push_back(inputs[i].valid() ? &types[i] : nullptr);
  const OneNode one = build(op, given, attrs, num_outputs);
  if (one.node == kNoNode) return std::vector<Tensor>(static_cast<size_t>(num_outputs), garbage({}));

  const auto backend = make_ref_backend();
  const auto nodes = backend->begin(one.graph, {});
  EXPECT_TRUE(nodes->supports(one.node));
  const auto candidates = nodes->candidates(one.node, {});
  LIMBER_ASSERT(candidates.ok() && candidates->size() == 1);
  EXPECT_GE(candidates->front().seconds, 0);
  const auto kernel = nodes->compile(one.node, candidates->front());
  LIMBER_ASSERT(kernel.ok());

  KernelIo io;
  std::vector<Tensor> copies, outputs;
  for (const Tensor& t : inputs) {
    copies.push_back(t.valid() ? copy_of(t) : Tensor());
    io.inputs.push_back(t.valid() ? copies.back().raw() : nullptr);
  }
  for (ValueId id : one.graph.node(one.node).outputs) {
    outputs.push_back(garbage(one.graph.type(id)));
    io.outputs.push_back(outputs.back().raw());
  }
  Tensor scratch = garbage({DType::kU8, {static_cast<int64_t>((*kernel)->scratch_bytes())}});
  io.scratch = scratch.raw();
  const auto bound = (*kernel)->bind(io);
  LIMBER_ASSERT(bound.ok());
  (*bound)->run();
  return outputs;
}

Tensor run(OpKind op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
  return run_all(op, inputs, attrs, 1)[0];
}

void expect(const Tensor& actual, const TensorType& type, const std::vector<double>& values,
            double tolerance) {
  ASSERT_EQ(actual.type().to_string(), type.to_string());
  ASSERT_EQ(static_cast<size_t>(actual.elements()), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = element_as_double(actual, static_cast<int64_t>(i));
    if (std::isnan(values[i]) && std::isnan(x)) continue;
    if (x == values[i]) continue;
    EXPECT_LE(std::fabs(x - values[i]), tolerance * std::max(1.0, std::fabs(values[i])))
        << "element " << i << " is " << x << ", expected " << values[i];
  }
}

}  // namespace limber::test
