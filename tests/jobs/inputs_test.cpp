// From files to what a network takes: which file goes where, and what becomes of it.
#include "jobs/inputs.h"

#include <cmath>

#include "jobs/run_job.h"
#include "tensor/npy.h"
#include "tests/jobs/tiny.h"

namespace limber {
namespace {

using test::contains;
using Names = std::vector<std::string>;

constexpr std::string_view kTwoInputs = R"(graph "two" {
  input %a: f32[N,2]
  input %photo: f32[N,3,8,8]
  %p: f32[N,3,1,1] = GlobalAveragePool(%photo)
  output %a as "a"
  output %p as "p"
}
)";

Result<std::vector<InputFiles>> assign(const Names& arguments) {
  return assign_files(test::make_net(kTwoInputs).graph, arguments);
}

TEST(Inputs, NamedFilesGoWhereTheySayAndOthersToWhatIsFree) {
  const auto named = assign({"photo=1.png", "a=x.npy", "photo=2.png"});
  ASSERT_TRUE(named.ok()) << named.status().message();
  ASSERT_EQ(named->size(), 2U);
  EXPECT_EQ((*named)[0].files, Names{"x.npy"});
  EXPECT_EQ((*named)[1].files, (Names{"1.png", "2.png"}));
  const auto free = assign({"x.npy", "1.png", "2.png"});
  ASSERT_TRUE(free.ok()) << free.status().message();
  EXPECT_EQ((*free)[0].files, Names{"x.npy"});
  EXPECT_EQ((*free)[1].files, (Names{"1.png", "2.png"})) << "images make a batch";
}

TEST(Inputs, WhatFitsNowhereIsNamed) {
  expect_failure(assign({"foto=1.png", "x.npy"}), Code::kNotFound, {"foto", "photo"});
  expect_failure(assign({"x.npy"}), Code::kInvalidArgument, {"'photo' has no file", "photo=FILE"});
  expect_failure(assign({"x.npy", "y.npy", "z.npy"}), Code::kInvalidArgument, {"z.npy", "the model has 2"});
}

TEST(Inputs, APathMayHoldAnEqualsSign) {
  const Folder folder;
  const std::string odd = folder.write_image("run=7.png", 9);
  const auto files = assign({"a=x.npy", odd});
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ((*files)[1].files, Names{odd});
}

// One white image of `side` pixels, read for an input.
Result<Tensor> read_white(const Folder& folder, const TensorType& type, const ImageOptions& options = {},
                          int side = 8) {
  return read_input({0, {folder.write_image("white.png", 255, side)}}, "x", type, options);
}

TEST(Inputs, PixelsBecomeWhatTheInputIsMadeOf) {
  const Folder folder;
  const auto first = read_white(folder, {DType::kF32, Shape{1, 3, 8, 8}});
  ASSERT_TRUE(first.ok()) << first.status().message();
  for (const float x : first->data<float>()) EXPECT_EQ(x, 1);
  const auto bytes = read_white(folder, {DType::kU8, Shape{1, 8, 8, 3}});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(bytes->type().to_string(), "u8[1,8,8,3]");
  for (const uint8_t x : bytes->data<uint8_t>()) EXPECT_EQ(x, 255);
  const auto grey = read_white(folder, {DType::kF32, Shape{1, 1, 8, 8}});
  ASSERT_TRUE(grey.ok()) << grey.status().message();
  EXPECT_EQ(grey->type().to_string(), "f32[1,1,8,8]");
  const auto small = read_white(folder, {DType::kF32, Shape{1, 3, 4, 6}});
  ASSERT_TRUE(small.ok()) << small.status().message();
  EXPECT_EQ(small->type().to_string(), "f32[1,3,4,6]") << "resized to what the model wants";
}

TEST(Inputs, ChannelsLastAndFirstHoldTheSameNumbers) {
  const Folder folder;
  const std::string file = folder.write("noise.png", *encode_png(*draw_image(8, 8, 3)));
  const auto first = read_input({0, {file}}, "x", {DType::kF32, Shape{1, 3, 8, 8}}, {});
  const auto last = read_input({0, {file}}, "x", {DType::kF32, Shape{1, 8, 8, 3}}, {});
  ASSERT_TRUE(first.ok() && last.ok());
  for (size_t p = 0; p < 64; ++p) {
    for (size_t c = 0; c < 3; ++c)
      ASSERT_EQ(first->data<float>()[c * 64 + p], last->data<float>()[p * 3 + c]) << p << " " << c;
  }
}

TEST(Inputs, ANormalisationOfOnesOwnGoesBeforeThatOfAPreset) {
  const Folder folder;
  const TensorType type{DType::kF32, Shape{1, 3, 8, 8}};
  ImageOptions options;
  options.preset = *find_preset("imagenet");
  const auto preset = read_white(folder, type, options, 16);
  ASSERT_TRUE(preset.ok()) << preset.status().message();
  EXPECT_NEAR(preset->data<float>()[0], (1 - 0.485) / 0.229, 1e-4);
  options.normalisation = Normalisation{{0, 0, 0}, {0.5F, 0.5F, 0.5F}};
  const auto own = read_white(folder, type, options, 16);
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_EQ(own->data<float>()[0], 2);
}

TEST(Inputs, SizesThatDoNotFitAreExplained) {
  const Folder folder;
  ImageOptions options;
  options.size = {6};
  expect_failure(read_white(folder, {DType::kF32, Shape{1, 3, 8, 8}}, options), Code::kInvalidArgument,
                 {"white.png", "6x6 pixels, the model wants 8x8"});
  expect_failure(read_white(folder, {DType::kF32, Shape{1, 7}}), Code::kInvalidArgument,
                 {"which is not an image", ".npy"});
  const std::string small = folder.write_image("small.png", 9, 4), large = folder.write_image("l.png", 9, 6);
  const TensorType open{DType::kF32, Shape{Dim(1), Dim(3), Dim(Symbol("H")), Dim(Symbol("W"))}};
  expect_failure(read_input({0, {small, large}}, "x", open, {}), Code::kInvalidArgument,
                 {"l.png", "6x6 pixels", "give a size"});
  expect_failure(read_input({0, {small, "x.npy"}}, "x", open, {}), Code::kInvalidArgument, {"2 files"});
}

TEST(Inputs, ArraysOfOtherNumbersAreConvertedWhereNothingIsLost) {
  const Folder folder;
  const std::string wide = folder / "wide.npy";
  Tensor doubles = *Tensor::zeros({DType::kF64, Shape{1, 2}});
  doubles.data<double>()[1] = 0.25;
  ASSERT_TRUE(write_npy(wide, doubles).ok());
  const auto read = read_input({0, {wide}}, "a", {DType::kF32, Shape{1, 2}}, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->data<float>()[1], 0.25F);
  expect_failure(read_input({0, {wide}}, "a", {DType::kBool, Shape{1, 2}}, {}), Code::kInvalidArgument,
                 {"wide.npy", "f64", "'a' wants bool", "astype"});
}

// The batch may differ from the file's, another dimension may not.
TEST(Inputs, ModelsAdaptToTheirInputs) {
  const Folder folder;
  const test::Net net = test::make_net(kTwoInputs);
  const std::vector<InputFiles> files = {{0, {"a.npy"}}, {1, {"b.npy"}}};
  const auto adapt = [&](Shape a, Shape b) {
    return adapt_shapes(net.graph, files,
                        {*Tensor::zeros({DType::kF32, a}), *Tensor::zeros({DType::kF32, b})});
  };
  const auto five = adapt({5, 2}, {5, 3, 8, 8});
  ASSERT_TRUE(five.ok()) << five.status().message();
  EXPECT_EQ(five->dims, (std::map<std::string, int64_t>{{"N", 5}}));
  EXPECT_TRUE(five->shapes.empty());
  expect_failure(adapt({5, 2}, {4, 3, 8, 8}), Code::kInvalidArgument, {"b.npy", "'photo'"});
  expect_failure(adapt({5, 3}, {5, 3, 8, 8}), Code::kInvalidArgument, {"a.npy", "f32[5,3]"});
  expect_failure(adapt({5}, {5, 3, 8, 8}), Code::kInvalidArgument, {"a.npy"});
}

TEST(RunJob, NamesRowsAfterTheirImages) {
  const Folder folder;
  RunJobOptions options;
  options.model = test::write_tiny(folder);
  options.threads = 1;
  options.inputs = {folder.write_image("dark.png", 9, 16), folder.write_image("bright.png", 200, 16)};
  auto job = RunJob::open(options);
  ASSERT_TRUE(job.ok()) << job.status().message();
  ASSERT_TRUE(job->assign().ok());
  const auto result = job->run();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->rows, options.inputs);
  ASSERT_EQ(result->outputs.size(), 1U);
  EXPECT_EQ(result->outputs[0].name, "logits");
  EXPECT_EQ(result->outputs[0].tensor.type().to_string(), "f32[2,10]");
  EXPECT_TRUE(check_numbers(result->outputs).ok());
  EXPECT_TRUE(job->classes().empty()) << "an ONNX file of somebody else says nothing of its classes";
}

}  // namespace
}  // namespace limber
