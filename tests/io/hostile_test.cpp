// Files that are wrong on purpose: each must end in a Status that names what is wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "ops/op_def.h"
#include "tests/io/model_builder.h"

namespace limber {
namespace {

using test::ModelBuilder;
using test::set_float;
using test::set_int;
using test::set_ints;
using test::set_string;

void expect_error(const Result<Model>& model, Code code, const std::string& part) {
  ASSERT_FALSE(model.ok()) << print(model->graph);
  EXPECT_EQ(model.status().code(), code) << model.status().message();
  EXPECT_NE(model.status().message().find("test.onnx"), std::string::npos) << model.status().message();
  EXPECT_NE(model.status().message().find(part), std::string::npos) << model.status().message();
}

ModelBuilder relu_model() {
  ModelBuilder b;
  b.input("x", {1, 4}).output("y");
  b.node("Relu", {"x"}, {"y"});
  return b;
}

TEST(HostileOnnx, EveryTruncationOfAValidFileIsHandled) {
  ModelBuilder b;
  b.input("x", {"N", 3, 8, 8}).output("y");
  b.filled("w", {4, 3, 3, 3}, 0.5f);
  b.node("Conv", {"x", "w"}, {"h"});
  b.node("Relu", {"h"}, {"y"});
  const std::string bytes = b.bytes();
  ASSERT_TRUE(b.import().ok()) << b.import().status().message();
  for (size_t n = 0; n < bytes.size(); ++n) {
    const auto part = std::as_bytes(std::span(bytes).subspan(0, n));
    const auto model = import_onnx_bytes(part, "test.onnx");
    const bool named = model.ok() || model.status().message().find("test.onnx") != std::string::npos;
    EXPECT_TRUE(named) << n;
  }
}

TEST(HostileOnnx, FlippedBytesNeverCrash) {
  ModelBuilder b;
  b.input("x", {"N", 3, 8, 8}).output("y");
  b.filled("w", {4, 3, 3, 3}, 0.5f);
  b.ints("shape", {0, -1});
  b.node("Conv", {"x", "w"}, {"h"});
  b.node("Reshape", {"h", "shape"}, {"y"});
  const std::string bytes = b.bytes();
  for (size_t n = 0; n < bytes.size(); ++n) {
    for (const unsigned char flip : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[n] = static_cast<char>(static_cast<unsigned char>(changed[n]) ^ flip);
      const auto model = import_onnx_bytes(std::as_bytes(std::span(changed)), "test.onnx");
      const bool sound = !model.ok() || verify(model->graph).ok();
      EXPECT_TRUE(sound) << "byte " << n << " xor " << int{flip};
    }
  }
}

TEST(HostileOnnx, RandomTextIsNoModel) {
  const std::string text = "this is not a model at all";
  expect_error(import_onnx_bytes(std::as_bytes(std::span(text)), "test.onnx"), Code::kCorrupt, "not an ONNX");
}

TEST(HostileOnnx, CycleNamesANodeInIt) {
  ModelBuilder b;
  b.input("x", {4}).output("y");
  b.node("Add", {"x", "b"}, {"a"});
  b.node("Relu", {"a"}, {"b"});
  b.node("Relu", {"b"}, {"y"});
  expect_error(b.import(), Code::kCorrupt, "cycle");
}

TEST(HostileOnnx, NodesOutOfOrderAreSorted) {
  ModelBuilder b;
  b.input("x", {4}).output("y");
  b.node("Relu", {"h"}, {"y"});
  b.node("Abs", {"x"}, {"h"});
  const auto model = b.import();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->graph.nodes()[0].op, OpKind::kAbs);
}

TEST(HostileOnnx, DuplicateNamesAreRefused) {
  ModelBuilder twice = relu_model();
  twice.node("Abs", {"x"}, {"y"});
  expect_error(twice.import(), Code::kCorrupt, "'y' is defined twice");
  ModelBuilder shadow = relu_model();
  shadow.node("Abs", {"y"}, {"x"});
  expect_error(shadow.import(), Code::kCorrupt, "'x' is defined twice");
  ModelBuilder weights = relu_model();
  weights.filled("w", {1}, 0);
  weights.filled("w", {1}, 0);
  expect_error(weights.import(), Code::kCorrupt, "'w' is defined twice");
}

TEST(HostileOnnx, MissingThingsAreNamed) {
  ModelBuilder input;
  input.input("x", {4}).output("y");
  input.node("Relu", {"nowhere"}, {"y"});
  expect_error(input.import(), Code::kCorrupt, "'nowhere'");
  ModelBuilder output = relu_model();
  output.output("z");
  expect_error(output.import(), Code::kCorrupt, "'z'");
  ModelBuilder operand;
  operand.input("x", {4}).output("y");
  operand.node("Add", {"x"}, {"y"});
  expect_error(operand.import(), Code::kCorrupt, "Add_y");
  ModelBuilder empty_name;
  empty_name.input("x", {4}).output("y");
  empty_name.node("Add", {"", "x"}, {"y"});
  expect_error(empty_name.import(), Code::kCorrupt, "input 0 is missing");
  ModelBuilder nothing;
  nothing.input("x", {4});
  expect_error(nothing.import(), Code::kCorrupt, "no outputs");
}

TEST(HostileOnnx, AttributesOfTheWrongTypeAreRefused) {
  ModelBuilder b;
  b.input("x", {1, 4}).output("y");
  set_string(b.node("Softmax", {"x"}, {"y"}), "axis", "one");
  expect_error(b.import(), Code::kCorrupt, "attribute 'axis' is of type STRING, expected INT");
  ModelBuilder c;
  c.input("x", {1, 3, 8, 8}).output("y");
  c.filled("w", {4, 3, 3, 3}, 1);
  set_int(c.node("Conv", {"x", "w"}, {"y"}), "strides", 2);
  expect_error(c.import(), Code::kCorrupt, "attribute 'strides'");
}

TEST(HostileOnnx, TensorsMustHoldWhatTheyDeclare) {
  ModelBuilder small = relu_model();
  small.floats("w", {1000, 1000}, {1, 2, 3});
  expect_error(small.import(), Code::kCorrupt, "'w'");
  ModelBuilder huge = relu_model();
  huge.floats("w", {int64_t{1} << 40}, {1});
  expect_error(huge.import(), Code::kCorrupt, "'w'");
  ModelBuilder overflow = relu_model();
  overflow.floats("w", {int64_t{1} << 40, int64_t{1} << 40}, {1});
  expect_error(overflow.import(), Code::kCorrupt, "'w'");
  ModelBuilder negative = relu_model();
  negative.floats("w", {-4}, {1});
  expect_error(negative.import(), Code::kCorrupt, "'w'");
  ModelBuilder confused = relu_model();
  auto* t = confused.tensor("w", onnx::TensorProto::INT64, {1});
  t->add_float_data(1);
  expect_error(confused.import(), Code::kCorrupt, "'w'");
  ModelBuilder both = relu_model();
  both.floats("w", {1}, {1}).add_float_data(1);
  expect_error(both.import(), Code::kCorrupt, "more than one field");
}

TEST(HostileOnnx, HostileShapesEndInAStatus) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {int64_t{1} << 40}, {int64_t{1} << 32, int64_t{1} << 32}, {-5}, {INT64_MAX, 2}, {INT64_MIN}}) {
    for (const char* op : {"ConstantOfShape", "Expand", "Reshape", "Tile"}) {
      ModelBuilder b;
      b.input("x", {1}).output("y");
      b.ints("shape", shape);
      if (op == std::string("ConstantOfShape")) {
        b.node(op, {"shape"}, {"y"});
      } else {
        b.node(op, {"x", "shape"}, {"y"});
      }
      const auto model = b.import();
      EXPECT_FALSE(model.ok()) << op;
    }
  }
}

TEST(HostileOnnx, HugeInputsRangesAndWindowsEndInAStatus) {
  ModelBuilder big;
  big.input("x", {1 << 30, 1 << 30}).output("y");
  big.node("Relu", {"x"}, {"y"});
  expect_error(big.import(), Code::kResourceExhausted, "'x'");
  ModelBuilder range;
  range.input("x", {1}).output("y");
  range.scalar_int("a", 0);
  range.scalar_int("b", int64_t{1} << 50);
  range.scalar_int("c", 1);
  range.node("Range", {"a", "b", "c"}, {"y"});
  expect_error(range.import(), Code::kResourceExhausted, "Range_y");
  ModelBuilder pool;
  pool.input("x", {1, 1, 8, 8}).output("y");
  auto& node = pool.node("MaxPool", {"x"}, {"y"});
  set_ints(node, "kernel_shape", {INT64_MAX, 2});
  expect_error(pool.import(), Code::kCorrupt, "MaxPool_y");
}

// Element 0 of a shape without elements; what reads it must not be told a value.
TEST(HostileOnnx, GatheringFromAnEmptyShapeIsNoKnownValue) {
  for (const int64_t index : {0, -1, 7}) {
    ModelBuilder b;
    b.input("x", {}).output("y");
    b.scalar_int("at", index);
    b.scalar_int("from", 0);
    b.scalar_int("by", 1);
    b.node("Shape", {"x"}, {"shape"});
    b.node("Gather", {"shape", "at"}, {"n"});
    b.node("Range", {"from", "n", "by"}, {"y"});
    expect_error(b.import(), Code::kUnsupported, "Range_y");
  }
}

TEST(HostileOnnx, AConditionMayBeOfAnyType) {
  for (const float condition : {0.0f, 1.0f}) {
    ModelBuilder b;
    b.input("x", {4}).output("y");
    b.floats("c", {}, {condition});
    auto& choice = b.node("If", {"c"}, {"y"});
    for (const char* name : {"then_branch", "else_branch"}) {
      auto* attribute = choice.add_attribute();
      attribute->set_name(name);
      attribute->set_type(onnx::AttributeProto::GRAPH);
      attribute->mutable_g()->add_output()->set_name("z");
      ModelBuilder::fill(*attribute->mutable_g()->add_node(), "Relu", {"x"}, {"z"});
    }
    expect_error(b.import(), Code::kCorrupt, "the condition is f32, expected bool");
  }
}

TEST(HostileOnnx, NumbersThatNoWindowHasAreRefused) {
  ModelBuilder unpool;
  unpool.input("x", {1, 1, 4, 4}).input("i", {1, 1, 4, 4}, onnx::TensorProto::INT64).output("y");
  auto& node = unpool.node("MaxUnpool", {"x", "i"}, {"y"});
  set_ints(node, "kernel_shape", {2, 2});
  set_ints(node, "strides", {2, 2});
  set_ints(node, "pads", {INT64_MIN, 0, INT64_MAX, 0});
  expect_error(unpool.import(), Code::kCorrupt, "pads");
  for (const float power : {1e30f, -1e30f, std::nanf("")}) {
    ModelBuilder norm(1);
    norm.input("x", {1, 1, 4, 4}).output("y");
    set_float(norm.node("GlobalLpPool", {"x"}, {"y"}), "p", power);
    expect_error(norm.import(), Code::kCorrupt, "p is");
  }
  ModelBuilder eye;
  eye.input("x", {2, 2}).output("y");
  set_int(eye.node("EyeLike", {"x"}, {"y"}), "dtype", (int64_t{1} << 32) + onnx::TensorProto::FLOAT);
  expect_error(eye.import(), Code::kUnsupported, "dtype");
}

// What a fuzzer found once is tried in every build, not only in those with a fuzzer.
TEST(HostileOnnx, TheFuzzersFilesEndInAStatusOrASoundGraph) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LIMBER_ROOT "/fuzz/corpus/onnx")) {
    const auto bytes = os_files().map(entry.path().string());
    ASSERT_TRUE(bytes.ok()) << entry.path();
    const auto model = import_onnx_bytes((*bytes)->bytes(), "test.onnx");
    const bool sound = !model.ok() || verify(model->graph).ok();
    EXPECT_TRUE(sound) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 50u);
}

TEST(HostileOnnx, DeepFunctionsEnd) {
  ModelBuilder b;
  b.input("x", {4}).output("y");
  auto& call = b.node("F", {"x"}, {"y"});
  call.set_domain("my");
  auto* domain = b.model.add_opset_import();
  domain->set_domain("my");
  domain->set_version(1);
  auto* f = b.model.add_functions();
  f->set_name("F");
  f->set_domain("my");
  f->add_input("a");
  f->add_output("b");
  auto* inner = f->add_node();
  ModelBuilder::fill(*inner, "F", {"a"}, {"b"});
  inner->set_domain("my");
  expect_error(b.import(), Code::kCorrupt, "nested deeper");
}

TEST(HostileOnnx, FunctionsThatMultiplyAreStopped) {
  ModelBuilder b;
  b.input("x", {4}).output("y");
  b.node("F0", {"x"}, {"y"}).set_domain("my");
  auto* domain = b.model.add_opset_import();
  domain->set_domain("my");
  domain->set_version(1);
  for (int level = 0; level < 12; ++level) {
    auto* f = b.model.add_functions();
    f->set_name("F" + std::to_string(level));
    f->set_domain("my");
    f->add_input("v0");
    f->add_output("v30");
    for (int i = 0; i < 30; ++i) {
      auto* n = f->add_node();
      const bool leaf = level == 11;
      ModelBuilder::fill(*n, leaf ? "Relu" : "F" + std::to_string(level + 1), {"v" + std::to_string(i)},
                         {"v" + std::to_string(i + 1)});
      if (!leaf) n->set_domain("my");
    }
  }
  expect_error(b.import(), Code::kResourceExhausted, "nodes");
}

}  // namespace
}  // namespace limber
