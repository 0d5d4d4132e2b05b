#include "jobs/adapt_strategies.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "adapt/methods/alignment.h"
#include "adapt/methods/batch_norm.h"
#include "adapt/methods/shot.h"
#include "adapt/methods/tent.h"
#include "adapt/surrogate/surrogate.h"
#include "jobs/engine.h"

namespace limber {
namespace {

using adapt::AdaptedModel;
using Made = Result<std::unique_ptr<adapt::Strategy>>;

constexpr int64_t kSourceBatch = 50;  // images of the source that run at once

struct NamedStrategy {
  const char* name;
  std::function<Made(const AdaptedModel& model, const StrategySettings& settings, const Tensor& source)> make;
  bool needs_source = false;
};

Result<std::vector<Tensor>> in_batches(const Tensor& images) {
  const int64_t count = images.shape().dim(0);
  const size_t row = images.bytes() / static_cast<size_t>(count);
  std::vector<Tensor> batches;
  for (int64_t begin = 0; begin < count; begin += kSourceBatch) {
    TensorType type = images.type();
    type.shape[0] = Dim(std::min(kSourceBatch, count - begin));
    LIMBER_ASSIGN(Tensor batch, Tensor::allocate(type));
    std::memcpy(batch.raw(), static_cast<const std::byte*>(images.raw()) + static_cast<size_t>(begin) * row,
                batch.bytes());
    batches.push_back(std::move(batch));
  }
  return batches;
}

Made make_alignment(const AdaptedModel& model, const StrategySettings& /*settings*/, const Tensor& source) {
  if (!source.valid()) return invalid("'align' needs images of the source");
  LIMBER_ASSIGN(const auto batches, in_batches(source));
  LIMBER_ASSIGN(auto features, adapt::collect_source_features(model, batches));
  return adapt::Alignment::create(model, std::move(features), {});
}

Made make_surrogate(const AdaptedModel& model, const StrategySettings& settings, const Tensor& /*source*/) {
  adapt::SurrogateOptions options;
  options.budget.operations = settings.operations;
  if (!settings.write_back) options.write_back = 0;
  options.folder = settings.folder;
  LIMBER_ASSIGN(auto made, adapt::Surrogate::create(model, options));
  return Made(std::move(made));
}

// One that asks for nothing but the model.
template <typename Make>
NamedStrategy plain(const char* name, Make make) {
  return {name,
          [make](const AdaptedModel& model, const StrategySettings&, const Tensor&) { return make(model); }};
}

const std::vector<NamedStrategy>& strategies() {
  static const std::vector<NamedStrategy> all = {
      plain("none", [](const AdaptedModel&) { return Made(std::make_unique<adapt::Frozen>()); }),
      plain("bn", [](const AdaptedModel& m) { return adapt::BatchNormStatistics::create(m, {}); }),
      plain("onda", [](const AdaptedModel& m) { return adapt::Onda::create(m, {}); }),
      plain("tent", [](const AdaptedModel& m) { return adapt::Tent::create(m, {}); }),
      plain("shot-im", [](const AdaptedModel& m) { return adapt::Shot::create(m, adapt::shot_im()); }),
      plain("shot", [](const AdaptedModel& m) { return adapt::Shot::create(m, adapt::shot_with_labels()); }),
      {"align", make_alignment, true},
      {"surrogate", make_surrogate},
  };
  return all;
}

const NamedStrategy* find_strategy(const std::string& name) {
  const auto found = std::find_if(strategies().begin(), strategies().end(),
                                  [&](const NamedStrategy& one) { return one.name == name; });
  return found == strategies().end() ? nullptr : &*found;
}

}  // namespace

Status check(const StrategySettings& settings) {
  if (settings.operations > 0 && settings.operations <= 1) return {};
  return invalid("a surrogate of the share {} of the operations; expected more than 0, at most 1",
                 settings.operations);
}

std::vector<std::string> adapt_strategies() {
  std::vector<std::string> names;
  for (const NamedStrategy& one : strategies()) names.emplace_back(one.name);
  return names;
}

bool needs_source_images(const std::string& strategy) {
  const NamedStrategy* found = find_strategy(strategy);
  return found != nullptr && found->needs_source;
}

Made make_strategy(const std::string& name, const AdaptedModel& model, const StrategySettings& settings,
                   const Tensor& source) {
  const NamedStrategy* found = find_strategy(name);
  return found == nullptr ? Made(no_such("strategy", name, adapt_strategies()))
                          : found->make(model, settings, source);
}

}  // namespace limber
