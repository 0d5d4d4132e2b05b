// How long the tree of many goals takes, and one more goal: one JSON object on stdout.
//   goal_tree [GOALS [REPEATS]]
#include "porting/goal_tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "base/median.h"
#include "base/random.h"

int main(int argc, char** argv) {
  using namespace limber;
  const size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const size_t repeats = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 50;
  Random random(1);
  // Half to twice of what is usual in each of four constraints, as devices differ.
  const auto goal = [&] {
    Bounds bounds;
    const double size = random.uniform(-1, 1);
    for (double& bound : bounds) bound = std::exp2(0.7 * size + 0.3 * random.uniform(-1, 1));
    return bounds;
  };
  const Bounds whole = {2, 2, 2, 2};
  std::vector<double> tree_ms, insert_us;
  double saved = 0;
  for (size_t i = 0; i < repeats; ++i) {
    std::vector<Bounds> goals;
    while (goals.size() < count) goals.push_back(goal());
    const double start = now_seconds();
    GoalTree tree(whole, goals);
    tree_ms.push_back(1e3 * (now_seconds() - start));
    double alone = 0;
    for (const Bounds& one : goals) alone += GoalTree(whole, std::span(&one, 1)).total();
    saved = alone > 0 ? 1 - tree.total() / alone : 0;
    for (int k = 0; k < 10; ++k) {
      const Bounds more = goal();
      const double begun = now_seconds();
      tree.insert(more, [](size_t) { return true; });
      insert_us.push_back(1e6 * (now_seconds() - begun));
    }
  }
  fmt::print(
      "{{\"goals\": {}, \"tree_ms\": {:.4f}, \"tree_ms_worst\": {:.4f}, \"insert_us\": {:.3f}, "
      "\"insert_us_worst\": {:.3f}, \"way_saved\": {:.4f}}}\n",
      count, median(tree_ms), *std::max_element(tree_ms.begin(), tree_ms.end()), median(insert_us),
      *std::max_element(insert_us.begin(), insert_us.end()), saved);
}
