#include "variant/fingerprint.h"

#include "tests/variant/folder_case.h"

namespace limber::test {
namespace {

TEST(Fingerprint, IsOfStructureAndWeights) {
  ElasticModel model = some_model();
  const auto print_of = [&] { return Fingerprints::of(model)->model(); };
  const std::string first = print_of();
  EXPECT_EQ(first, print_of());
  EXPECT_EQ(first, Fingerprints::of(some_model())->model());
  const auto differs = [&](auto change, auto back) {
    change();
    EXPECT_NE(print_of(), first);
    back();
    EXPECT_EQ(print_of(), first);
  };
  const std::string parameter = parameters_of(model.blocks[0].alternatives[0].graph).at(0);
  Tensor weights = *model.params->writable(parameter);
  float& weight = weights.data<float>()[0];
  const float was = weight;
  differs([&] { weight = was + 1; }, [&] { weight = was; });
  std::string& name = model.blocks[0].alternatives[0].name;
  differs([&] { name += "x"; }, [&] { name.pop_back(); });
  differs([&] { ++model.exits[0].after; }, [&] { --model.exits[0].after; });
  const Exit exit = model.exits.back();
  differs([&] { model.exits.pop_back(); }, [&] { model.exits.push_back(exit); });
}

// Only what a variant uses counts.
TEST(Fingerprint, OfAVariantStaysWhenOthersChange) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    ElasticModel model = random_elastic(seed);
    Random random(seed);
    const Variant variant = random_variant(model, random);
    const auto used = *parameters_of(model, variant);
    const std::string before = Fingerprints::of(model)->variant(model, variant);
    for (const std::string& name : model.params->names()) {
      Tensor weights = *model.params->writable(name);
      float& weight = weights.data<float>()[0];
      const float was = weight;
      weight = was + 1;
      const bool own = std::find(used.begin(), used.end(), name) != used.end();
      const std::string now = Fingerprints::of(model)->variant(model, variant);
      weight = was;
      if (own || variant.confidence == 0) {
        EXPECT_EQ(now != before, own) << name;
      }
    }
  }
}

}  // namespace
}  // namespace limber::test
