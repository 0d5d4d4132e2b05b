#include "supernet/search/price_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace limber {
namespace {

// The first features are there for all: a constant, and two shapes of the error. They are given in larger
// units, so that the ridge hardly holds them back.
constexpr size_t kCommon = 3;
constexpr double kUnits = 10;

double error_shape(size_t feature, double error) {
  return kUnits * (feature == 1 ? error : std::sqrt(error));
}

}  // namespace

PriceModel::PriceModel(const SearchSpace& space, std::span<const Scored> samples) : space_(space) {
  features_ = kCommon;
  for (const auto& block : space.blocks) {
    auto& indices = feature_.emplace_back(1, 0);  // the original has none: its price is 0
    for (size_t c = 1; c < block.size(); ++c) indices.push_back(features_++);
  }
  double mean = 0;
  for (const Scored& sample : samples) mean += sample.accuracy / static_cast<double>(samples.size());
  const auto n = static_cast<int64_t>(features_);
  Matrix products(n, n);
  std::vector<double> sums(features_), row;
  double squares = 0;
  for (const Scored& sample : samples) {
    add_row(sample.variant, row);
    const double y = sample.accuracy - mean;
    squares += y * y;
    for (size_t i = 0; i < features_; ++i) {
      if (row[i] == 0) continue;
      sums[i] += row[i] * y;
      for (size_t k = 0; k < features_; ++k)
        products.at(static_cast<int64_t>(i), static_cast<int64_t>(k)) += row[i] * row[k];
    }
  }
  eigen_ = symmetric_eigen(products);
  targets_.assign(features_, 0);
  for (size_t i = 0; i < features_; ++i) {
    const double* direction = eigen_.vectors.row(static_cast<int64_t>(i));
    for (size_t k = 0; k < features_; ++k) targets_[i] += direction[k] * sums[k];
  }
  choose_ridge(squares, samples.size());
}

void PriceModel::add_row(const Variant& variant, std::vector<double>& row) const {
  row.assign(features_, 0);
  row[0] = kUnits;
  for (size_t b = 0; b < space_.size();) {
    const auto c = static_cast<size_t>(variant.choices[b]);
    const ChoiceCost& one = space_.blocks[b][c];
    if (c != 0) {
      row[feature_[b][c]] = 1;
      for (size_t i = 1; i < kCommon; ++i) row[i] += error_shape(i, one.error);
    }
    b += static_cast<size_t>(one.span);
  }
}

void PriceModel::choose_ridge(double squares, size_t samples) {
  double best = std::numeric_limits<double>::infinity();
  for (const double ridge : {0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0}) {
    double residual = squares, freedom = static_cast<double>(samples);
    for (size_t i = 0; i < features_; ++i) {
      const double s = std::max(eigen_.values[i], 0.0), t2 = targets_[i] * targets_[i];
      residual += t2 * (s / (s + ridge) - 2) / (s + ridge);
      freedom -= s / (s + ridge);
    }
    residual = std::max(residual, 0.0);
    freedom = std::max(freedom, 1e-3);
    const double score = residual / (freedom * freedom);
    if (score >= best) continue;
    best = score;
    ridge_ = ridge;
    noise_ = std::sqrt(residual / freedom);
  }
}

double PriceModel::price_of(size_t block, size_t choice, const std::vector<double>& weights) const {
  if (choice == 0) return 0;
  double gain = weights[feature_[block][choice]];
  for (size_t i = 1; i < kCommon; ++i)
    gain += weights[i] * error_shape(i, space_.blocks[block][choice].error);
  return -gain;
}

Prices PriceModel::prices(double doubt, Random& random) const {
  std::vector<double> weights(features_);
  for (size_t i = 0; i < features_; ++i) {
    const double s = std::max(eigen_.values[i], 0.0) + ridge_;
    const double along = targets_[i] / s + (doubt > 0 ? doubt * noise_ * random.normal() / std::sqrt(s) : 0);
    const double* direction = eigen_.vectors.row(static_cast<int64_t>(i));
    for (size_t k = 0; k < features_; ++k) weights[k] += along * direction[k];
  }
  Prices prices(space_.size());
  for (size_t b = 0; b < space_.size(); ++b) {
    for (size_t c = 0; c < space_.blocks[b].size(); ++c) prices[b].push_back(price_of(b, c, weights));
  }
  return prices;
}

}  // namespace limber
