#include "adapt/surrogate/surrogate.h"

#include "tests/adapt/surrogate/master_case.h"
#include "tests/data/files.h"

namespace limber::adapt {
namespace {

SurrogateOptions some_options() {
  SurrogateOptions options;
  options.batch = 12;
  options.probe_images = 6;
  options.budget.operations = 0.4;
  options.training.steps = 3;
  options.training.rate = 0.02;
  return options;
}

std::unique_ptr<Surrogate> make(const AdaptedModel& master,
                                const SurrogateOptions& options = some_options()) {
  auto made = Surrogate::create(master, options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *std::move(made) : nullptr;
}

void learn(Surrogate& surrogate, uint64_t seed, int64_t images = 12) {
  const auto changed = surrogate.adapt(small_images(images, seed));
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_TRUE(*changed);
}

std::map<std::string, std::string> model_bytes(const AdaptedModel& model) {
  auto bytes = test::bytes_of(*model.weights);
  std::erase_if(bytes, [](const auto& each) { return each.first.starts_with("optimizer/"); });
  return bytes;
}

class EachRelevance : public testing::TestWithParam<RelevanceKind> {};
INSTANTIATE_TEST_SUITE_P(Surrogate, EachRelevance,
                         testing::Values(RelevanceKind::kHardestGates, RelevanceKind::kMeanGates,
                                         RelevanceKind::kSensitivity, RelevanceKind::kGatesAndSensitivity,
                                         RelevanceKind::kMagnitude),
                         [](const auto& info) {
                           std::string name(relevance_name(info.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(EachRelevance, AWindowGivesASmallNetwork) {
  for (const AdaptedModel& master : {residual_model(), gated_model()}) {
    SurrogateOptions options = some_options();
    options.relevance = GetParam();
    const auto surrogate = make(master, options);
    ASSERT_TRUE(surrogate);
    EXPECT_EQ(surrogate->remodelled()->weights, master.weights);
    const auto before = model_bytes(master);
    learn(*surrogate, 1);
    EXPECT_EQ(model_bytes(master), before) << "nobody said that it is good";
    const AdaptedModel& small = *surrogate->remodelled();
    EXPECT_TRUE(find_gates(small.graph).empty());
    EXPECT_LE(surrogate->operations(), 0.4);
    EXPECT_GT(surrogate->operations(), 0.2);
    EXPECT_LT(small.weights->bytes(), master.weights->bytes());
    const Tensor answers = answers_of(small, small_images(3, 9));
    for (const float x : answers.data<float>()) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST(Surrogate, TheMasterTakesWhatWasLearntOfTheKeptUnitsAlone) {
  const AdaptedModel master = gated_model();
  SurrogateOptions options = some_options();
  options.training.filter_share = 1;
  const auto surrogate = make(master, options);
  learn(*surrogate, 1);
  const auto before = model_bytes(master);
  ASSERT_TRUE(surrogate->keep().ok());
  const Tensor filters = *master.weights->get("w2");
  const auto kept = surrogate->remodelled()->weights->type("w2")->shape;
  size_t rows = 0, elements = 0;
  for (size_t f = 0; f < 6; ++f) {
    const auto* old = reinterpret_cast<const float*>(before.at("w2").data()) + f * 72;
    size_t moved = 0;
    for (size_t i = 0; i < 72; ++i) moved += filters.data<float>()[f * 72 + i] != old[i];
    rows += moved > 0;
    elements = std::max(elements, moved);
  }
  EXPECT_GT(rows, 0u);
  EXPECT_LE(rows, static_cast<size_t>(kept.dim(0)));
  EXPECT_LE(elements, static_cast<size_t>(kept.dim(1) * 9));
  for (const char* name : {"mean1", "var1", "mean2", "var2", "mean3", "var3", "head", "head_bias",
                           "gate/w1/weight", "gate/w2/bias"})
    EXPECT_EQ(model_bytes(master).at(name), before.at(name)) << name;
}

// What moves a filter behind a gate of 0.01 by a little would move the master by a hundred times that.
TEST(Surrogate, WhatIsLearntBehindAGateThatIsNearlyShutHardlyMovesTheMaster) {
  const AdaptedModel master = gated_model();
  const TensorType type = *master.weights->type("gate/w2/bias");
  master.weights->set("gate/w2/weight", *Tensor::zeros(*master.weights->type("gate/w2/weight")));
  Tensor bias = *Tensor::allocate(type);
  std::ranges::fill(bias.data<float>(), 0.01F);
  master.weights->set("gate/w2/bias", bias);
  SurrogateOptions options = some_options();
  options.budget.operations = 1;
  options.training.filter_share = 1;
  const auto surrogate = make(master, options);
  const Tensor before = *master.weights->get("b2")->copy();
  learn(*surrogate, 1);
  ASSERT_TRUE(surrogate->keep().ok());
  const Tensor after = *master.weights->get("b2"), small = *surrogate->remodelled()->weights->get("b2");
  double moved = 0;
  for (size_t i = 0; i < before.data<float>().size(); ++i) {
    const double learnt = small.data<float>()[i] - 0.01F * before.data<float>()[i];
    moved += std::abs(learnt);
    EXPECT_NEAR(after.data<float>()[i] - before.data<float>()[i], 0.16 * learnt,
                1e-5 + 0.01 * std::abs(learnt));
  }
  EXPECT_GT(moved, 1e-4);
}

// Cutting the same units again gives the network that was trained, where no gate is shut.
TEST(Surrogate, WhatIsCutAfterwardsKnowsWhatWasLearnt) {
  const AdaptedModel master = residual_model();
  const auto surrogate = make(master);
  learn(*surrogate, 1);
  ASSERT_TRUE(surrogate->keep().ok());
  const auto learnt = model_bytes(*surrogate->remodelled());
  const PlainMaster plain = plain_of(master);
  for (const char* name : {"w1", "w2", "w3", "s1", "b2"}) {
    const auto in = [&](const std::string& bytes) {
      const auto* data = reinterpret_cast<const float*>(bytes.data());
      return std::multiset<int64_t>([&] {
        std::multiset<int64_t> all;
        for (size_t i = 0; i < bytes.size() / 4; ++i) all.insert(std::llround(data[i] * 1e4));
        return all;
      }());
    };
    const auto whole = in(model_bytes(master).at(name));
    size_t found = 0;
    const auto small = in(learnt.at(name));
    for (const int64_t x : small)
      found += whole.contains(x) || whole.contains(x - 1) || whole.contains(x + 1);
    EXPECT_EQ(found, small.size()) << name;
  }
}

TEST(Surrogate, ASecondVisitBeginsWhereTheFirstEnded) {
  const AdaptedModel master = gated_model();
  const auto surrogate = make(master);
  ASSERT_TRUE(surrogate->enter(3).ok());
  learn(*surrogate, 1);
  const auto first = model_bytes(*surrogate->remodelled());
  const std::string graph = print(surrogate->remodelled()->graph);
  ASSERT_TRUE(surrogate->enter(5).ok());
  EXPECT_EQ(model_bytes(*surrogate->remodelled()), first) << "it answers until there is another";
  learn(*surrogate, 2);
  EXPECT_NE(model_bytes(*surrogate->remodelled()), first);
  ASSERT_TRUE(surrogate->enter(3).ok());
  EXPECT_EQ(model_bytes(*surrogate->remodelled()), first);
  EXPECT_EQ(print(surrogate->remodelled()->graph), graph);
  learn(*surrogate, 3);
  EXPECT_NE(model_bytes(*surrogate->remodelled()), first);
  EXPECT_EQ(print(surrogate->remodelled()->graph), graph) << "a known domain is not cut again";
}

TEST(Surrogate, ADomainThatIsForgottenIsMetAnew) {
  const Folder folder;
  SurrogateOptions options = some_options();
  options.folder = folder / "state";
  for (const char* process : {"first", "second"}) {
    const auto surrogate = make(gated_model(), options);
    ASSERT_TRUE(surrogate->enter(3).ok());
    EXPECT_FALSE(find_gates(surrogate->remodelled()->graph).empty()) << process << ": nothing is known";
    learn(*surrogate, 1);
    ASSERT_TRUE(surrogate->keep().ok());
    EXPECT_TRUE(find_gates(surrogate->remodelled()->graph).empty());
    ASSERT_TRUE(surrogate->forget(3).ok());
    EXPECT_FALSE(find_gates(surrogate->remodelled()->graph).empty()) << process << ": the master answers";
  }
}

TEST(Surrogate, OfTooManyDomainsTheOldestAreForgotten) {
  SurrogateOptions options = some_options();
  options.remembered = 2;
  options.training.steps = 0;
  const auto surrogate = make(residual_model(), options);
  std::map<std::string, std::string> first;
  for (const int64_t domain : {1, 2, 1, 3}) {
    ASSERT_TRUE(surrogate->enter(domain).ok());
    learn(*surrogate, static_cast<uint64_t>(domain));
    ASSERT_TRUE(surrogate->keep().ok());
    if (domain == 1) first = model_bytes(*surrogate->remodelled());
  }
  const auto third = model_bytes(*surrogate->remodelled());
  ASSERT_TRUE(surrogate->enter(2).ok());
  EXPECT_EQ(model_bytes(*surrogate->remodelled()), third) << "nothing is known of it any more";
  ASSERT_TRUE(surrogate->enter(1).ok());
  EXPECT_EQ(model_bytes(*surrogate->remodelled()), first);
}

TEST(Surrogate, LaterWindowsOfADomainGoOn) {
  const auto surrogate = make(gated_model());
  learn(*surrogate, 1);
  const std::string graph = print(surrogate->remodelled()->graph);
  const auto first = model_bytes(*surrogate->remodelled());
  ASSERT_TRUE(surrogate->enter(0).ok());
  EXPECT_EQ(model_bytes(*surrogate->remodelled()), first);
  learn(*surrogate, 2, 7);
  EXPECT_EQ(print(surrogate->remodelled()->graph), graph);
  EXPECT_NE(model_bytes(*surrogate->remodelled()), first);
}

TEST(Surrogate, WhatWasNotKeptIsForgotten) {
  const AdaptedModel master = gated_model();
  const auto surrogate = make(master);
  learn(*surrogate, 1);
  const auto before = model_bytes(master), once = model_bytes(*surrogate->remodelled());
  ASSERT_TRUE(surrogate->reset().ok());
  EXPECT_EQ(surrogate->remodelled()->weights, master.weights);
  ASSERT_TRUE(surrogate->keep().ok());
  EXPECT_EQ(model_bytes(master), before);
  learn(*surrogate, 1);
  EXPECT_EQ(model_bytes(*surrogate->remodelled()), once);
  // What was kept before is not.
  ASSERT_TRUE(surrogate->keep().ok());
  learn(*surrogate, 2);
  EXPECT_NE(model_bytes(*surrogate->remodelled()), once);
  ASSERT_TRUE(surrogate->reset().ok());
  EXPECT_EQ(model_bytes(*surrogate->remodelled()), once);
}

TEST(Surrogate, NumbersThatAreNoneTeachTheMasterNothing) {
  for (const RelevanceKind kind : {RelevanceKind::kSensitivity, RelevanceKind::kMagnitude}) {
    const AdaptedModel master = gated_model();
    SurrogateOptions options = some_options();
    options.relevance = kind;
    const auto surrogate = make(master, options);
    const auto before = model_bytes(master);
    Tensor images = small_images(12, 1);
    images.data<float>()[20] = NAN;
    EXPECT_FALSE(surrogate->adapt(images).ok());
    ASSERT_TRUE(surrogate->reset().ok());
    ASSERT_TRUE(surrogate->keep().ok());
    EXPECT_EQ(model_bytes(master), before);
    learn(*surrogate, 1);
  }
}

TEST(Surrogate, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [](const auto& change, const char* what) {
    SurrogateOptions options = some_options();
    change(options);
    expect_failure(Surrogate::create(gated_model(), options), Code::kInvalidArgument, {what});
  };
  refused([](auto& o) { o.batch = 0; }, "0 images");
  refused([](auto& o) { o.budget.operations = 0; }, "share 0 of the operations");
  refused([](auto& o) { o.budget.operations = 1.5; }, "share 1.5");
  refused([](auto& o) { o.budget.block = 0; }, "by 0 at a time");
  refused([](auto& o) { o.budget.least = -1; }, "expected 0 to 1");
  refused([](auto& o) { o.prior = -1; }, "priors of -1");
  refused([](auto& o) { o.remembered = 0; }, "0 domains");
  refused([](auto& o) { o.write_back = 2; }, "the share 2");
  refused([](auto& o) { o.knowledge.spread = 1; }, "spread");
  refused([](auto& o) { o.probe_images = 0; }, "0 images");
  expect_failure(Surrogate::create(plain_model(), some_options()), Code::kInvalidArgument, {"'surrogate'"});
}

}  // namespace
}  // namespace limber::adapt
