// Every method over windows of images against stored numbers from PyTorch in double precision (golden.py).
#include "adapt/methods/alignment.h"
#include "adapt/methods/pseudo_labels.h"
#include "adapt/methods/shot.h"
#include "adapt/methods/tent.h"
#include "base/random.h"
#include "io/onnx.h"
#include "tests/runtime/net.h"
#include "tests/train/described.h"

namespace limber::adapt {
namespace {

using nlohmann::json;

// Relative to the norm of each tensor: dozens of steps multiply what the first one rounds. When it was set, a
// quarter would have done.
constexpr double kTolerance = 2e-4;

struct Golden {
  json stored;
  AdaptedModel model;
  Tensor source;
  std::vector<Tensor> windows;
};

// What images() in golden.py draws.
Tensor images(Random& random, int64_t count, double shift) {
  Tensor made = *Tensor::allocate({DType::kF32, {count, 3, 10, 10}});
  auto at = made.data<float>().begin();
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int pixel = 0; pixel < 100; ++pixel)
        *at++ = static_cast<float>(shift + random.uniform(-1, 1) + (c == i % 3 ? 1 : 0));
    }
  }
  return made;
}

Golden read_golden(bool reference) {
  Golden golden;
  golden.stored = test::read_json(std::string(LIMBER_GOLDEN) + "/methods.json");
  auto model = import_onnx(std::string(LIMBER_GOLDEN) + "/network.onnx");
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok() || golden.stored.is_discarded()) return golden;
  golden.model = {.graph = model->graph,
                  .weights = model->params,
                  .backends = reference ? test::ref_backends() : test::cpu_backends()};
  Random random(golden.stored["seed"]);
  golden.source = images(random, golden.stored["source"], 0);
  for (int i = 0; i < 3; ++i)
    golden.windows.push_back(images(random, golden.stored["window"], 0.3 * (i + 1)));
  return golden;
}

using Made = Result<std::unique_ptr<Strategy>>;

Made make_alignment(const Golden& golden, const json& options) {
  LIMBER_ASSIGN(SourceFeatures source, collect_source_features(golden.model, std::vector{golden.source}));
  const std::string loss = options["loss"];
  return Alignment::create(golden.model, std::move(source),
                           {.loss = loss == "moments"      ? LossKind::kMoments
                                    : loss == "covariance" ? LossKind::kCovariance
                                                           : LossKind::kKernel,
                            .steps = options["steps"],
                            .rate = options["rate"]});
}

Made make_method(const Golden& golden, const std::string& name, const json& options) {
  if (name.starts_with("bn")) return BatchNormStatistics::create(golden.model, {.prior = options["prior"]});
  if (name == "onda") return Onda::create(golden.model, {});
  if (name == "tent") return Tent::create(golden.model, {.rate = options["rate"], .steps = options["steps"]});
  if (name.starts_with("align")) return make_alignment(golden, options);
  ShotOptions shot{.steps = options["steps"], .rate = options["rate"]};
  if (name == "shot") {
    shot.pseudo_share = options["share"];
    shot.annealed = options["annealed"];
    shot.nesterov = options["nesterov"];
    shot.refresh = options["refresh"];
  }
  return Shot::create(golden.model, shot);
}

class GoldenMethod : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(GoldenMethod, EndsWithTheWeightsOfPyTorch) {
  const auto& [name, reference] = GetParam();
  const Golden golden = read_golden(reference);
  ASSERT_TRUE(golden.model.weights);
  const json& stored = golden.stored["methods"][name];
  const auto method = make_method(golden, name, stored["options"]);
  ASSERT_TRUE(method.ok()) << method.status().message();
  for (size_t i = 0; i < stored["windows"]; ++i) {
    const auto changed = (*method)->adapt(golden.windows[i]);
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    EXPECT_TRUE(*changed);
  }
  for (const auto& [weight, described] : stored["weights"].items()) {
    const auto tensor = golden.model.weights->get(weight);
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    test::expect_described(*tensor, described, kTolerance, weight);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Methods, GoldenMethod,
    testing::Combine(testing::Values("bn", "bn_prior", "onda", "tent", "shot_im", "shot", "align_moments",
                                     "align_covariance", "align_kernel"),
                     testing::Bool()),
    [](const auto& info) { return std::get<0>(info.param) + (std::get<1>(info.param) ? "_ref" : "_cpu"); });

TEST(GoldenLabels, FirstGuessesAreThoseOfPyTorch) {
  const Golden golden = read_golden(false);
  ASSERT_TRUE(golden.model.weights);
  const auto reader = Reader::create(golden.model);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  const auto reading = (*reader)->read(golden.windows[0]);
  ASSERT_TRUE(reading.ok()) << reading.status().message();
  const std::vector<int64_t> expected = golden.stored["methods"]["shot"]["labels"][0];
  EXPECT_EQ(pseudo_labels(reading->logits, reading->features), expected);
}

}  // namespace
}  // namespace limber::adapt
