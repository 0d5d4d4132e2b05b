#include "supernet/exits/exit_layer.h"

#include <numeric>

#include "supernet/exits/exit_graph.h"
#include "tests/supernet/exits/prepared.h"
#include "tests/supernet/gradients.h"

namespace limber {
namespace {

using namespace exits_testing;

// One session of the graph, for a few samples, its first input seeded; the others are there to be filled.
std::unique_ptr<Session> session_of(const Graph& graph, const std::shared_ptr<Parameters>& params) {
  auto session = test::make_session(test::Net{graph, params}, test::ref_backends(),
                                    batch_settings(graph, kExitBatch, 1));
  Random random(17);
  test::fill_random(session->input(0), random);
  return session;
}

std::vector<float> answer_of(Session& session) {
  EXPECT_TRUE(session.run().ok());
  const auto values = session.output(0).data<float>();
  return {values.begin(), values.end()};
}

TEST(ExitLayer, DropoutOfNothingIsTheExit) {
  Prepared p;
  const Exit exit = *make_exit(p.model, 3, {16, 0}, "a", 1);
  const auto graph = with_dropout(exit.graph);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto dropped = session_of(*graph, p.model.params), plain = session_of(exit.graph, p.model.params);
  auto mask = dropped->input(1).data<float>();
  ASSERT_EQ(mask.size(), static_cast<size_t>(kExitBatch * 16));
  std::fill(mask.begin(), mask.end(), 1.F);
  EXPECT_EQ(answer_of(*dropped), answer_of(*plain));
  // Without any features only the bias is left, which begins as zeros.
  std::fill(mask.begin(), mask.end(), 0.F);
  for (const float x : answer_of(*dropped)) EXPECT_EQ(x, 0);
}

TEST(ExitLayer, DropoutKeepsTheMean) {
  std::vector<float> mask(20000);
  Random random(3);
  draw_dropout(random, 0.25, mask);
  const auto gone = std::count(mask.begin(), mask.end(), 0.F);
  EXPECT_NEAR(static_cast<double>(gone), 5000, 200);
  EXPECT_NEAR(std::accumulate(mask.begin(), mask.end(), 0.0) / 20000, 1, 0.02);
  draw_dropout(random, 0, mask);
  EXPECT_EQ(std::count(mask.begin(), mask.end(), 1.F), 20000);
}

TEST(ExitLayer, SparseWithAllFeaturesIsTheExit) {
  for (const int after : {3, 4}) {
    Prepared p;
    Exit exit = *make_exit(p.model, after, after == 3 ? ExitDesign{16, 1} : ExitDesign{}, "a", 1);
    const auto before = answer_of(*session_of(exit.graph, p.model.params));
    const Status status = make_sparse(p.model, exit, 1);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto now = answer_of(*session_of(exit.graph, p.model.params));
    ASSERT_EQ(now.size(), before.size());
    for (size_t i = 0; i < now.size(); ++i) EXPECT_NEAR(now[i], before[i], 1e-5);
    EXPECT_FALSE(make_sparse(p.model, exit, 0.5).ok()) << "it is sparse already";
  }
}

// What is left out is what is smallest: zeros change nothing, and the storage is as it was reckoned.
TEST(ExitLayer, SparseKeepsTheLargestWeightsOfEachClass) {
  Prepared p;
  const int64_t classes = *count_classes(p.model.base);
  const ExitDesign design{32, 0, 0.25};
  Exit exit = *make_exit(p.model, 3, design, "a", 1);
  Tensor weights = *p.model.params->writable("exit/a/classifier.weight");
  for (int64_t i = 0; i < weights.elements(); ++i) {
    const int64_t c = i / 32, f = i % 32;
    if ((f + c) % 4 != 0) weights.data<float>()[static_cast<size_t>(i)] = 0;
  }
  const auto before = answer_of(*session_of(exit.graph, p.model.params));
  ASSERT_TRUE(make_sparse(p.model, exit, design.kept).ok());
  const auto now = answer_of(*session_of(exit.graph, p.model.params));
  for (size_t i = 0; i < now.size(); ++i) EXPECT_NEAR(now[i], before[i], 1e-5);
  EXPECT_EQ(p.model.params->type("exit/a/classifier.weight")->shape, (Shape{classes, 8}));
  int64_t stored = 0;
  for (const std::string& name : parameters_of(exit.graph))
    stored += p.model.params->type(name)->shape.elements();
  const TensorType& features = features_after(p.model, 3);
  EXPECT_EQ(stored, exit_elements(features, classes, design));
  EXPECT_LT(stored, exit_elements(features, classes, {32, 0}));
  p.model.exits.push_back(exit);
  EXPECT_TRUE(check_elastic(p.model).ok()) << check_elastic(p.model).message();
  EXPECT_EQ(design_exit(features, classes, stored, 0.25)->kept, 0.25);
}

TEST(ExitLayer, GradientsAreDifferenceQuotients) {
  constexpr float kStep = 1e-2F;
  for (const bool sparse : {false, true}) {
    Prepared p;
    Exit exit = *make_exit(p.model, 3, {16, 0}, "a", 1);
    if (sparse) {
      ASSERT_TRUE(make_sparse(p.model, exit, 0.5).ok());
    }
    const std::vector<std::string> names = {"exit/a/classifier.weight", "exit/a/classifier.bias",
                                            "exit/a/first.pointwise.weight"};
    const auto session = session_of(
        test::with_gradients(*with_dropout(exit.graph), names, kExitBatch), p.model.params);
    Random random(5);
    draw_dropout(random, 0.5, session->input(1).data<float>());
    const auto loss = [&] { return static_cast<double>(answer_of(*session)[0]); };
    loss();
    std::vector<Tensor> gradients;
    for (size_t i = 0; i < names.size(); ++i) gradients.push_back(*session->output(i + 1).copy());
    for (size_t i = 0; i < names.size(); ++i) {
      double largest = 0;
      for (const float g : gradients[i].data<float>()) largest = std::max<double>(largest, std::abs(g));
      EXPECT_GT(largest, 0) << names[i];
      for (int draw = 0; draw < 8; ++draw) {
        const size_t at = random.below(static_cast<uint64_t>(gradients[i].elements()));
        const float was = p.model.params->get(names[i])->data<float>()[at];
        const auto with = [&](float x) {
          p.model.params->writable(names[i])->data<float>()[at] = x;
          p.model.params->mark_changed(std::span(&names[i], 1));
          return loss();
        };
        const double quotient = (with(was + kStep) - with(was - kStep)) / (2 * static_cast<double>(kStep));
        with(was);
        EXPECT_NEAR(gradients[i].data<float>()[at], quotient, 0.03 * largest) << names[i] << " " << at;
      }
    }
  }
}

// Trained with it, an exit's features share the work: weights differ from those without.
TEST(Exits, DropoutAndSparseLayersAreTaught) {
  std::map<double, std::vector<float>> learnt;
  for (const double dropout : {0.0, 0.5}) {
    Prepared p;
    p.model.exits.push_back(*make_exit(p.model, 3, {16, 0}, "a", 1));
    ASSERT_TRUE(make_sparse(p.model, p.model.exits[0], 0.5).ok());
    const Tensor features = *p.model.params->get("exit/a/classifier.weight.features")->copy();
    auto teacher =
        make_exit_teacher(p.model, p.targets(0.3), test::cpu_backends(), {.batch = 32, .dropout = dropout});
    ASSERT_TRUE(teacher.ok()) << teacher.status().message();
    const auto [first, last] = losses(**teacher, p.data, 5e-3);
    EXPECT_LT(last, first);
    const Tensor weights = *p.model.params->get("exit/a/classifier.weight");
    learnt[dropout].assign(weights.data<float>().begin(), weights.data<float>().end());
    const Tensor still = *p.model.params->get("exit/a/classifier.weight.features");
    EXPECT_EQ(std::memcmp(still.raw(), features.raw(), features.bytes()), 0);
    p.expect_model_as_it_was();
  }
  EXPECT_NE(learnt[0.0], learnt[0.5]);
}
}  // namespace
}  // namespace limber
