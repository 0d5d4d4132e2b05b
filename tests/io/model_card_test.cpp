#include "io/model_card.h"

#include <gtest/gtest.h>

#include "io/onnx.h"
#include "ops/op_def.h"
#include "tests/data/files.h"

namespace limber {
namespace {

constexpr std::string_view kNet = R"(graph "g" {
  input %x: f32[N,4]
  param %w: f32[2,4]
  %y: f32[N,2] = Gemm(%x, %w) {trans_b=1}
  output %y as "y"
}
)";

Result<std::optional<ModelCard>> written(const Folder& folder,
                                         const std::map<std::string, std::string>& metadata) {
  const auto graph = parse(kNet);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  Parameters params;
  params.set("w", Tensor::from({1.F, 2.F, 3.F, 4.F, 5.F, 6.F, 7.F, 8.F}, Shape{2, 4}));
  ExportOptions options;
  options.metadata = metadata;
  EXPECT_TRUE(export_onnx(*graph, params, folder / "x.onnx", options).ok());
  return read_card(folder / "x.onnx");
}

TEST(ModelCard, ComesBackAsItWasWritten) {
  const Folder folder;
  ModelCard card{.input = {.height = 224, .width = 224, .resize = 256},
                 .classes = {"cat", "d\"og", "\xc3\xa9mu"}};
  card.input.normalisation.mean = {0.485F, 0.456F, 0.406F};
  const auto back = written(folder, card_texts(card));
  ASSERT_TRUE(back.ok() && back->has_value()) << back.status().message();
  EXPECT_EQ((*back)->input, card.input);
  EXPECT_EQ((*back)->classes, card.classes);
  EXPECT_TRUE(import_onnx(folder / "x.onnx").ok());
}

TEST(ModelCard, NothingWhereThereIsNone) {
  const Folder folder;
  const auto none = written(folder, {{"author", "somebody"}});
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none->has_value());
}

TEST(ModelCard, NonsenseIsRefused) {
  const Folder folder;
  for (const char* input : {"", "[]", "{}", R"({"height":-1})", R"({"height":32,"width":32})"})
    expect_failure(written(folder, {{"limber.input", input}, {"limber.classes", R"({"classes":["a"]})"}}),
                   Code::kCorrupt, {"x.onnx", "metadata"});
  const auto good = card_texts({.classes = {"a"}});
  for (const char* classes : {"", "7", "[1]", "{}", R"({"classes":7})", R"({"classes":[1]})"})
    expect_failure(written(folder, {{"limber.input", good.at("limber.input")}, {"limber.classes", classes}}),
                   Code::kCorrupt, {"metadata"});
  folder.write("bad.onnx", std::string("\x72\xff\xff\xff\xff\x0f rubbish", 14));
  expect_failure(read_card(folder / "bad.onnx"), Code::kCorrupt, {"bad.onnx"});
}

}  // namespace
}  // namespace limber
