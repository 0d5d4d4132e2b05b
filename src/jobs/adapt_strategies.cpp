#include "jobs/adapt_strategies.h"

#include <functional>

#include "adapt/methods/batch_norm.h"
#include "adapt/methods/shot.h"
#include "adapt/methods/tent.h"
#include "jobs/engine.h"

namespace limber {
namespace {

using adapt::AdaptedModel;
using Made = Result<std::unique_ptr<adapt::Strategy>>;

struct NamedStrategy {
  const char* name;
  std::function<Made(const AdaptedModel& model)> make;
};

const std::vector<NamedStrategy>& strategies() {
  static const std::vector<NamedStrategy> all = {
      {"none", [](const AdaptedModel&) { return Made(std::make_unique<adapt::Frozen>()); }},
      {"bn", [](const AdaptedModel& m) { return adapt::BatchNormStatistics::create(m, {}); }},
      {"onda", [](const AdaptedModel& m) { return adapt::Onda::create(m, {}); }},
      {"tent", [](const AdaptedModel& m) { return adapt::Tent::create(m, {}); }},
      {"shot-im", [](const AdaptedModel& m) { return adapt::Shot::create(m, adapt::shot_im()); }},
      {"shot", [](const AdaptedModel& m) { return adapt::Shot::create(m, adapt::shot_with_labels()); }},
  };
  return all;
}

}  // namespace

std::vector<std::string> adapt_strategies() {
  std::vector<std::string> names;
  for (const NamedStrategy& one : strategies()) names.emplace_back(one.name);
  return names;
}

Made make_strategy(const std::string& name, const AdaptedModel& model) {
  for (const NamedStrategy& one : strategies()) {
    if (one.name == name) return one.make(model);
  }
  return no_such("strategy", name, adapt_strategies());
}

}  // namespace limber
