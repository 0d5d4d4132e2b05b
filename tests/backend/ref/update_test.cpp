#include <cmath>

#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

const Shape kTwo{2};

TEST(RefSgd, PlainStepWithDecayAndFactor) {
  const Tensor w = f32(kTwo, {1, -2}), dw = f32(kTwo, {0.5, 1}), rate = f32({}, {0.1f}),
               factor = f32({}, {2});
  expect(run(OpKind::kSgdUpdate, {w, dw, rate}), w.type(), {0.95, -2.1});
  expect(run(OpKind::kSgdUpdate, {w, dw, rate, Tensor(), factor}), w.type(), {0.9, -2.2});
  expect(run(OpKind::kSgdUpdate, {w, dw, rate}, {{"decay", 0.5}}), w.type(), {0.9, -2.0});
  expect(run(OpKind::kSgdUpdate, {w, dw, rate}, {{"decay", 0.5}, {"decoupled", int64_t{1}}}), w.type(),
         {1 - 0.05 - 0.05, -2 + 0.1 - 0.1});
}

TEST(RefSgd, Momentum) {
  const Tensor w = f32(kTwo, {1, -2}), dw = f32(kTwo, {0.5, 1}), rate = f32({}, {0.1f}),
               v = f32(kTwo, {1, 0});
  const Attrs momentum{{"momentum", 0.9}, {"dampening", 0.5}};
  const auto plain = run_all(OpKind::kSgdUpdate, {w, dw, rate, v}, momentum, 2);
  expect(plain[1], w.type(), {1.15, 0.5});
  expect(plain[0], w.type(), {1 - 0.115, -2.05});
  const auto nesterov =
      run_all(OpKind::kSgdUpdate, {w, dw, rate, v}, Attrs(momentum).set("nesterov", int64_t{1}), 2);
  expect(nesterov[1], w.type(), {1.15, 0.5});
  expect(nesterov[0], w.type(), {1 - 0.1 * (0.5 + 0.9 * 1.15), -2 - 0.1 * (1 + 0.9 * 0.5)});
}

TEST(RefSgd, EffectIsOfTheLossAlone) {
  const Tensor w = f32(kTwo, {1, -2}), dw = f32(kTwo, {0.5, 1}), rate = f32({}, {0.1f}),
               v = f32(kTwo, {1, 0});
  const auto out = run_all(OpKind::kSgdUpdate, {w, dw, rate, v}, {{"momentum", 0.9}, {"decay", 0.5}}, 3);
  // velocity: 0.9 + 0.5 + 0.5 * 1, 0 + 1 - 0.5 * 2
  expect(out[2], f32({kUpdateEffects}, {0, 0, 0}).type(), {0.5 * 0.19, 0.25 + 1, 1 + 4});
}

TEST(RefAdam, CorrectsItsMoments) {
  const Tensor w = f32(kTwo, {1, -2}), dw = f32(kTwo, {0.5, -1}), rate = f32({}, {0.1f}),
               m = f32(kTwo, {0.2f, 0}), v = f32(kTwo, {0.3f, 0}), step = f32({}, {2});
  for (bool decoupled : {false, true}) {
    const Attrs attrs{{"beta1", 0.9},
                      {"beta2", 0.99},
                      {"epsilon", 1e-3},
                      {"decay", 0.2},
                      {"decoupled", int64_t{decoupled}}};
    const auto out = run_all(OpKind::kAdamUpdate, {w, dw, rate, m, v, step}, attrs, 5);
    std::vector<double> new_w, new_m, new_v;
    double gain = 0;
    for (int64_t i = 0; i < 2; ++i) {
      const double x = element_as_double(w, i), g = element_as_double(dw, i) + (decoupled ? 0 : 0.2 * x);
      new_m.push_back(0.9 * element_as_double(m, i) + 0.1 * g);
      new_v.push_back(0.99 * element_as_double(v, i) + 0.01 * g * g);
      const double corrected = std::sqrt(new_v.back() / (1 - std::pow(0.99, 3)));
      const double shrunk = decoupled ? x - 0.1 * 0.2 * x : x;
      new_w.push_back(shrunk - 0.1 * new_m.back() / (1 - std::pow(0.9, 3)) / (corrected + 1e-3));
      gain += element_as_double(dw, i) * (x - new_w.back());
    }
    expect(out[0], w.type(), new_w);
    expect(out[1], w.type(), new_m);
    expect(out[2], w.type(), new_v);
    expect(out[3], step.type(), {3});
    expect(out[4], f32({kUpdateEffects}, {0, 0, 0}).type(), {gain, 0.25 + 1, 1 + 4});
  }
}

TEST(RefBatchNormTraining, GivesTheStatisticsOfTheBatch) {
  const Tensor x = f32({2, 1, 2}, {1, 3, 5, 7}), one = f32({1}, {1}), zero = f32({1}, {0});
  const auto out = run_all(OpKind::kBatchNormTraining, {x, one, zero, one, one},
                           {{"epsilon", 1.0}, {"momentum", 0.75}, {"act", std::string("relu")}}, 5);
  const double inv_std = 1 / std::sqrt(6.0);
  expect(out[0], x.type(), {0, 0, inv_std, 3 * inv_std});
  expect(out[1], one.type(), {0.75 + 0.25 * 4});
  expect(out[2], one.type(), {0.75 + 0.25 * 5});
  expect(out[3], one.type(), {4});
  expect(out[4], one.type(), {inv_std});
}

TEST(RefMaxPoolBackward, GoesToTheFirstLargest) {
  const Attrs attrs{{"kernel", Ints{2}}, {"strides", Ints{1}}, {"pads", Ints{0, 0}}, {"dilations", Ints{1}}};
  const Tensor x = f32({1, 1, 4}, {2, 2, 1, 5}), dy = f32({1, 1, 3}, {1, 10, 100});
  expect(run(OpKind::kMaxPoolBackward, {x, dy}, attrs), x.type(), {1, 10, 0, 100});
}

}  // namespace
}  // namespace limber::test
