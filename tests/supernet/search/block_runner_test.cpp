#include "variant/block_runner.h"

#include <cstring>

#include "data/synthetic.h"
#include "passes/splice.h"
#include "supernet/expand/expand.h"
#include "supernet/search/search_space.h"
#include "tests/supernet/models.h"
#include "train/evaluate.h"

namespace limber {
namespace {

constexpr int64_t kBatch = 4;

class BlockRunnerTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto model = test::load_model(GetParam());
    if (!model) GTEST_SKIP() << GetParam() << " is not there";
    auto elastic = expand(model->graph, model->params);
    ASSERT_TRUE(elastic.ok()) << elastic.status().message();
    model_ = *std::move(elastic);
  }

  std::unique_ptr<BlockRunner> make_runner(size_t cache_bytes = size_t{64} << 20) {
    auto runner =
        BlockRunner::create(model_, test::cpu_backends(), {.batch = kBatch, .cache_bytes = cache_bytes});
    EXPECT_TRUE(runner.ok()) << runner.status().message();
    return runner.ok() ? *std::move(runner) : nullptr;
  }

  // Random images; the last batch is short.
  EvaluationSet make_set(int64_t count = 10) const {
    EvaluationSet set;
    Random random(5);
    const TensorType type = model_.base.type(model_.base.inputs()[0]);
    for (int64_t done = 0; done < count; done += kBatch) {
      std::vector<Dim> dims = {Dim(std::min(kBatch, count - done))};
      for (int axis = 1; axis < type.rank(); ++axis) dims.push_back(type.shape[axis]);
      auto images = Tensor::allocate({DType::kF32, Shape(dims)});
      EXPECT_TRUE(images.ok());
      for (float& x : images->data<float>()) x = static_cast<float>(random.uniform(-2, 2));
      set.images.push_back(*images);
    }
    return set;
  }

  SearchSpace space() const {
    SearchSpace space;
    for (const Block& block : model_.blocks) {
      space.blocks.emplace_back();
      for (const Alternative& a : block.alternatives)
        space.blocks.back().push_back({.span = a.span, .seconds = 1});
    }
    return space;
  }

  std::vector<Variant> random_variants(int count) const {
    Random random(8);
    const SearchSpace all = space();
    std::vector<Variant> variants = {all.original()};
    while (static_cast<int>(variants.size()) < count) variants.push_back(random_variant(all, random));
    return variants;
  }

  // The variant as one graph on one batch.
  Tensor run_whole(const Variant& variant, const Tensor& images) const {
    const auto pieces = pieces_of(model_, variant);
    EXPECT_TRUE(pieces.ok());
    std::vector<const Graph*> graphs;
    for (const VariantPiece& piece : *pieces) graphs.push_back(piece.graph);
    const auto whole = chain(graphs);
    EXPECT_TRUE(whole.ok()) << whole.status().message();
    const CompileSettings options = batch_settings(*whole, images.shape().dim(0), 1);
    const auto session =
        test::make_session(test::Net{logits_of(*whole), model_.params}, test::cpu_backends(), options);
    std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
    EXPECT_TRUE(session->run().ok());
    return *session->output(0).copy();
  }

  int64_t count_whole(const Variant& variant, const EvaluationSet& set) const {
    int64_t correct = 0;
    for (size_t b = 0; b < set.images.size(); ++b) {
      const Tensor logits = run_whole(variant, set.images[b]);
      const size_t rows = set.labels[b].size(), width = logits.data<float>().size() / rows;
      for (size_t i = 0; i < rows; ++i)
        correct +=
            among_best(std::as_const(logits).data<float>().subspan(i * width, width), set.labels[b][i], 1);
    }
    return correct;
  }

  ElasticModel model_;
};

TEST_P(BlockRunnerTest, GivesWhatTheWholeGraphGives) {
  const auto runner = make_runner();
  const EvaluationSet set = make_set(kBatch);
  for (const Variant& variant : random_variants(6)) {
    const auto blockwise = runner->run(variant, set.images[0]);
    ASSERT_TRUE(blockwise.ok()) << blockwise.status().message();
    const Tensor whole = run_whole(variant, set.images[0]);
    ASSERT_EQ(blockwise->elements(), whole.elements());
    for (int64_t i = 0; i < whole.elements(); ++i) {
      const double expected = element_as_double(whole, i);
      EXPECT_NEAR(element_as_double(*blockwise, i), expected, 1e-4 * std::max(1.0, std::abs(expected)));
    }
  }
}

TEST_P(BlockRunnerTest, CountsAsTheWholeGraphDoesWithAnyCache) {
  EvaluationSet set = make_set();
  ASSERT_TRUE(make_runner()->label_by_original(set).ok());
  EXPECT_EQ(set.count(), 10);
  const std::vector<Variant> variants = random_variants(6);
  std::vector<int64_t> expected;
  for (const Variant& variant : variants) expected.push_back(count_whole(variant, set));
  EXPECT_EQ(expected[0], 10);  // the original agrees with itself
  for (const size_t cache : {size_t{0}, size_t{300} << 10, size_t{64} << 20}) {
    const auto runner = make_runner(cache);
    const auto counted = runner->count_correct(variants, set);
    ASSERT_TRUE(counted.ok()) << counted.status().message();
    EXPECT_EQ(*counted, expected);
    EXPECT_LE(runner->counts().peak_cached_bytes, cache);
    if (cache == 0) {
      EXPECT_EQ(runner->counts().saved, 0);
    }
  }
}

TEST_P(BlockRunnerTest, SharedBeginningsRunOnce) {
  EvaluationSet set = make_set(2 * kBatch);  // two batches
  const auto runner = make_runner();
  ASSERT_TRUE(runner->label_by_original(set).ok());
  const ReuseCounts before = runner->counts();
  const auto blocks = static_cast<int64_t>(model_.blocks.size());
  // The original twice, and one that differs from it in the third block from the end alone.
  const Variant original = space().original();
  Variant other = original;
  size_t at = model_.blocks.size() - 3;
  int choice = -1;
  for (; choice < 0; --at) {
    for (size_t c = 1; c < model_.blocks[at].alternatives.size() && choice < 0; ++c)
      choice = model_.blocks[at].alternatives[c].span == 1 ? static_cast<int>(c) : -1;
    if (choice >= 0) break;
  }
  other.choices[at] = choice;
  const auto counted = runner->count_correct(std::vector<Variant>{original, other, original}, set);
  ASSERT_TRUE(counted.ok()) << counted.status().message();
  EXPECT_EQ((*counted)[0], set.count());
  EXPECT_EQ((*counted)[0], (*counted)[2]);
  const int64_t executed = runner->counts().executed - before.executed;
  EXPECT_EQ(executed, 2 * (blocks + (blocks - static_cast<int64_t>(at))));
  EXPECT_EQ(runner->counts().saved, 2 * 3 * blocks - executed);
  // One feature map was kept: what the blocks have in common gives.
  const Graph& last = model_.blocks[at - 1].alternatives[0].graph;
  TensorType type = last.type(last.outputs()[0].value);
  std::vector<Dim> dims = {Dim(kBatch)};
  for (int axis = 1; axis < type.rank(); ++axis) dims.push_back(type.shape[axis]);
  type.shape = Shape(dims);
  EXPECT_EQ(runner->counts().peak_cached_bytes, type.bytes());
}

TEST_P(BlockRunnerTest, ALimitedCacheSavesLess) {
  EvaluationSet set = make_set(kBatch);
  ASSERT_TRUE(make_runner()->label_by_original(set).ok());
  const std::vector<Variant> variants = random_variants(12);
  double last = -1;
  for (const size_t cache : {size_t{0}, size_t{300} << 10, size_t{64} << 20}) {
    const auto runner = make_runner(cache);
    ASSERT_TRUE(runner->count_correct(variants, set).ok());
    EXPECT_GE(runner->counts().saving(), last);
    last = runner->counts().saving();
  }
  EXPECT_GT(last, 0);
  EXPECT_LT(last, 1);
}

TEST_P(BlockRunnerTest, ExitsEndVariants) {
  // An exit that computes what the rest of the model does.
  const size_t after = model_.blocks.size() - 2;
  std::vector<const Graph*> rest;
  for (size_t b = after; b < model_.blocks.size(); ++b)
    rest.push_back(&model_.blocks[b].alternatives[0].graph);
  auto graph = chain(rest);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  model_.exits.push_back({"rest", static_cast<int>(after), *std::move(graph)});
  EvaluationSet set = make_set();
  const auto runner = make_runner();
  ASSERT_TRUE(runner->label_by_original(set).ok());
  const int64_t before = runner->counts().executed;
  Variant early = space().original();
  early.exit = 0;
  early.choices.back() = 99;  // does not run
  const auto counted = runner->count_correct(std::vector<Variant>{early, space().original()}, set);
  ASSERT_TRUE(counted.ok()) << counted.status().message();
  EXPECT_EQ(*counted, (std::vector<int64_t>{10, 10}));
  EXPECT_EQ(runner->counts().executed - before,
            static_cast<int64_t>(set.images.size() * (model_.blocks.size() + 1)));
}

TEST_P(BlockRunnerTest, SeesParametersThatChanged) {
  EvaluationSet set = make_set(kBatch);
  const auto runner = make_runner();
  const Variant original = space().original();
  const Tensor before = *(*runner->run(original, set.images[0])).copy();
  const auto& values = model_.blocks[0].alternatives[0].graph.values();
  const auto weight = std::find_if(values.begin(), values.end(), [](const Value& v) {
    return v.role == Role::kParameter && v.type.rank() == 4;
  });
  ASSERT_NE(weight, values.end());
  Tensor changed = *(*model_.params->get(weight->name)).copy();
  for (float& x : changed.data<float>()) x *= -1;
  model_.params->set(weight->name, changed);
  const auto after = runner->run(original, set.images[0]);
  ASSERT_TRUE(after.ok());
  EXPECT_NE(std::memcmp(after->raw(), before.raw(), before.bytes()), 0);
}

TEST_P(BlockRunnerTest, SaysWhatIsWrong) {
  const auto runner = make_runner();
  EvaluationSet set = make_set();
  const std::vector<Variant> one = {space().original()};
  EXPECT_EQ(runner->count_correct(one, set).status().code(), Code::kInvalidArgument);  // no labels
  ASSERT_TRUE(runner->label_by_original(set).ok());
  set.labels[0][0] = 1000000;
  EXPECT_EQ(runner->count_correct(one, set).status().code(), Code::kInvalidArgument);
  set.labels[0][0] = 0;
  Variant bad = one[0];
  bad.choices[1] = 99;
  EXPECT_EQ(runner->count_correct(std::vector{bad}, set).status().code(), Code::kInvalidArgument);
  bad = one[0];
  bad.exit = 3;
  EXPECT_EQ(runner->count_correct(std::vector{bad}, set).status().code(), Code::kInvalidArgument);
  std::atomic<bool> stop = true;
  EXPECT_EQ(runner->count_correct(one, set, &stop).status().code(), Code::kResourceExhausted);
  EvaluationSet small = set;
  small.images[0] = *Tensor::zeros({DType::kF32, Shape{4, 3, 7, 7}});
  EXPECT_EQ(runner->count_correct(one, small).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(runner->count_correct({}, set)->empty());
}

INSTANTIATE_TEST_SUITE_P(Models, BlockRunnerTest, ::testing::Values("builtin:resnet8", "resnet20"),
                         [](const auto& info) { return test::test_name(info.param); });

TEST(EvaluationSetTest, TakesTheFirstImagesOfALoader) {
  auto data = open_synthetic({.size = 16, .count = 20});
  ASSERT_TRUE(data.ok());
  LoaderOptions options{.batch = 8, .shuffle = false, .workers = 0, .augment = false};
  options.input.height = options.input.width = 16;
  auto loader = Loader::make(std::shared_ptr<const Dataset>(*std::move(data)), options);
  ASSERT_TRUE(loader.ok()) << loader.status().message();
  const auto some = load_evaluation_set(**loader, 11), all = load_evaluation_set(**loader);
  ASSERT_TRUE(some.ok() && all.ok());
  EXPECT_EQ(some->count(), 11);
  EXPECT_EQ(some->images.size(), 2u);
  EXPECT_EQ(some->labels[1], (std::vector<int64_t>{8, 9, 0}));
  EXPECT_EQ(all->count(), 20);
  EXPECT_EQ(all->labels[2].size(), 4u);
}

}  // namespace
}  // namespace limber
