#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/io/run_graph.h"

namespace limber {
namespace {

using test::counting;
using test::ModelBuilder;
using test::run;
using test::set_int;
using test::set_ints;

bool contains(const Status& status, const std::string& part) {
  return status.message().find(part) != std::string::npos;
}

int count(const Graph& graph, OpKind op) {
  int n = 0;
  for (const Node& node : graph.nodes()) n += node.op == op;
  return n;
}

// x.view(x.size(0), -1) as PyTorch writes it.
ModelBuilder dynamic_flatten() {
  ModelBuilder b(13);
  b.input("x", {"batch_size", 2, 3, 4}).output("y");
  b.scalar_int("zero", 0);
  b.ints("minus_one", {-1});
  b.ints("axis", {0});
  b.node("Shape", {"x"}, {"shape"});
  set_int(b.node("Gather", {"shape", "zero"}, {"n"}), "axis", 0);
  b.node("Unsqueeze", {"n", "axis"}, {"n1"});
  set_int(b.node("Concat", {"n1", "minus_one"}, {"target"}), "axis", 0);
  b.node("Reshape", {"x", "target"}, {"y"});
  return b;
}

TEST(ImportOnnx, DynamicBatchReshapeKeepsTheSymbol) {
  const auto model = dynamic_flatten().import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->graph.num_nodes(), 1u) << print(model->graph);
  EXPECT_EQ(model->graph.type(model->graph.outputs()[0].value).to_string(), "f32[batch_size,24]");
  const auto y = run(*model, {counting({2, 2, 3, 4})}, {{"batch_size", 2}});
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ((*y)[0].type().to_string(), "f32[2,24]");
}

TEST(ImportOnnx, ShapesAndSymbolsCanBeFixed) {
  const auto by_shape = dynamic_flatten().import({.shapes = {{"x", {5, -1, -1, -1}}}});
  ASSERT_TRUE(by_shape.ok()) << by_shape.status().message();
  EXPECT_EQ(by_shape->graph.type(by_shape->graph.outputs()[0].value).to_string(), "f32[5,24]");
  const auto by_symbol = dynamic_flatten().import({.symbols = {{"batch_size", 7}}});
  ASSERT_TRUE(by_symbol.ok()) << by_symbol.status().message();
  EXPECT_EQ(by_symbol->graph.type(by_symbol->graph.outputs()[0].value).to_string(), "f32[7,24]");
  EXPECT_FALSE(dynamic_flatten().import({.shapes = {{"x", {5}}}}).ok());
}

TEST(ImportOnnx, LongNamesOfDimensionsStayDistinct) {
  ModelBuilder b;
  b.input("x", {"a_very_long_dimension_name_1", "a_very_long_dimension_name_2"}).output("y");
  b.node("Relu", {"x"}, {"y"});
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Shape& shape = model->graph.type(model->graph.inputs()[0]).shape;
  EXPECT_NE(shape[0], shape[1]);
}

TEST(ImportOnnx, UnnamedDimensionsGetTheInputsName) {
  ModelBuilder b;
  b.input("x", {-1, -1}).output("y");
  b.node("Relu", {"x"}, {"y"});
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->graph.type(model->graph.inputs()[0]).to_string(), "f32[x_d0,x_d1]");
}

TEST(ImportOnnx, SymbolicRangeAndTileStayInTheGraph) {
  ModelBuilder b;
  b.input("x", {"N", 4}).output("r").output("t");
  b.scalar_int("zero", 0);
  b.scalar_int("one", 1);
  b.ints("axis", {0});
  b.ints("tail", {1});
  b.floats("cls", {1, 4}, {1, 2, 3, 4});
  b.node("Shape", {"x"}, {"shape"});
  b.node("Gather", {"shape", "zero"}, {"n"});
  b.node("Range", {"zero", "n", "one"}, {"r"});
  b.node("Unsqueeze", {"n", "axis"}, {"n1"});
  set_int(b.node("Concat", {"n1", "tail"}, {"repeats"}), "axis", 0);
  b.node("Tile", {"cls", "repeats"}, {"t"});
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto y = run(*model, {counting({3, 4})}, {{"N", 3}});
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ((*y)[0].type().to_string(), "i64[3]");
  EXPECT_EQ((*y)[0].data<int64_t>()[2], 2);
  EXPECT_EQ((*y)[1].type().to_string(), "f32[3,4]");
  EXPECT_EQ((*y)[1].data<float>()[11], 4);
}

TEST(ImportOnnx, AnArgumentThatDependsOnASymbolSaysHowToFixIt) {
  ModelBuilder b;
  b.input("x", {1, 3, "H", 8}).output("y");
  auto& node = b.node("MaxPool", {"x"}, {"y"});
  set_ints(node, "kernel_shape", {3, 3});
  set_ints(node, "strides", {2, 2});
  test::set_string(node, "auto_pad", "SAME_UPPER");
  const auto model = b.import();
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), Code::kUnsupported);
  EXPECT_TRUE(contains(model.status(), "dimension H of input 'x'")) << model.status().message();
  EXPECT_TRUE(contains(model.status(), "(shape x=1x3x1x8)")) << model.status().message();
}

TEST(ImportOnnx, KnownInputsAreUsedOnlyWhereNeeded) {
  ModelBuilder b;
  b.input("x", {2, 6}).input("shape", {2}, onnx::TensorProto::INT64).output("y");
  b.node("Reshape", {"x", "shape"}, {"y"});
  const auto without = b.import();
  ASSERT_FALSE(without.ok());
  EXPECT_TRUE(contains(without.status(), "input 'shape'")) << without.status().message();
  ImportOptions options;
  options.known_inputs["shape"] = Tensor::from<int64_t>({3, 4}, Shape{2});
  options.known_inputs["x"] = counting({2, 6});
  const auto model = b.import(options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ(model->graph.inputs().size(), 1u);
  EXPECT_EQ(model->graph.value(model->graph.inputs()[0]).name, "x");
  EXPECT_EQ(model->graph.type(model->graph.outputs()[0].value).to_string(), "f32[3,4]");
}

TEST(ImportOnnx, RolesFollowWhatCanBeTrained) {
  ModelBuilder b;
  b.input("x", {1, 2, 4, 4}).output("y");
  b.filled("w", {2, 2, 1, 1}, 1);
  b.floats("six", {1}, {6});
  b.floats("slope", {1}, {0.25f});
  b.ints("shape", {1, 32});
  b.node("Conv", {"x", "w"}, {"a"});
  b.node("Mul", {"a", "six"}, {"b"});
  b.node("PRelu", {"b", "slope"}, {"c"});
  b.node("Reshape", {"c", "shape"}, {"y"});
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto role = [&](const char* name) { return model->graph.value(*model->graph.find(name)).role; };
  EXPECT_EQ(role("w"), Role::kParameter);
  EXPECT_EQ(role("slope"), Role::kParameter);
  EXPECT_EQ(role("six"), Role::kConstant);
  EXPECT_FALSE(model->graph.find("shape").has_value());
  EXPECT_EQ(model->params->names(), (std::vector<std::string>{"slope", "w"}));
}

// PyTorch writes equal tensors once, and an Identity for each of the others.
TEST(ImportOnnx, EqualVectorsAreTensorsOfTheirOwn) {
  ModelBuilder b;
  b.input("x", {1, 2, 4, 4}).output("y").output("copy");
  b.filled("n.weight", {2}, 1);
  b.filled("n.bias", {2}, 0);
  b.filled("table", {2, 2}, 1);
  b.node("Identity", {"n.weight"}, {"n.var"});
  b.node("Identity", {"n.bias"}, {"n.mean"});
  b.node("BatchNormalization", {"x", "n.weight", "n.bias", "n.mean", "n.var"}, {"y"});
  b.node("Identity", {"table"}, {"other"});
  b.node("Add", {"other", "table"}, {"copy"});
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->params->names(),
            (std::vector<std::string>{"n.bias", "n.mean", "n.var", "n.weight", "table"}));
  Tensor changed = *model->params->writable("n.var");
  changed.data<float>()[0] = 4;
  EXPECT_EQ(model->params->get("n.weight")->data<float>()[0], 1);
  EXPECT_EQ(model->params->get("n.var")->data<float>()[0], 4);
}

TEST(ImportOnnx, AllUnsupportedNodesAreReportedAtOnce) {
  ModelBuilder b;
  b.input("x", {4}).output("y").output("z");
  b.node("Foo", {"x"}, {"a"});
  b.node("Relu", {"a"}, {"b"});
  b.node("LSTM", {"b", "b", "b"}, {"y"});
  b.node("Upsample", {"x", "x"}, {"z"});
  const auto model = b.import();
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), Code::kUnsupported);
  for (const char* part : {"3 things", "'Foo_a' (Foo)", "'LSTM_y' (LSTM)", "'Upsample_z' (Upsample)",
                           "opset 17", "only supported in opset 1 to 9"}) {
    EXPECT_TRUE(contains(model.status(), part)) << part << " in " << model.status().message();
  }
  EXPECT_FALSE(contains(model.status(), "Relu"));
}

TEST(ImportOnnx, AReportHasAnEnd) {
  ModelBuilder b;
  b.input("x", {4});
  for (int i = 0; i < 80; ++i) {
    b.output("y" + std::to_string(i));
    b.node("Foo", {"x"}, {"y" + std::to_string(i)});
  }
  EXPECT_TRUE(contains(b.import().status(), "and 30 more"));
}

TEST(ImportOnnx, OperatorsThatNoOutputNeedsAreIgnored) {
  ModelBuilder b;
  b.input("x", {4}).output("y");
  b.node("Foo", {"x"}, {"unused"});
  b.node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(b.import().ok());
}

TEST(ImportOnnx, NewerOpsetsNameTheSupportedRange) {
  ModelBuilder b(99);
  b.input("x", {4}).output("y");
  b.node("Relu", {"x"}, {"y"});
  const auto model = b.import();
  ASSERT_FALSE(model.ok());
  EXPECT_TRUE(contains(model.status(), "opset 99: only supported in opset 1 to 23"))
      << model.status().message();
}

TEST(ImportOnnx, FunctionsOfOnnxAreExpanded) {
  ModelBuilder b(13);
  b.input("x", {2, 3, 4, 4}).output("y");
  b.node("MeanVarianceNormalization", {"x"}, {"y"});
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_GT(count(model->graph, OpKind::kReduceMean), 0);
}

TEST(ImportOnnx, FunctionsOfTheFileAreExpandedWithTheirAttributes) {
  ModelBuilder b;
  b.input("x", {4}).output("y");
  auto& call = b.node("Leaky", {"x"}, {"y"});
  call.set_domain("my");
  test::set_float(call, "slope", 0.5f);
  auto* domain = b.model.add_opset_import();
  domain->set_domain("my");
  domain->set_version(1);
  auto* f = b.model.add_functions();
  f->set_name("Leaky");
  f->set_domain("my");
  f->add_input("a");
  f->add_output("b");
  f->add_attribute("slope");
  auto* inner = f->add_node();
  ModelBuilder::fill(*inner, "LeakyRelu", {"a"}, {"b"});
  auto* attribute = inner->add_attribute();
  attribute->set_name("alpha");
  attribute->set_ref_attr_name("slope");
  attribute->set_type(onnx::AttributeProto::FLOAT);
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->graph.nodes().at(0).attrs.f("alpha"), 0.5);
}

TEST(ImportOnnx, IfWithAKnownConditionIsItsBranch) {
  for (const bool condition : {true, false}) {
    ModelBuilder b;
    b.input("x", {4}).output("y");
    auto* c = b.tensor("c", onnx::TensorProto::BOOL, {});
    c->add_int32_data(condition);
    auto& node = b.node("If", {"c"}, {"y"});
    for (const auto& [branch, op] : {std::pair("then_branch", "Relu"), std::pair("else_branch", "Abs")}) {
      auto* attribute = node.add_attribute();
      attribute->set_name(branch);
      attribute->set_type(onnx::AttributeProto::GRAPH);
      ModelBuilder::fill(*attribute->mutable_g()->add_node(), op, {"x"}, {"r"});
      attribute->mutable_g()->add_output()->set_name("r");
    }
    const auto model = b.import();
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->graph.nodes().at(0).op, condition ? OpKind::kRelu : OpKind::kAbs);
  }
}

TEST(ImportOnnx, RowsOfADetectionOutputAreCounted) {
  ModelBuilder b;
  b.input("boxes", {1, 6, 4}).input("scores", {1, 1, 6}).output("picked");
  b.ints("max", {3});
  b.node("NonMaxSuppression", {"boxes", "scores", "max"}, {"picked"});
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_NE(model->graph.outputs()[0].rows, kNoValue);
  b.output("more");
  b.node("Relu", {"picked"}, {"more"});
  const auto used = b.import();
  ASSERT_FALSE(used.ok());
  EXPECT_TRUE(contains(used.status(), "only known after the run")) << used.status().message();
}

TEST(ImportOnnx, NonZeroWorksTransposed) {
  ModelBuilder b;
  b.input("x", {2, 3}).output("y");
  b.node("NonZero", {"x"}, {"columns"});
  b.node("Transpose", {"columns"}, {"y"});
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto y = run(*model, {Tensor::from<float>({0, 1, 0, 2, 0, 3}, Shape{2, 3})});
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ((*y)[0].type().to_string(), "i64[3,2]");
  b.graph().mutable_output(0)->set_name("columns");
  EXPECT_TRUE(contains(b.import().status(), "transposed"));
}

TEST(ListOperators, NamesEveryOperatorAndItsSupport) {
  ModelBuilder b(13);
  b.input("x", {4}).output("y");
  b.node("Relu", {"x"}, {"a"});
  b.node("Relu", {"a"}, {"b"});
  b.node("Foo", {"b"}, {"y"});
  b.node("MeanVarianceNormalization", {"b"}, {"z"});
  const std::string path = ::testing::TempDir() + "/operators.onnx";
  std::ofstream(path) << b.bytes();
  const auto uses = list_operators(path);
  ASSERT_TRUE(uses.ok()) << uses.status().message();
  ASSERT_EQ(uses->size(), 3u);
  EXPECT_EQ((*uses)[0].op_type, "Foo");
  EXPECT_FALSE((*uses)[0].forward);
  EXPECT_FALSE((*uses)[0].reason.empty());
  EXPECT_TRUE((*uses)[1].forward);
  EXPECT_EQ((*uses)[2].count, 2);
  EXPECT_EQ((*uses)[2].version, 13);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace limber
