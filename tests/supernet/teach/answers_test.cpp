// Models that are no classifiers: alternatives, tuning and search by what the model says.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "data/synthetic.h"
#include "supernet/expand/expand.h"
#include "supernet/teach/elastify.h"
#include "tests/runtime/net.h"
#include "tests/supernet/other_models.h"
#include "tests/supernet/teach/table_by_work.h"
#include "variant/block_runner.h"

namespace limber {
namespace {

constexpr int64_t kAnswersBatch = 8;

struct OtherCase {
  const char* name;
  Model (*make)();
  Answers answers;
};
void PrintTo(const OtherCase& one, std::ostream* out) { *out << one.name; }

class OtherModels : public ::testing::TestWithParam<OtherCase> {
 protected:
  void SetUp() override {
    const Model model = GetParam().make();
    const auto joined = join_outputs(model.graph);
    ASSERT_TRUE(joined.ok()) << joined.status().message();
    auto made = expand(*joined, model.params, {.operators = {"shrink50"}});
    ASSERT_TRUE(made.ok()) << made.status().message();
    model_ = *std::move(made);
    shrunk_ = original_variant(model_);
    for (size_t b = 0; b < model_.blocks.size(); ++b) {
      if (model_.blocks[b].alternatives.size() > 1) shrunk_.choices[b] = 1;
    }
    ASSERT_NE(shrunk_, original_variant(model_));
    LoaderOptions how{.batch = kAnswersBatch, .workers = 0};
    const auto loader = *Loader::make(*open_synthetic({.count = 20}), how);
    images_ = *load_evaluation_set(*loader);
    ASSERT_TRUE(loader->start_epoch(0).ok());
    batch_ = *loader->next();
  }

  std::unique_ptr<BlockRunner> make_runner() const {
    auto runner = BlockRunner::create(model_, test::cpu_backends(),
                                      {.batch = kAnswersBatch, .answers = GetParam().answers});
    EXPECT_TRUE(runner.ok()) << runner.status().message();
    return *std::move(runner);
  }
  std::unique_ptr<VariantTuner> make_tuner() {
    const TimedVariant fastest{shrunk_, kFastestShare};
    auto tuner = VariantTuner::create(
        model_, std::span(&fastest, 1), test::cpu_backends(),
        {.batch = kAnswersBatch, .answers = GetParam().answers, .examples = {batch_.images}});
    EXPECT_TRUE(tuner.ok()) << tuner.status().message();
    return *std::move(tuner);
  }

  ElasticModel model_;
  Variant shrunk_;
  EvaluationSet images_;
  Batch batch_;
};

TEST_P(OtherModels, AreScoredByWhatTheModelSays) {
  const auto runner = make_runner();
  const std::vector<Variant> variants = {shrunk_, original_variant(model_), shrunk_};
  const auto scores = runner->score(variants, images_);
  ASSERT_TRUE(scores.ok()) << scores.status().message();
  ASSERT_EQ(scores->size(), 3u);
  EXPECT_EQ((*scores)[1], 1);
  EXPECT_EQ((*scores)[0], (*scores)[2]);
  EXPECT_LT((*scores)[0], 1);
  EXPECT_GT(runner->counts().saving(), 0) << "the beginning they share runs once";
  // By itself, with labels that mean nothing.
  EvaluationSet others = images_;
  for (auto& labels : others.labels) std::fill(labels.begin(), labels.end(), -1);
  const auto alone = make_runner()->score(std::span(variants).first(1), others);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ((*alone)[0], (*scores)[0]);
  const std::atomic<bool> stop = true;
  EXPECT_EQ(runner->score(variants, images_, &stop).status().code(), Code::kResourceExhausted);
}

TEST_P(OtherModels, VariantsLearnFromTheModel) {
  const double before = (*make_runner()->score(std::span(&shrunk_, 1), images_))[0];
  const auto tuner = make_tuner();
  ASSERT_EQ(tuner->students(), 1u);
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    const auto loss = tuner->step(batch_, 3e-3);
    ASSERT_TRUE(loss.ok()) << loss.status().message();
    (i == 0 ? first : last) = *loss;
  }
  EXPECT_LT(last, first);
  EXPECT_GT((*make_runner()->score(std::span(&shrunk_, 1), images_))[0], before);
}

// The loss of a step that changes nothing is what its definition gives on what the graphs compute.
TEST_P(OtherModels, TheLossIsOfAllTheySay) {
  const auto runner = make_runner();
  const Tensor want = *runner->run(original_variant(model_), batch_.images)->copy();
  const Tensor got = *runner->run(shrunk_, batch_.images)->copy();
  const auto tuner = make_tuner();
  const double loss = *tuner->step(batch_, 0);
  double expected = 0;
  if (GetParam().answers == Answers::kPlaces) {
    const int64_t classes = want.shape().dim(1), places = want.elements() / kAnswersBatch / classes;
    for (int64_t i = 0; i < kAnswersBatch; ++i) {
      for (int64_t p = 0; p < places; ++p) {
        double all_want = 0, all_got = 0, cross = 0;
        const auto at = [&](const Tensor& t, int64_t c) {
          return element_as_double(t, (i * classes + c) * places + p);
        };
        for (int64_t c = 0; c < classes; ++c)
          all_want += std::exp(at(want, c)), all_got += std::exp(at(got, c));
        for (int64_t c = 0; c < classes; ++c)
          cross -= std::exp(at(want, c)) / all_want * (at(got, c) - std::log(all_got));
        expected += cross / static_cast<double>(places * kAnswersBatch);
      }
    }
  } else {
    const std::vector<int64_t> sizes = output_sizes(model_.base);
    const int64_t width = want.elements() / kAnswersBatch;
    int64_t from = 0;
    for (const int64_t size : sizes) {
      double sum = 0, squares = 0, differences = 0;
      const auto count = static_cast<double>(size * kAnswersBatch);
      for (int64_t i = 0; i < kAnswersBatch; ++i) {
        for (int64_t k = from; k < from + size; ++k) {
          const double w = element_as_double(want, i * width + k),
                       d = element_as_double(got, i * width + k) - w;
          sum += w, squares += w * w, differences += d * d;
        }
      }
      expected += differences / (squares / count - sum / count * (sum / count));
      from += size;
    }
    expected /= static_cast<double>(want.elements());
  }
  EXPECT_NEAR(loss, expected, 2e-3 * expected);
}

// With more time where the machine is too slow.
TEST_P(OtherModels, AreTaughtChosenAndTunedInTheTimeThereIs) {
  ElastifyOptions how;
  how.distill = {.batch = kAnswersBatch};
  how.tune = {.batch = kAnswersBatch, .label_share = 0, .answers = GetParam().answers};
  how.shares = {0.8, 0.6};
  how.size_limit = 3;
  how.workers = 0;
  how.measure = [&]() -> Result<LatencyTable> { return test::table_by_work(model_); };
  const double before = (*make_runner()->score(std::span(&shrunk_, 1), images_))[0];
  double after = 0;
  for (how.seconds = 2; after <= before && how.seconds < 50; how.seconds *= 2) {
    const auto done = teach_alternatives(model_, *open_synthetic({.count = 64}), test::cpu_backends(), how);
    ASSERT_TRUE(done.ok()) << done.status().message();
    EXPECT_FALSE(done->chosen.empty());
    how.chosen = done->chosen;
    after = (*make_runner()->score(std::span(&shrunk_, 1), images_))[0];
  }
  EXPECT_GT(after, before);
}

INSTANTIATE_TEST_SUITE_P(Models, OtherModels,
                         ::testing::Values(OtherCase{"detector", test::make_detector, Answers::kValues},
                                           OtherCase{"segmenter", test::make_segmenter, Answers::kPlaces},
                                           OtherCase{"map", test::make_segmenter, Answers::kValues}),
                         [](const auto& info) { return std::string(info.param.name); });

// Says how often it was read.
class CountedData : public Dataset {
 public:
  explicit CountedData(std::shared_ptr<const Dataset> data)
      : Dataset(data->class_names()), data_(std::move(data)) {}
  size_t size() const override { return data_->size(); }
  Result<Sample> get(size_t index) const override {
    ++reads_;
    return data_->get(index);
  }
  int64_t label(size_t index) const override { return data_->label(index); }
  std::string name(size_t index) const override { return data_->name(index); }
  int reads() const { return reads_; }

 private:
  const std::shared_ptr<const Dataset> data_;
  mutable std::atomic<int> reads_{0};
};

// Two steps: alternatives are taught on one set of images, variants tuned on another.
class TwoSteps : public ::testing::Test {
 protected:
  TwoSteps() {
    how_.distill = {.batch = kAnswersBatch};
    how_.tune = {.batch = kAnswersBatch};
    how_.judge_batches = 2;
    how_.size_limit = 3;
    how_.workers = 0;
    how_.teach_data = first_;
  }
  void run() {
    const auto done = teach_alternatives(model_, second_, test::cpu_backends(), how_);
    ASSERT_TRUE(done.ok()) << done.status().message();
  }

  const Model origin_ = *make_builtin("resnet8");
  ElasticModel model_ = *expand(origin_.graph, origin_.params, {.operators = {"shrink50"}});
  std::shared_ptr<CountedData> first_ = std::make_shared<CountedData>(*open_synthetic({.count = 64}));
  std::shared_ptr<CountedData> second_ = std::make_shared<CountedData>(*open_synthetic({.count = 64}));
  ElastifyOptions how_;
};

TEST_F(TwoSteps, AlternativesAreTaughtOnTheFirst) {
  int before = 0;
  how_.progress = [&](const ElastifyProgress&) { EXPECT_EQ(second_->reads(), before); };
  for (how_.seconds = 1; first_->reads() == 0 && how_.seconds < 100; how_.seconds *= 2) {
    before = second_->reads();
    run();
  }
  EXPECT_GT(first_->reads(), 0);
  EXPECT_GT(second_->reads(), 0) << "errors are measured on these in the end";
}

TEST_F(TwoSteps, VariantsAreTunedOnTheSecond) {
  Variant variant = original_variant(model_);
  for (size_t b = 0; b < model_.blocks.size(); ++b) {
    if (model_.blocks[b].alternatives.size() > 1) variant.choices[b] = 1;
  }
  how_.chosen = {{variant, 0.5}};
  how_.measure = [&]() -> Result<LatencyTable> { return test::table_by_work(model_); };
  bool tuned = false;
  how_.progress = [&](const ElastifyProgress& p) { tuned = tuned || p.stage == "tuning"; };
  for (how_.seconds = 2; !tuned && how_.seconds < 100; how_.seconds *= 2) {
    how_.seconds_before = 0.2 * how_.seconds;  // teaching is over
    run();
  }
  EXPECT_TRUE(tuned);
  EXPECT_EQ(first_->reads(), 0);
  EXPECT_GT(second_->reads(), 0);
}

}  // namespace
}  // namespace limber
