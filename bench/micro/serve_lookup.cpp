// How long the choice among many variants takes: one JSON object on stdout.
//   serve_lookup [VARIANTS [QUERIES]]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "serve/choice_index.h"

int main(int argc, char** argv) {
  using namespace limber;
  const size_t variants = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  const size_t queries = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 200000;
  Random random(1);
  // As subnets are: what is slower is more accurate and needs more of everything, give or take a fifth.
  std::vector<ChoicePoint> points(variants);
  for (ChoicePoint& p : points) {
    const double size = random.uniform(0.2, 1);
    const auto noisy = [&] { return size * random.uniform(0.8, 1.2); };
    p = {0.02 * noisy(), 0.1 * noisy(), static_cast<uint64_t>(5e7 * noisy()),
         std::min(1.0, 0.5 + 0.4 * noisy())};
  }
  const ChoiceIndex index(points, {});
  std::vector<double> micros;
  int64_t sum = 0;
  for (size_t i = 0; i < queries; ++i) {
    const ChoiceLimits limits{random.uniform(0.002, 0.025), random.uniform(0.01, 0.13),
                              static_cast<uint64_t>(random.uniform(5e6, 7e7)), random.uniform(0.4, 0.9)};
    const double start = now_seconds();
    sum += index.best(limits);
    micros.push_back(1e6 * (now_seconds() - start));
  }
  std::sort(micros.begin(), micros.end());
  const auto at = [&](double share) {
    return micros[static_cast<size_t>(share * static_cast<double>(queries - 1))];
  };
  fmt::print(
      "{{\"variants\":{},\"queries\":{},\"p50_us\":{:.3f},\"p99_us\":{:.3f},\"max_us\":{:.3f},\"check\":{}}}"
      "\n",
      variants, queries, at(0.5), at(0.99), micros.back(), sum);
}
