#include "variant/agreement.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace limber {
namespace {

Tensor random_tensor(Shape shape, uint64_t seed) {
  Tensor tensor = *Tensor::allocate({DType::kF32, std::move(shape)});
  Random random(seed);
  for (float& x : tensor.data<float>()) x = static_cast<float>(random.normal());
  return tensor;
}

TEST(Agreement, OfPlacesCountsEqualBestClasses) {
  Agreement agreement(Answers::kPlaces, {});
  int64_t equal = 0, all = 0;
  for (uint64_t batch = 0; batch < 3; ++batch) {
    const Tensor a = random_tensor({4, 3, 5, 2}, batch), b = random_tensor({4, 3, 5, 2}, batch + 10);
    const int64_t rows = batch == 2 ? 1 : 4;  // the last batch is short
    agreement.add(a, b, rows);
    const auto best = [](const Tensor& t, int64_t image, int64_t place) {
      int64_t found = 0;
      for (int64_t c = 1; c < 3; ++c) {
        const auto at = [&](int64_t k) {
          return t.data<float>()[static_cast<size_t>((image * 3 + k) * 10 + place)];
        };
        if (at(c) > at(found)) found = c;
      }
      return found;
    };
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t p = 0; p < 10; ++p, ++all) equal += best(a, i, p) == best(b, i, p) ? 1 : 0;
    }
  }
  EXPECT_GT(equal, 0);
  EXPECT_LT(equal, all);
  EXPECT_EQ(agreement.share(), static_cast<double>(equal) / static_cast<double>(all));
}

// Two outputs of 3 and of 4 numbers: each counts the same, however large its numbers are.
TEST(Agreement, OfValuesIsWhatIsExplained) {
  constexpr double kNoise = 0.3;
  const Tensor want = random_tensor({64, 7}, 1), noise = random_tensor({64, 7}, 2);
  for (const float scale : {1.F, 1000.F}) {
    Tensor original = *want.copy(), answer = *want.copy();
    for (size_t i = 0; i < 64 * 7; ++i) {
      const bool second = i % 7 >= 3;
      float &o = original.data<float>()[i], &a = answer.data<float>()[i];
      if (second) o *= scale;
      a = o + (second ? scale * static_cast<float>(kNoise) * noise.data<float>()[i] : 0.F);
    }
    Agreement agreement(Answers::kValues, {3, 4});
    agreement.add(answer, original, 64);
    // The first is right, of the second about a ninth part is missing.
    EXPECT_NEAR(agreement.share(), 1 - kNoise * kNoise / 2, 0.02) << scale;
  }
}

TEST(Agreement, IsOneForTheOriginalAndNoneForNonsense) {
  for (const Answers answers : {Answers::kPlaces, Answers::kValues}) {
    const Tensor want = random_tensor({2, 4, 3}, 1);
    Agreement same(answers, {12}), none(answers, {12}), broken(answers, {12});
    EXPECT_EQ(none.share(), 0);
    same.add(want, want, 2);
    EXPECT_EQ(same.share(), 1);
    Tensor nonsense = *want.copy();
    for (float& x : nonsense.data<float>()) x = answers == Answers::kValues ? std::nanf("") : -x;
    broken.add(nonsense, want, 2);
    EXPECT_LT(broken.share(), 0.5);
    EXPECT_GE(broken.share(), 0);
  }
}

}  // namespace
}  // namespace limber
