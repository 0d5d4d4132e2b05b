#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/io/model_builder.h"
#include "tests/io/run_graph.h"

namespace limber {
namespace {

using test::counting;
using test::expect_same;
using test::run;

std::string temp_path(const std::string& name) {
  return ::testing::TempDir() + "/" + std::to_string(getpid()) + "_" + name;
}

Result<Model> round_trip(const Graph& graph, const Parameters& params, const ExportOptions& options = {}) {
  const std::string path = temp_path("round_trip.onnx");
  LIMBER_TRY(export_onnx(graph, params, path, options));
  auto model = import_onnx(path);
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".data");
  return model;
}

ValueId must(Result<ValueId> v) {
  LIMBER_ASSERT(v.ok());
  return *v;
}

// conv + bias + residual + activation, flattened with a symbolic batch, then a product.
Model small_net(const std::string& act) {
  Model m;
  m.params = std::make_shared<Parameters>();
  Graph& g = m.graph;
  g.name = "net";
  const ValueId x = g.add_input("x", {DType::kF32, Shape{Dim(Symbol("N")), 3, 4, 4}});
  const auto param = [&](const char* name, Shape shape) {
    m.params->set(name, counting(shape, 0.07f));
    return g.add_parameter(name, {DType::kF32, shape});
  };
  const ValueId w = param("w", {3, 3, 3, 3}), b = param("b", {3}), fc = param("fc", {10, 48}),
                c = param("c", {10});
  const Attrs conv{{"strides", std::vector<int64_t>{1, 1}},
                   {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                   {"dilations", std::vector<int64_t>{1, 1}},
                   {"groups", int64_t{1}},
                   {"act", act},
                   {"act_alpha", 0.1},
                   {"act_beta", 0.6}};
  const ValueId h = must(emit(g, OpKind::kConv, {x, w, b, x}, conv, "conv"));
  const ValueId flat = must(emit(g, OpKind::kReshape, {h}, {{"shape", Shape{Dim(Symbol("N")), 48}}}, "flat"));
  const ValueId y =
      must(emit(g, OpKind::kMatMul, {flat, fc, c},
                {{"trans_b", int64_t{1}}, {"alpha", 0.5}, {"act", std::string("sigmoid")}}, "fc"));
  g.add_output(y, "logits");
  return m;
}

TEST(ExportOnnx, FusedOperatorsComeBackAsTheirParts) {
  for (const char* act : {"", "relu", "leaky_relu", "clip", "sigmoid", "tanh", "hard_sigmoid", "hard_swish",
                          "silu", "gelu", "gelu_tanh", "elu", "mish", "softplus"}) {
    const Model m = small_net(act);
    const auto again = round_trip(m.graph, *m.params);
    ASSERT_TRUE(again.ok()) << act << ": " << again.status().message();
    const Tensor x = counting({2, 3, 4, 4});
    const auto want = run(m, {x}, {{"N", 2}}), got = run(*again, {x}, {{"N", 2}});
    ASSERT_TRUE(want.ok()) << want.status().message();
    ASSERT_TRUE(got.ok()) << got.status().message();
    expect_same((*got)[0], (*want)[0]);
    EXPECT_EQ(again->graph.outputs()[0].name, "logits");
    EXPECT_EQ(again->params->names(), m.params->names());
  }
}

TEST(ExportOnnx, AttentionAndGroupNormAreDecomposed) {
  Model m;
  m.params = std::make_shared<Parameters>();
  Graph& g = m.graph;
  const Shape heads{Dim(Symbol("N")), 2, 5, 4};
  const ValueId q = g.add_input("q", {DType::kF32, heads}), k = g.add_input("k", {DType::kF32, heads});
  const ValueId y = must(emit(g, OpKind::kAttention, {q, k, k}, {{"scale", 0.5}}, "attention"));
  const ValueId s = g.add_constant("s", counting({2}));
  const ValueId z =
      must(emit(g, OpKind::kGroupNorm, {y, s, s}, {{"groups", int64_t{2}}, {"epsilon", 1e-5}}, "norm"));
  g.add_output(z, "z");
  const auto again = round_trip(g, *m.params);
  ASSERT_TRUE(again.ok()) << again.status().message();
  const Tensor a = counting({3, 2, 5, 4}), b = counting({3, 2, 5, 4}, 0.23f);
  const auto want = run(m, {a, b}, {{"N", 3}}), got = run(*again, {a, b}, {{"N", 3}});
  ASSERT_TRUE(want.ok()) << want.status().message();
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_same((*got)[0], (*want)[0]);
}

TEST(ExportOnnx, SymbolicShapesAreComputedInTheFile) {
  Model m;
  m.params = std::make_shared<Parameters>();
  Graph& g = m.graph;
  const Dim n(Symbol("N")), h(Symbol("H"));
  const ValueId x = g.add_input("x", {DType::kF32, Shape{n, 4, h}});
  const ValueId r = must(emit(g, OpKind::kReshape, {x}, {{"shape", Shape{Dim(Symbol("N"), 2), 2, h}}}, "r"));
  const ValueId e = must(emit(g, OpKind::kExpand, {g.add_constant("one", Tensor::scalar(1.0f))},
                              {{"shape", Shape{Dim(Symbol("N"), 2), 2, h}}}, "e"));
  g.add_output(must(emit(g, OpKind::kAdd, {r, e}, {}, "y")), "y");
  const auto again = round_trip(g, *m.params);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->graph.type(again->graph.outputs()[0].value), g.type(g.outputs()[0].value));
}

TEST(ExportOnnx, ExternalDataComesBackMapped) {
  const Model m = small_net("relu");
  const std::string path = temp_path("external.onnx");
  ASSERT_TRUE(export_onnx(m.graph, *m.params, path, {.external_data = true}).ok());
  EXPECT_TRUE(std::filesystem::exists(path + ".data"));
  {
    const auto again = import_onnx(path);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_FALSE(again->params->get("fc")->buffer()->owned());
    expect_same(*again->params->get("fc"), *m.params->get("fc"));
  }
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".data");
}

TEST(ExportOnnx, AnOutputThatIsAnInputOrShownTwiceWorks) {
  Graph g;
  const ValueId x = g.add_input("x", {DType::kF32, Shape{2}});
  const ValueId y = must(emit(g, OpKind::kRelu, {x}, {}, "y"));
  g.add_output(x, "copy");
  g.add_output(y, "a");
  g.add_output(y, "b");
  const auto again = round_trip(g, Parameters());
  ASSERT_TRUE(again.ok()) << again.status().message();
  ASSERT_EQ(again->graph.outputs().size(), 3u);
  EXPECT_EQ(again->graph.outputs()[0].name, "copy");
  EXPECT_EQ(again->graph.outputs()[2].name, "b");
}

TEST(ExportOnnx, WhatTheOpsetCannotSayIsRefused) {
  Graph g;
  const ValueId x = g.add_input("x", {DType::kF32, Shape{2, 3}});
  g.add_output(must(emit(g, OpKind::kPad, {x},
                         {{"pads", std::vector<int64_t>{1, 0, 0, 0}}, {"mode", std::string("wrap")}}, "p")),
               "y");
  const Status status = export_onnx(g, Parameters(), temp_path("refused.onnx"));
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_FALSE(std::filesystem::exists(temp_path("refused.onnx")));
  EXPECT_EQ(export_onnx(g, Parameters(), temp_path("refused.onnx"), {.opset = 3}).code(),
            Code::kInvalidArgument);
}

TEST(Export, EveryNodeHasANameOfItsOwn) {
  const Model model = small_net("relu");
  const std::string path = temp_path("names.onnx");
  ASSERT_TRUE(export_onnx(model.graph, *model.params, path).ok());
  onnx::ModelProto proto;
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(proto.ParseFromIstream(&file));
  std::set<std::string> names;
  for (const onnx::NodeProto& node : proto.graph().node())
    EXPECT_TRUE(names.insert(node.name()).second) << node.name();
  EXPECT_GT(names.size(), 4U);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace limber
