#include "device/forecast.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace limber {
namespace {

constexpr int kHighestOrder = 64, kFurthest = 1000;  // samples; a fit costs the square of the order
constexpr double kSpread = 100;                      // of weights at first: a few samples say more
constexpr double kFading = 0.95;                     // errors are judged over about the last 20 values

const ForecastOptions& checked(const ForecastOptions& options) {
  LIMBER_ASSERT(options.problem().empty());
  return options;
}

// Nothing is known yet: the last value stays.
std::vector<double> stay(int order) {
  std::vector<double> weights(static_cast<size_t>(order) + 1);
  weights[1] = 1;
  return weights;
}

}  // namespace

std::string ForecastOptions::problem() const {
  if (order < 1 || order > kHighestOrder)
    return fmt::format("the forecast's order is {}; expected 1 to {}", order, kHighestOrder);
  if (!(forgetting > 0 && forgetting <= 1))
    return fmt::format("the forecast's forgetting factor is {}; expected above 0, up to 1", forgetting);
  if (horizon < 1 || horizon > kFurthest)
    return fmt::format("the forecast's horizon is {}; expected 1 to {} steps", horizon, kFurthest);
  return {};
}

LoadForecast::LoadForecast(const ForecastOptions& options)
    : options_(checked(options)), fit_(stay(options.order), options.forgetting, kSpread) {}

void LoadForecast::regressors(const std::vector<double>& recent, std::vector<double>& x) const {
  x.assign(1, 1.0);
  x.insert(x.end(), recent.rbegin(), recent.rend());
}

void LoadForecast::judge(double value) {
  if (pending_.size() < static_cast<size_t>(options_.horizon)) return;
  const Pending said = pending_.front();
  pending_.pop_front();
  judged_ = kFading * judged_ + 1;
  model_square_ = kFading * model_square_ + (said.model - value) * (said.model - value);
  naive_square_ = kFading * naive_square_ + (said.naive - value) * (said.naive - value);
}

void LoadForecast::add(double value) {
  if (std::isnan(value)) return;
  value = std::clamp(value, 0.0, 1.0);
  judge(value);
  const size_t order = static_cast<size_t>(options_.order);
  if (recent_.size() == order) {
    regressors(recent_, x_);
    fit_.add(x_, value);
    recent_.erase(recent_.begin());
  }
  recent_.push_back(value);
  if (recent_.size() == order) pending_.push_back({predict_fitted(options_.horizon), value});
}

double LoadForecast::predict_fitted(int steps) const {
  if (recent_.size() < static_cast<size_t>(options_.order)) return last();
  std::vector<double> recent = recent_, x;
  for (int step = 0; step < std::min(steps, kFurthest); ++step) {
    regressors(recent, x);
    recent.erase(recent.begin());
    recent.push_back(std::clamp(fit_.predict(x), 0.0, 1.0));
  }
  return recent.back();
}

bool LoadForecast::better_than_naive() const {
  // As many judgements as the model has weights: fewer are luck.
  const double least = std::min(static_cast<double>(weights().size()), 0.5 / (1 - kFading));
  return judged_ >= least && model_square_ < naive_square_;
}

double LoadForecast::predict(int steps) const { return better_than_naive() ? predict_fitted(steps) : last(); }

double LoadForecast::model_error() const { return judged_ > 0 ? std::sqrt(model_square_ / judged_) : 0; }
double LoadForecast::naive_error() const { return judged_ > 0 ? std::sqrt(naive_square_ / judged_) : 0; }

}  // namespace limber
