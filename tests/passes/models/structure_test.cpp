// Cut points, channel groups and slicing on whole models.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"
#include "base/random.h"
#include "io/onnx.h"
#include "passes/channel_rank.h"
#include "passes/cut_points.h"
#include "passes/slice_channels.h"
#include "passes/splice.h"
#include "passes/unshare.h"
#include "runtime/compile.h"
#include "runtime/session.h"
#include "tests/models/model_file.h"
#include "tests/passes/mask_channels.h"

namespace limber {
namespace {

namespace fs = std::filesystem;

struct ModelCase {
  const char* name;
  size_t cuts, groups;
  bool compare;  // slicing with masking: small enough to run twice more
};

std::map<std::string, int64_t> all_symbols(const Graph& graph, int64_t number) {
  std::map<std::string, int64_t> numbers;
  for (const std::string& name : symbols(graph)) numbers[name] = number;
  return numbers;
}

// The first output for seeded inputs, on the CPU backend.
Tensor run_model(const Graph& graph, std::shared_ptr<Parameters> params, int64_t batch) {
  std::vector<std::shared_ptr<Backend>> backends{
      make_cpu_backend({.threads = 1, .tune = false, .cache_file = ""}), make_ref_backend()};
  const auto plan =
      compile(graph, std::move(params), std::move(backends), {.symbols = all_symbols(graph, batch)});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  const auto session = plan.ok() ? Session::create(*plan) : plan.status();
  if (!session.ok()) return {};
  Random random(7);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Tensor input = (*session)->input(i);
    if (input.dtype() == DType::kF32) {
      for (float& x : input.data<float>()) x = static_cast<float>(random.uniform(-1, 1));
    } else {
      std::memset(input.raw(), 0, input.bytes());
    }
  }
  const Status status = (*session)->run();
  EXPECT_TRUE(status.ok()) << status.message();
  auto output = (*session)->output(0).copy();
  return output.ok() ? *output : Tensor();
}

class Structure : public ::testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    const fs::path path = test::find_model(GetParam().name);
    if (path.empty()) GTEST_SKIP() << GetParam().name << " is not there; tests/models/export.py writes it";
    auto model = import_onnx(path.string());
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    const Status status = copy_parameters(unshare_parameters(model_.graph), *model_.params);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // Half of every group, the best by weight.
  void slice_half() {
    groups_ = channel_groups(model_.graph);
    auto kept = best_share(model_.graph, groups_, *model_.params, 0.5);
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    kept_ = *std::move(kept);
    auto sliced = slice_channels(model_.graph, groups_, kept_);
    ASSERT_TRUE(sliced.ok()) << sliced.status().message();
    sliced_ = *std::move(sliced);
    ASSERT_TRUE(verify(sliced_.graph).ok()) << verify(sliced_.graph).message();
    ASSERT_TRUE(slice_parameters(sliced_, *model_.params, *small_).ok());
  }

  Model model_;
  ChannelGroups groups_;
  std::vector<std::vector<int64_t>> kept_;
  SlicedGraph sliced_;
  std::shared_ptr<Parameters> small_ = std::make_shared<Parameters>();
};

TEST_P(Structure, EveryPartBetweenCutPointsGoesBack) {
  const Graph& graph = model_.graph;
  const std::vector<ValueId> cuts = cut_points(graph);
  RecordProperty("cuts", static_cast<int>(cuts.size()));
  EXPECT_EQ(cuts.size(), GetParam().cuts);
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const auto block = extract(graph, cuts[i], cuts[i + 1]);
    ASSERT_TRUE(block.ok()) << block.status().message();
    ASSERT_TRUE(verify(*block).ok()) << verify(*block).message();
    const auto back = splice(graph, cuts[i], cuts[i + 1], *block);
    ASSERT_TRUE(back.ok()) << back.status().message();
    ASSERT_TRUE(verify(*back).ok()) << verify(*back).message();
    // Other outputs may need parts of what was replaced.
    EXPECT_TRUE(graph.outputs().size() > 1 || hash(*back) == hash(graph)) << graph.value(cuts[i]).name;
  }
}

TEST_P(Structure, HalfOfEveryGroupRuns) {
  slice_half();
  RecordProperty("groups", static_cast<int>(groups_.groups.size()));
  EXPECT_EQ(groups_.groups.size(), GetParam().groups);
  if (groups_.groups.empty()) return;
  EXPECT_LT(small_->bytes(), model_.params->bytes());
  const Tensor output = run_model(sliced_.graph, small_, 1);
  ASSERT_TRUE(output.valid());
}

class MaskedStructure : public Structure {};

TEST_P(MaskedStructure, SlicingEqualsMasking) {
  slice_half();
  const Tensor found = run_model(sliced_.graph, small_, 2);
  const Tensor expected = run_model(mask_channels(model_.graph, groups_, kept_), model_.params, 2);
  ASSERT_EQ(found.type(), expected.type());
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < found.elements(); ++i) {
    largest = std::max(largest, std::abs(element_as_double(expected, i)));
    worst = std::max(worst, std::abs(element_as_double(expected, i) - element_as_double(found, i)));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(worst, 2e-4 * largest);
}

TEST_P(Structure, SlicedModelComesBackFromOnnx) {
  slice_half();
  const std::string path =
      (fs::path(::testing::TempDir()) / fmt::format("sliced_{}.onnx", getpid())).string();
  const Status written = export_onnx(sliced_.graph, *small_, path);
  ASSERT_TRUE(written.ok()) << written.message();
  const auto back = import_onnx(path);
  fs::remove(path);
  fs::remove(path + ".data");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(verify(back->graph).ok());
  for (const SlicedTensor& slice : sliced_.tensors) {
    const auto type = back->params->type(slice.name);
    ASSERT_TRUE(type.ok()) << type.status().message();
    EXPECT_EQ(*type, slice.small) << slice.name;
  }
}

constexpr ModelCase kExported[] = {
    {"resnet18", 23, 12, true},
    {"resnet50", 40, 37, false},
    {"resnet20", 25, 12, true},
    {"resnet56", 61, 30, true},
    {"mobilenet_v2", 73, 25, true},
    {"mobilenet_v3_small", 43, 27, true},
    {"mobilenet_v3_large", 65, 30, false},
    {"shufflenet_v2_x1_0", 74, 31, true},
    {"efficientnet_b0", 79, 40, true},
    {"densenet121", 29, 120, false},
    {"squeezenet1_1", 34, 25, true},
    {"vgg16", 39, 15, false},
    {"vit_tiny", 33, 24, true},
    {"regnet_y_400mf", 38, 38, true},
    {"senet18", 24, 20, false},
    {"convnext_small", 22, 4, true},
    {"swin_small", 30, 8, true},
    {"inception_small", 11, 15, true},
    {"unet_small", 16, 12, true},
    {"yolov3_tiny", 36, 11, false},
    {"deeplabv3_mobilenet_v3_large", 69, 36, false},
    {"nasty_norms", 3, 1, true},
    {"nasty_activations", 3, 0, true},
    {"nasty_shapes", 4, 0, true},
    {"nasty_resample", 3, 0, true},
    {"nasty_lrn", 4, 0, true},
    {"nasty_indexing", 3, 0, true},
    {"resnet50_small", 40, 37, true},
    {"mobilenet_v2_small", 73, 25, true},
    {"vit_small", 30, 18, true},
};

// Trained ones.
constexpr ModelCase kShared[] = {
    {"resnet20-cifar10", 25, 12, true}, {"resnet20-svhn", 25, 12, true},  {"resnet56-cifar10", 61, 30, true},
    {"mobilenetv2-tiny", 73, 25, true}, {"resnet50h-tiny", 40, 37, true}, {"vit-tiny", 29, 18, true},
};

std::vector<ModelCase> present(std::span<const ModelCase> models) {
  std::vector<ModelCase> found;
  for (const ModelCase& model : models) {
    if (!test::find_model(model.name).empty()) found.push_back(model);
  }
  return found;
}

std::vector<ModelCase> small(std::vector<ModelCase> models) {
  std::erase_if(models, [](const ModelCase& model) { return !model.compare; });
  return models;
}

std::string case_name(const ::testing::TestParamInfo<ModelCase>& model) {
  std::string name;
  for (const char* c = model.param.name; *c != 0; ++c) name += *c == '-' ? "__" : std::string(1, *c);
  return name;
}

const std::vector<ModelCase> kExportedCases(std::begin(kExported), std::end(kExported));
INSTANTIATE_TEST_SUITE_P(Models, Structure, ::testing::ValuesIn(kExportedCases), case_name);
INSTANTIATE_TEST_SUITE_P(Models, MaskedStructure, ::testing::ValuesIn(small(kExportedCases)), case_name);
INSTANTIATE_TEST_SUITE_P(Shared, Structure, ::testing::ValuesIn(present(kShared)), case_name);
INSTANTIATE_TEST_SUITE_P(Shared, MaskedStructure, ::testing::ValuesIn(small(present(kShared))), case_name);

}  // namespace
}  // namespace limber
