// Ten steps of five small networks against stored numbers from PyTorch in double precision (golden.py).
#include <gtest/gtest.h>

#include "base/random.h"
#include "io/onnx.h"
#include "tests/runtime/net.h"
#include "tests/train/described.h"
#include "train/training_session.h"

namespace limber::test {
namespace {

using nlohmann::json;

constexpr size_t kBatches = 2;  // which take turns

// All relative: of a loss to itself, of an element, a sum or a norm to the norm of its tensor. Ten steps
// multiply what the first one rounds. When they were set, a fifth of each would have done.
constexpr double kLossTolerance = 1e-5;      // the first loss: only the forward pass
constexpr double kLaterTolerance = 1e-4;     // the other nine
constexpr double kGradientTolerance = 5e-5;  // the first gradients
constexpr double kTrainedTolerance = 1e-4;   // weights and running statistics after ten steps

struct Golden {
  json stored;
  Model model;

  const json& options() const { return stored["options"]; }
};

Golden read_golden(const std::string& name) {
  const std::string base = std::string(LIMBER_GOLDEN) + "/" + name;
  Golden golden;
  golden.stored = read_json(base + ".json");
  auto model = import_onnx(base + ".onnx");
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (model.ok()) golden.model = *std::move(model);
  return golden;
}

TrainingOptions training_options(const json& stored) {
  TrainingOptions options;
  options.step.batch = stored["batch"];
  options.step.loss.kind = stored["loss"] == "mse" ? LossKind::kMse : LossKind::kCrossEntropy;
  options.step.loss.label_smoothing = stored["label_smoothing"];
  options.step.optimizer.momentum = stored["momentum"];
  options.step.optimizer.nesterov = stored["nesterov"];
  options.step.optimizer.decay = stored["decay"];
  options.step.optimizer.clip_norm = stored["clip_norm"];
  return options;
}

struct Batch {
  std::vector<float> images, targets;
  std::vector<int64_t> labels;
};

std::vector<Batch> make_batches(const TrainingSession& training, const json& stored) {
  Random random(stored["seed"]);
  std::vector<Batch> batches(kBatches);
  const auto floats = [&](const Tensor& like) {
    std::vector<float> values(static_cast<size_t>(like.elements()));
    for (float& x : values) x = static_cast<float>(random.uniform(-1, 1));
    return values;
  };
  for (Batch& batch : batches) {
    batch.images = floats(training.images());
    if (training.targets().valid()) {
      batch.targets = floats(training.targets());
    } else {
      batch.labels.resize(static_cast<size_t>(training.labels().elements()));
      for (int64_t& label : batch.labels) label = static_cast<int64_t>(random.below(stored["classes"]));
    }
  }
  return batches;
}

template <typename T>
void put(const std::vector<T>& values, Tensor tensor) {
  if (tensor.valid()) std::copy(values.begin(), values.end(), tensor.data<T>().begin());
}

Result<float> step(TrainingSession& training, const Batch& batch) {
  put(batch.images, training.images());
  put(batch.targets, training.targets());
  put(batch.labels, training.labels());
  return training.step();
}

void train_and_check_losses(TrainingSession& training, const Golden& golden) {
  training.set_rate(golden.options()["rate"]);
  const std::vector<Batch> batches = make_batches(training, golden.options());
  const std::vector<double> losses = golden.stored["losses"];
  for (size_t i = 0; i < losses.size(); ++i) {
    const auto loss = step(training, batches[i % kBatches]);
    ASSERT_TRUE(loss.ok()) << loss.status().message();
    EXPECT_NEAR(*loss, losses[i], losses[i] * (i == 0 ? kLossTolerance : kLaterTolerance)) << "step " << i;
  }
}

void expect_parameters(const Golden& golden, const char* kind) {
  for (const auto& [parameter, stored] : golden.stored[kind].items()) {
    const auto tensor = golden.model.params->get(parameter);
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    expect_described(*tensor, stored, kTrainedTolerance, parameter);
  }
}

class GoldenRun : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  // nullptr after a failure that the test reports.
  std::unique_ptr<TrainingSession> start(const Golden& golden, const TrainingOptions& options) const {
    if (golden.stored.is_discarded() || golden.model.params == nullptr) return nullptr;
    auto made = TrainingSession::create(golden.model.graph, golden.model.params,
                                        reference() ? ref_backends() : cpu_backends(), options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *std::move(made) : nullptr;
  }
  std::string name() const { return std::get<0>(GetParam()); }
  bool reference() const { return std::get<1>(GetParam()); }
};

// After one step without decay and clipping the velocity is the gradient.
TEST_P(GoldenRun, FirstGradients) {
  const Golden golden = read_golden(name());
  TrainingOptions options = training_options(golden.options());
  options.step.optimizer.decay = options.step.optimizer.clip_norm = 0;
  const auto training = start(golden, options);
  ASSERT_TRUE(training);
  ASSERT_EQ(training->trainable().size(), golden.stored["gradients"].size());
  training->set_rate(0);
  const auto loss = step(*training, make_batches(*training, golden.options())[0]);
  ASSERT_TRUE(loss.ok()) << loss.status().message();
  for (const auto& [parameter, stored] : golden.stored["gradients"].items()) {
    const auto gradient = golden.model.params->get("optimizer/velocity/" + parameter);
    ASSERT_TRUE(gradient.ok()) << gradient.status().message();
    expect_described(*gradient, stored, kGradientTolerance, parameter);
  }
}

TEST_P(GoldenRun, TenSteps) {
  const Golden golden = read_golden(name());
  const auto training = start(golden, training_options(golden.options()));
  ASSERT_TRUE(training);
  train_and_check_losses(*training, golden);
  expect_parameters(golden, "trained");
}

TEST_P(GoldenRun, RunningStatistics) {
  const Golden golden = read_golden(name());
  const auto training = start(golden, training_options(golden.options()));
  ASSERT_TRUE(training);
  train_and_check_losses(*training, golden);
  expect_parameters(golden, "running_means");
  expect_parameters(golden, "running_vars");
}

INSTANTIATE_TEST_SUITE_P(
    Networks, GoldenRun,
    testing::Combine(testing::Values("resnet8", "mobilenet", "squeeze_excite", "vit", "unet", "unet_mse"),
                     testing::Bool()),
    [](const auto& info) { return std::get<0>(info.param) + (std::get<1>(info.param) ? "_ref" : "_cpu"); });

}  // namespace
}  // namespace limber::test
