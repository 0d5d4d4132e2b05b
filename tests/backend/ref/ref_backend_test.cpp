#include "backend/ref/ref_backend.h"

#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

TEST(RefBackend, OffersReshapeAndIdentityAsViews) {
  Graph g;
  const ValueId x = g.add_input("x", {DType::kF32, {2, 3}});
  const auto reshape = emit_node(g, OpKind::kReshape, {x}, {{"shape", Shape{6}}}, 1);
  const auto relu = emit_node(g, OpKind::kRelu, {x}, {}, 1);
  ASSERT_TRUE(reshape.ok() && relu.ok());
  const auto backend = make_ref_backend();
  const auto nodes = backend->begin(g, {});
  const auto view = nodes->candidates(*reshape, {});
  const auto plain = nodes->candidates(*relu, {});
  ASSERT_TRUE(view.ok() && plain.ok());
  EXPECT_TRUE(view->front().view);
  EXPECT_FALSE(plain->front().view);
  EXPECT_GT(plain->front().seconds, 0);
  EXPECT_TRUE(nodes->compile(*reshape, view->front()).ok());
}

TEST(RefBackend, SaysNoToSymbolicShapes) {
  Graph g;
  const ValueId x = g.add_input("x", {DType::kF32, {Dim(Symbol("N")), 3}});
  const auto relu = emit_node(g, OpKind::kRelu, {x}, {}, 1, "r");
  ASSERT_TRUE(relu.ok());
  const auto backend = make_ref_backend();
  const auto nodes = backend->begin(g, {});
  EXPECT_FALSE(nodes->supports(*relu));
  const auto kernel = nodes->compile(*relu, {});
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.status().message().find("bind"), std::string::npos) << kernel.status().message();
}

TEST(RefBackend, SaysNoToTypesItDoesNotComputeIn) {
  // Straight into the graph: the type rules would not let these through.
  const auto supports = [](OpKind op, DType dtype, const Attrs& attrs = {}) {
    Graph g;
    const TensorType type{dtype, {2, 2}};
    const ValueId a = g.add_input("a", type), b = g.add_input("b", type);
    std::vector<ValueId> inputs = {a};
    if (is_binary(op)) inputs.push_back(b);
    const NodeId node = g.add_node(op, inputs, attrs, {type});
    const auto backend = make_ref_backend();
    return backend->begin(g, {})->supports(node);
  };
  EXPECT_FALSE(supports(OpKind::kSqrt, DType::kI32));
  EXPECT_FALSE(supports(OpKind::kRelu, DType::kBool));
  EXPECT_FALSE(supports(OpKind::kNot, DType::kF32));
  EXPECT_FALSE(supports(OpKind::kIsNaN, DType::kI64));
  EXPECT_FALSE(supports(OpKind::kAdd, DType::kBool));
  EXPECT_FALSE(supports(OpKind::kAnd, DType::kF32));
  EXPECT_FALSE(supports(OpKind::kLess, DType::kBool));
  EXPECT_FALSE(supports(OpKind::kBitShift, DType::kF32, {{"left", int64_t{1}}}));
  EXPECT_FALSE(supports(OpKind::kSoftmax, DType::kI32, {{"axis", int64_t{0}}}));
  EXPECT_FALSE(supports(OpKind::kCumSum, DType::kBool, {{"axis", int64_t{0}}}));
  EXPECT_TRUE(supports(OpKind::kAdd, DType::kU16));
  EXPECT_TRUE(supports(OpKind::kSqrt, DType::kBF16));
}

TEST(RefBackend, LeavesUnwantedOutputsAlone) {
  Graph g;
  const ValueId x = g.add_input("x", {DType::kF32, {3}});
  const auto topk = emit_node(g, OpKind::kTopK, {x}, {{"axis", int64_t{0}}, {"k", int64_t{2}}}, 2);
  ASSERT_TRUE(topk.ok());
  g.mutable_node(*topk).outputs[0] = kNoValue;
  const auto backend = make_ref_backend();
  const auto kernel = backend->begin(g, {})->compile(*topk, {});
  ASSERT_TRUE(kernel.ok());
  const float values[] = {1, 3, 2};
  int64_t indices[2] = {}, scratch[3] = {};
  KernelIo io;
  io.inputs = {values};
  io.outputs = {nullptr, indices};
  io.scratch = scratch;
  const auto bound = (*kernel)->bind(io);
  ASSERT_TRUE(bound.ok());
  (*bound)->run();
  EXPECT_EQ(indices[0], 1);
  EXPECT_EQ(indices[1], 2);
}

}  // namespace
}  // namespace limber::test
