// Other input shapes than those a model was imported with. The oracle is an import of the file with them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/random.h"
#include "io/builtin_models.h"
#include "tests/io/run_graph.h"

namespace limber {
namespace {

using test::counting;
using test::ModelBuilder;
using test::set_int;
using test::set_ints;

void expect_equal(const Result<Model>& changed, const Result<Model>& imported, const std::string& what) {
  ASSERT_EQ(changed.ok(), imported.ok())
      << what << ": " << changed.status().message() << " | " << imported.status().message();
  if (!imported.ok()) {
    EXPECT_EQ(changed.status().message(), imported.status().message()) << what;
    return;
  }
  EXPECT_EQ(print(changed->graph), print(imported->graph)) << what;
  EXPECT_EQ(hash(changed->graph), hash(imported->graph)) << what;
  EXPECT_EQ(changed->params->names(), imported->params->names()) << what;
}

// The target of the Reshape, a Flatten, a slice up to half the width and zeros of the input's shape all come
// from the input's shape, which the file fixes.
ModelBuilder shapes_everywhere() {
  ModelBuilder b(13);
  b.input("x", {1, 2, 8, 8}).output("y").output("z");
  b.ints("two", {2});
  b.ints("zero", {0});
  b.ints("three", {3});
  b.ints("minus_one", {-1});
  b.filled("w", {4, 2, 3, 3}, 0.25F);
  set_ints(b.node("Conv", {"x", "w"}, {"c"}), "pads", {1, 1, 1, 1});
  b.node("Shape", {"c"}, {"shape"});
  b.node("Slice", {"shape", "three", "two4", "zero"}, {"side"});
  b.ints("two4", {4});
  b.node("Div", {"side", "two"}, {"half"});
  b.node("Slice", {"c", "zero", "half", "three"}, {"s"});
  b.node("ConstantOfShape", {"shape"}, {"zeros"});
  b.node("Add", {"c", "zeros"}, {"sum"});
  set_int(b.node("Flatten", {"sum"}, {"z"}), "axis", 1);
  b.node("Slice", {"shape", "zero", "one", "zero"}, {"n"});
  b.ints("one", {1});
  set_int(b.node("Concat", {"n", "minus_one"}, {"target"}), "axis", 0);
  b.node("Reshape", {"s", "target"}, {"y"});
  return b;
}

TEST(WithShapes, EqualsAnImportWithThem) {
  const ModelBuilder file = shapes_everywhere();
  const auto model = file.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {4, -1, -1, -1}, {2, 2, 6, 10}, {1, -1, 8, 8}, {3, 2, 1, 2}, {1, 5, 8, 8}, {1}}) {
    const InputShapes shapes{{{"x", shape}}, {}};
    expect_equal(with_shapes(*model, shapes), file.import({.shapes = shapes.shapes}),
                 Shape(std::vector<Dim>(shape.begin(), shape.end())).to_string());
  }
  const auto changed = with_shapes(*model, {{{"x", {3, 2, 4, 6}}}, {}});
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_EQ(changed->graph.type(changed->graph.outputs()[0].value).to_string(), "f32[3,48]");
  EXPECT_EQ(changed->graph.type(changed->graph.outputs()[1].value).to_string(), "f32[3,96]");
  const auto outputs = test::run(*changed, {counting({3, 2, 4, 6})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  // And back again: what is not given is as in the file.
  expect_equal(with_shapes(*changed, {}), model, "back");
}

TEST(WithShapes, NamedDimensionsGetValuesAndLoseThem) {
  ModelBuilder b(13);
  b.input("x", {"batch", 4}).output("y");
  set_int(b.node("Flatten", {"x"}, {"y"}), "axis", 1);
  const auto model = b.import({.symbols = {{"batch", 7}}});
  ASSERT_TRUE(model.ok()) << model.status().message();
  expect_equal(with_shapes(*model, {{}, {{"batch", 3}}}), b.import({.symbols = {{"batch", 3}}}), "3");
  expect_equal(with_shapes(*model, {}), b.import(), "open");
}

TEST(WithShapes, WeightsAreSharedAndAsTheyAreNow) {
  const auto model = shapes_everywhere().import();
  ASSERT_TRUE(model.ok());
  auto weights = model->params->writable("w");
  ASSERT_TRUE(weights.ok());
  weights->data<float>()[0] = 42;
  const std::vector<std::string> names = {"w"};
  model->params->mark_changed(names);
  const auto changed = with_shapes(*model, {{{"x", {2, 2, 4, 4}}}, {}});
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(changed->params, model->params);
  EXPECT_EQ(changed->params->get("w")->data<float>()[0], 42);
}

// One channel goes one way, more go another, each with weights of its own.
TEST(WithShapes, AnotherShapeMayTakeAnotherBranch) {
  ModelBuilder b(13);
  b.input("x", {2, 1}).output("y");
  b.scalar_int("one", 1);
  b.filled("a", {2, 1}, 1);
  b.filled("b", {1, 3}, 2);
  b.node("Shape", {"x"}, {"shape"});
  set_int(b.node("Gather", {"shape", "one"}, {"columns"}), "axis", 0);
  b.node("Equal", {"columns", "one"}, {"single"});
  auto& node = b.node("If", {"single"}, {"y"});
  for (const auto& [branch, weight] : {std::pair("then_branch", "a"), std::pair("else_branch", "b")}) {
    auto* attribute = node.add_attribute();
    attribute->set_name(branch);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    ModelBuilder::fill(*attribute->mutable_g()->add_node(), "Mul", {"x", weight},
                       {std::string(branch) + "_y"});
    attribute->mutable_g()->add_output()->set_name(std::string(branch) + "_y");
  }
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->params->names(), (std::vector<std::string>{"a"}));
  const auto changed = with_shapes(*model, {{{"x", {2, 3}}}, {}});
  expect_equal(changed, b.import({.shapes = {{"x", {2, 3}}}}), "two columns");
  EXPECT_EQ(changed->params->names(), (std::vector<std::string>{"b"}));
  EXPECT_EQ(model->params->names(), (std::vector<std::string>{"a"})) << "the first one is as it was";
}

TEST(WithShapes, ReadsNoFile) {
  const std::string folder = fmt::format("{}/limber-shapes-{}", testing::TempDir(), getpid());
  const std::string path = folder + "/model.onnx";
  const Model builtin = *make_builtin("resnet8");
  ASSERT_TRUE(export_onnx(builtin.graph, *builtin.params, path).ok());
  const auto model = import_onnx(path);
  const auto opened = open_onnx(path);
  ASSERT_TRUE(model.ok() && opened.ok());
  const std::string input = model->graph.value(model->graph.inputs()[0]).name;
  const std::map<std::string, std::vector<int64_t>> shapes = {{input, {5, 3, 48, 40}}};
  const auto oracle = import_onnx(path, {.shapes = shapes});
  std::filesystem::remove_all(folder);
  expect_equal(with_shapes(*model, {shapes, {}}), oracle, "from the model");
  expect_equal((*opened)->make({shapes, {}}), oracle, "from the file");
  EXPECT_EQ(import_onnx(path).status().code(), Code::kNotFound);
}

TEST(WithShapes, OfAModelMadeByCodeIsAnError) {
  EXPECT_EQ(with_shapes(*make_builtin("resnet8"), {}).status().code(), Code::kUnsupported);
}

// Every model of $LIMBER_SHARED/models and every builtin one, as files, with seeded batches and sizes.
TEST(WithShapes, EqualsAnImportForWholeNetworks) {
  std::vector<std::string> files;
  const std::string folder = fmt::format("{}/limber-nets-{}", testing::TempDir(), getpid());
  for (const BuiltinModel& builtin : builtin_list()) {
    const Model made = builtin.make();
    files.push_back(fmt::format("{}/{}.onnx", folder, builtin.name));
    ASSERT_TRUE(export_onnx(made.graph, *made.params, files.back()).ok());
  }
  const char* shared = std::getenv("LIMBER_SHARED");
  std::error_code none;
  if (shared != nullptr) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(shared) + "/models", none)) {
      if (entry.path().extension() == ".onnx") files.push_back(entry.path().string());
    }
  }
  Random random(7);
  for (const std::string& file : files) {
    const auto model = import_onnx(file);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const ValueId input = model->graph.inputs()[0];
    for (int i = 0; i < 4; ++i) {
      std::vector<int64_t> shape(static_cast<size_t>(model->graph.type(input).rank()), -1);
      shape[0] = 1 + static_cast<int64_t>(random.below(5));
      if (i > 0 && shape.size() == 4) shape[2] = shape[3] = 32 * (1 + static_cast<int64_t>(random.below(4)));
      const InputShapes shapes{{{model->graph.value(input).name, shape}}, {}};
      expect_equal(with_shapes(*model, shapes), import_onnx(file, {.shapes = shapes.shapes}), file);
    }
  }
  std::filesystem::remove_all(folder);
}

// --- a dimension of 0 -----------------------------------------------------------------------------------

TEST(ZeroDimension, IsNotTakenForAnOpenOne) {
  ModelBuilder b(13);
  b.input("x", {0, 3, "side"}).output("y");
  b.node("Relu", {"x"}, {"y"});
  const auto model = b.import();
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), Code::kUnsupported);
  EXPECT_NE(model.status().message().find("input 'x': dimension 0 is 0"), std::string::npos)
      << model.status().message();
  EXPECT_NE(model.status().message().find("(shape x=1x3x1)"), std::string::npos) << model.status().message();
  const auto given = b.import({.shapes = {{"x", {2, -1, -1}}}});
  ASSERT_TRUE(given.ok()) << given.status().message();
  EXPECT_EQ(given->graph.type(given->graph.inputs()[0]).to_string(), "f32[2,3,side]");
}

TEST(ZeroDimension, ThatIsAskedForIsHonoured) {
  ModelBuilder b(13);
  b.input("x", {0, 3}).output("y");
  b.node("Relu", {"x"}, {"y"});
  const auto model = b.import({.shapes = {{"x", {0, 3}}}});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto y = test::run(*model, {*Tensor::zeros({DType::kF32, Shape{0, 3}})});
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ((*y)[0].type().to_string(), "f32[0,3]");
}

}  // namespace
}  // namespace limber
