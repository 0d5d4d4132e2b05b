#include "adapt/surrogate/surrogate_training.h"

#include "adapt/surrogate/unit_probe.h"
#include "tests/adapt/surrogate/master_case.h"

namespace limber::adapt {
namespace {

using Rows = std::vector<std::vector<double>>;

// Images of four kinds, so that there is something to tell apart.
Tensor four_kinds(int64_t count) {
  Tensor images = small_images(count, 1);
  const auto pixels = images.data<float>();
  const size_t each = pixels.size() / static_cast<size_t>(count);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t kind = i / each % 4;
    if (kind != 3) pixels[i] += i % each / 64 == kind ? 2 : 0;
  }
  return images;
}

Rows answers_on(const AdaptedModel& model, const Tensor& images) {
  return read_gates(model, plain_of(model), images)->probabilities;
}

double cross_entropy(const Rows& teacher, const Rows& answers) {
  double sum = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    for (size_t c = 0; c < answers[i].size(); ++c) sum -= teacher[i][c] * std::log(answers[i][c]);
  }
  return sum / static_cast<double>(answers.size());
}

double information(const Rows& rows) {
  std::vector<double> mean(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) mean[c] += row[c] / static_cast<double>(rows.size());
  }
  return cross_entropy({mean}, {mean}) - cross_entropy(rows, rows);
}

void train(const AdaptedModel& model, const SurrogateTraining& options, const Tensor& images,
           const Rows& teacher) {
  const auto trainer = SurrogateTrainer::create(model, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  const Status status = (*trainer)->run(images, teacher);
  ASSERT_TRUE(status.ok()) << status.message();
}

TEST(SurrogateTraining, TheMastersAnswersAreLearnt) {
  const AdaptedModel model = residual_model();
  const Tensor images = four_kinds(16);
  Rows teacher;
  for (size_t i = 0; i < 16; ++i) {
    teacher.emplace_back(4, 0.1);
    teacher.back()[i % 4] = 0.7;
  }
  const double before = cross_entropy(teacher, answers_on(model, images));
  train(model, {.steps = 30, .rate = 0.02, .teacher_share = 1}, images, teacher);
  EXPECT_LT(cross_entropy(teacher, answers_on(model, images)), 0.95 * before);
}

TEST(SurrogateTraining, WithoutTheMasterInformationGrows) {
  const AdaptedModel model = residual_model();
  const Tensor images = four_kinds(16);
  const double before = information(answers_on(model, images));
  train(model, {.steps = 30, .rate = 0.05, .decay = 0, .teacher_share = 0}, images, {});
  EXPECT_GT(information(answers_on(model, images)), 1.1 * before);
}

TEST(SurrogateTraining, LeavesTheClassifierAndNoOptimiserBehind) {
  const AdaptedModel model = residual_model();
  const auto before = test::bytes_of(*model.weights);
  const Tensor images = four_kinds(8);
  train(model, {.steps = 2, .filter_share = 0.5}, images, answers_on(model, images));
  const auto after = test::bytes_of(*model.weights);
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after.at("head"), before.at("head"));
  EXPECT_EQ(after.at("head_bias"), before.at("head_bias"));
  EXPECT_NE(after, before);
}

TEST(SurrogateTraining, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(check({.steps = -1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(check({.teacher_share = -0.5}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(check({.steps = 0}).ok());
  expect_failure(SurrogateTrainer::create(residual_model(), {.filter_share = 0}), Code::kInvalidArgument,
                 {"the share 0 of the gradients"});
}

}  // namespace
}  // namespace limber::adapt
