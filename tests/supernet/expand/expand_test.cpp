#include "supernet/expand/expand.h"

#include <set>

#include "passes/splice.h"
#include "supernet/operators/operators.h"
#include "supernet/operators/work.h"
#include "tests/supernet/models.h"
#include "variant/measure.h"

namespace limber {
namespace {

struct ExpandCase {
  const char* model;
  bool run;  // every alternative, which takes long for large models
};

ElasticModel expand_model(const Model& model, const ExpandOptions& options = {}) {
  auto elastic = expand(model.graph, model.params, options);
  EXPECT_TRUE(elastic.ok()) << elastic.status().message();
  return elastic.ok() ? *std::move(elastic) : ElasticModel{};
}

std::map<std::string, int> count_alternatives(const ElasticModel& model) {
  std::map<std::string, int> counts;
  for (const Block& block : model.blocks) {
    for (const Alternative& alternative : block.alternatives) ++counts[alternative.name];
  }
  return counts;
}

void expect_alternative_fits(const ElasticModel& model, size_t block, const Alternative& alternative) {
  const Graph& first = model.blocks[block].alternatives[0].graph;
  const Graph& last = model.blocks[block + static_cast<size_t>(alternative.span) - 1].alternatives[0].graph;
  const Graph& graph = alternative.graph;
  const Status status = verify(graph);
  EXPECT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(graph.inputs().size(), 1u);
  ASSERT_EQ(graph.outputs().size(), 1u);
  EXPECT_EQ(graph.type(graph.inputs()[0]), first.type(first.inputs()[0]));
  EXPECT_EQ(graph.type(graph.outputs()[0].value), last.type(last.outputs()[0].value));
}

class Expand : public ::testing::TestWithParam<ExpandCase> {
 protected:
  void SetUp() override {
    model_ = test::load_model(GetParam().model);
    if (!model_) GTEST_SKIP() << GetParam().model << " is not there";
  }
  std::optional<Model> model_;
};

TEST_P(Expand, AlternativesFitAndRun) {
  const size_t before = model_->params->names().size();
  const ElasticModel elastic = expand_model(*model_);
  std::set<std::string> names;
  std::string counts;
  for (const auto& [name, count] : count_alternatives(elastic)) counts += fmt::format(" {} {}", count, name);
  RecordProperty("alternatives", counts);
  std::vector<const Graph*> originals;
  for (size_t i = 0; i < elastic.blocks.size(); ++i) {
    const Block& block = elastic.blocks[i];
    EXPECT_EQ(block.alternatives[0].name, "original");
    originals.push_back(&block.alternatives[0].graph);
    for (size_t a = 1; a < block.alternatives.size(); ++a) {
      const Alternative& alternative = block.alternatives[a];
      SCOPED_TRACE(fmt::format("block {} '{}' {}", i, block.name, alternative.name));
      expect_alternative_fits(elastic, i, alternative);
      for (const Value& value : alternative.graph.values()) {
        if (value.role != Role::kParameter && value.role != Role::kState) continue;
        EXPECT_TRUE(value.name.starts_with(fmt::format("alt/{}/{}/", block.name, alternative.name)))
            << value.name;
        EXPECT_TRUE(names.insert(value.name).second) << value.name;
      }
      if (!GetParam().run) continue;
      const Tensor output = test::run_graph(alternative.graph, elastic.params);
      ASSERT_TRUE(output.valid());
      for (int64_t e = 0; e < output.elements(); ++e)
        ASSERT_TRUE(std::isfinite(element_as_double(output, e)));
    }
  }
  EXPECT_EQ(elastic.params->names().size(), before + names.size());
  const auto chained = chain(originals);
  ASSERT_TRUE(chained.ok()) << chained.status().message();
  EXPECT_EQ(hash(*chained), hash(elastic.base));
}

class ExpandWithin : public Expand {};

TEST_P(ExpandWithin, StaysWithinTheSizeLimit) {
  const int64_t own = parameter_elements(model_->graph);
  const ElasticModel elastic = expand_model(*model_, {.size_limit = 1.4});
  int64_t all = own;
  for (const Block& block : elastic.blocks) {
    for (size_t a = 1; a < block.alternatives.size(); ++a)
      all += parameter_elements(block.alternatives[a].graph);
  }
  EXPECT_GT(all, own);
  EXPECT_LE(static_cast<double>(all), 1.4 * static_cast<double>(own));
}

constexpr ExpandCase kExpandCases[] = {
    {"builtin:resnet8", true},
    {"builtin:vit", true},
    {"resnet20", true},
    {"resnet56", true},
    {"mobilenet_v2_small", true},
    {"vit_small", true},
    {"resnet50_small", true},
    {"resnet18", false},
    {"mobilenet_v3_small", true},
    {"shufflenet_v2_x1_0", true},
    {"efficientnet_b0", false},
    {"densenet121", false},
    {"squeezenet1_1", true},
    {"vit_tiny", false},
    {"regnet_y_400mf", false},
    {"convnext_small", true},
    {"swin_small", true},
    {"inception_small", true},
    {"unet_small", true},
    {"resnet50", false},
    {"mobilenet_v2", false},
    {"mobilenet_v3_large", false},
    {"vgg16", false},
};
std::string case_name(const ::testing::TestParamInfo<ExpandCase>& c) {
  return test::test_name(c.param.model);
}

std::vector<ExpandCase> small_cases() {
  std::vector<ExpandCase> cases(std::begin(kExpandCases), std::end(kExpandCases));
  std::erase_if(cases, [](const ExpandCase& c) { return !c.run; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, Expand, ::testing::ValuesIn(kExpandCases), case_name);
INSTANTIATE_TEST_SUITE_P(Models, ExpandWithin, ::testing::ValuesIn(small_cases()), case_name);

Model resnet8() { return *test::load_model("builtin:resnet8"); }

TEST(ExpandOptionsTest, OnlyTheOperatorsAskedFor) {
  const ElasticModel elastic = expand_model(resnet8(), {.operators = {"shrink50"}});
  const auto counts = count_alternatives(elastic);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts.at("shrink50"), 3);
}

TEST(ExpandOptionsTest, UnknownOperatorNamesThoseThereAre) {
  const Model model = resnet8();
  const auto elastic = expand(model.graph, model.params, {.operators = {"magic"}});
  ASSERT_FALSE(elastic.ok());
  EXPECT_EQ(elastic.status().code(), Code::kInvalidArgument);
  EXPECT_NE(elastic.status().message().find("shrink50"), std::string::npos);
}

TEST(ExpandOptionsTest, SlowAlternativesAreLeftOut) {
  const auto slow_shrunk = [](const Graph& graph, const auto&) -> Result<double> {
    return graph.name.ends_with("shrink50") ? 0.96 : graph.name.ends_with("shrink25") ? 0.94 : 1.0;
  };
  const ElasticModel elastic =
      expand_model(resnet8(), {.operators = {"shrink50", "shrink25"}, .measure = slow_shrunk});
  const auto counts = count_alternatives(elastic);
  EXPECT_EQ(counts.count("shrink50"), 0u);
  EXPECT_EQ(counts.at("shrink25"), 3);
}

TEST(ExpandOptionsTest, ByTheTimeTheyReallyTake) {
  const auto backends = test::cpu_backends();
  const ElasticModel elastic =
      expand_model(resnet8(), {.measure = [&](const Graph& graph, const auto& params) {
                     return measure_latency(graph, params, backends, {.seconds = 0.002});
                   }});
  EXPECT_GT(count_alternatives(elastic).size(), 1u);
}

TEST(ExpandOptionsTest, DominatedAlternativesAreLeftOut) {
  const auto bad_shrunk = [](const Graph&, const Graph& alternative, const auto&) -> Result<double> {
    return alternative.name.ends_with("shrink50") ? 0.5 : 0.1;
  };
  const ElasticModel elastic =
      expand_model(resnet8(), {.operators = {"shrink50", "shrink25", "merge2"}, .judge = bad_shrunk});
  const auto counts = count_alternatives(elastic);
  EXPECT_EQ(counts.count("shrink50"), 0u);  // larger and worse than shrink25
  EXPECT_EQ(counts.at("shrink25"), 3);
  EXPECT_EQ(counts.at("merge2"), 1);  // stands for other blocks
  EXPECT_EQ(elastic.blocks[1].alternatives[1].error, 0.1);
}

TEST(ExpandOptionsTest, ExpandingTwiceIsAnErrorAndChangesNothing) {
  const Model model = resnet8();
  expand_model(model);
  const auto names = model.params->names();
  const auto again = expand(model.graph, model.params);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(model.params->names(), names);
}

TEST(ExpandOptionsTest, TrainingAnAlternativeLeavesTheModelAsItIs) {
  const Model model = resnet8();
  const ElasticModel elastic = expand_model(model, {.operators = {"merge2"}});
  for (const std::string& name : elastic.params->names()) {
    if (!name.starts_with("alt/")) continue;
    const Tensor copy = *elastic.params->get(name);
    const size_t slash = name.find("/merge2/");
    const Tensor original = *elastic.params->get(name.substr(slash + 8));
    EXPECT_NE(copy.raw(), original.raw());
    EXPECT_EQ(std::memcmp(copy.raw(), original.raw(), copy.bytes()), 0);
  }
}

TEST(MeasureLatency, AGraphAndABlockTakeTime) {
  const Model model = resnet8();
  const auto whole = measure_latency(model.graph, model.params, test::cpu_backends(), {.seconds = 0.01});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_GT(*whole, 0);
  const ElasticModel elastic = expand_model(model, {.operators = {"skip"}});
  for (const Block& block : elastic.blocks) {
    const auto part = measure_latency(block.alternatives[0].graph, elastic.params, test::cpu_backends(),
                                      {.seconds = 0.005});
    ASSERT_TRUE(part.ok()) << part.status().message();
    EXPECT_GT(*part, 0);
  }
}

TEST(MeasureLatency, AnIdentityCanBeMeasured) {
  const Model model = resnet8();
  const ElasticModel elastic = expand_model(model, {.operators = {"skip"}});
  const Block& first = elastic.blocks[1];
  ASSERT_EQ(first.alternatives.size(), 2u);
  const auto seconds =
      measure_latency(first.alternatives[1].graph, elastic.params, test::cpu_backends(), {.seconds = 0.001});
  EXPECT_TRUE(seconds.ok()) << seconds.status().message();
}

TEST(MeasureLatency, WrongThreadsAreRefused) {
  const Model model = resnet8();
  EXPECT_FALSE(measure_latency(model.graph, model.params, test::cpu_backends(), {.threads = 0}).ok());
}

}  // namespace
}  // namespace limber
