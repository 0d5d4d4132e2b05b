#include "adapt/surrogate/cut.h"

#include "adapt/surrogate/unit_probe.h"
#include "tests/adapt/surrogate/master_case.h"

namespace limber::adapt {
namespace {

const std::vector<std::vector<int64_t>> kSome = {{0, 2, 3, 7}, {1, 4, 5}};

FilterValues some_gates() {
  return {{0.5, 1, 1.5, 2, 0, 1, 1, 0.25}, {1, 0.75, 1, 1, 2, 0.5}, {1, 1, 0.5, 0.5, 1, 1, 1, 3}};
}

// The plain master, filters multiplied by their gates, those of units that go by 0.
AdaptedModel masked(const AdaptedModel& master, const PlainMaster& plain, const FilterValues& gates) {
  AdaptedModel model = master;
  model.graph = plain.graph;
  model.weights = std::make_shared<Parameters>();
  for (const Value& value : plain.graph.values()) {
    if (value.role == Role::kParameter)
      model.weights->set(value.name, *master.weights->get(value.name)->copy());
  }
  for (size_t l = 0; l < plain.layers.size(); ++l) {
    const CutLayer& layer = plain.layers[l];
    const auto& units = kSome[layer.group];
    for (const std::string& name : {layer.norm->scale, layer.norm->bias}) {
      const auto to = model.weights->get(name)->data<float>();
      for (size_t f = 0; f < to.size(); ++f) {
        const bool kept = std::binary_search(units.begin(), units.end(), static_cast<int64_t>(f));
        to[f] *= kept ? static_cast<float>(gates[l][f]) : 0;
      }
    }
  }
  return model;
}

TEST(Cut, ComputesWhatTheMaskedMasterDoes) {
  const AdaptedModel master = gated_model();
  const PlainMaster plain = plain_of(master);
  const Tensor images = small_images(5, 1);
  for (const FilterValues& gates : {some_gates(), open_gates_of(plain)}) {
    const auto cut = cut_network(plain, master, kSome, gates);
    ASSERT_TRUE(cut.ok()) << cut.status().message();
    EXPECT_EQ(cut->model.weights->type("w2")->shape, (Shape{3, 4, 3, 3}));
    EXPECT_TRUE(find_gates(cut->model.graph).empty());
    test::expect_close(answers_of(cut->model, images), answers_of(masked(master, plain, gates), images), 1e-5,
                       "cut");
  }
}

// Gates that ignore the image, and every unit kept: nothing of the master is lost.
TEST(Cut, ConstantGatesAreFoldedExactly) {
  const AdaptedModel master = gated_model();
  const PlainMaster plain = plain_of(master);
  const FilterValues gates = some_gates();
  for (size_t l = 0; l < plain.layers.size(); ++l) {
    const std::string name = "gate/" + plain.layers[l].weight;
    const TensorType type = *master.weights->type(name + "/weight");
    master.weights->set(name + "/weight", *Tensor::zeros(type));
    const std::vector<float> bias(gates[l].begin(), gates[l].end());
    master.weights->set(name + "/bias",
                        Tensor::from(std::span<const float>(bias), Shape{static_cast<int64_t>(bias.size())}));
  }
  const auto cut = cut_network(plain, master, all_units(plain.groups), gates);
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  const Tensor images = small_images(5, 2);
  test::expect_close(answers_of(cut->model, images), answers_of(master, images), 1e-5, "folded");
}

TEST(Cut, LeavesTheMasterAsItIs) {
  const AdaptedModel master = gated_model();
  const auto before = test::bytes_of(*master.weights);
  const PlainMaster plain = plain_of(master);
  const auto cut = cut_network(plain, master, all_units(plain.groups), open_gates_of(plain));
  ASSERT_TRUE(cut.ok());
  for (const std::string& name : cut->model.weights->names()) {
    Tensor tensor = *cut->model.weights->writable(name);
    for (float& x : tensor.data<float>()) x += 1;
  }
  EXPECT_EQ(test::bytes_of(*master.weights), before);
}

TEST(Cut, WithoutNormalisationFiltersTakeTheirGates) {
  const AdaptedModel master = plain_model();
  const PlainMaster plain = plain_of(master);
  ASSERT_EQ(plain.layers.size(), 1u);
  const auto cut = cut_network(plain, master, all_units(plain.groups), {{2, 1, 1, 1, 1, 0}});
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  const auto now = cut->model.weights->get("w")->data<float>(),
             before = master.weights->get("w")->data<float>();
  for (size_t i = 0; i < 27; ++i) {
    EXPECT_EQ(now[i], 2 * before[i]);
    EXPECT_EQ(now[27 + i], before[27 + i]);
    EXPECT_EQ(now[5 * 27 + i], 0);
  }
}

}  // namespace
}  // namespace limber::adapt
