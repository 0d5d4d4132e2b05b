// What each alternative costs in accuracy, learnt from the variants that were evaluated.
#pragma once

#include <span>
#include <vector>

#include "supernet/operators/factorize.h"
#include "supernet/search/knapsack.h"
#include "supernet/search/search_space.h"

namespace limber {

// Accuracy as a sum over alternatives, by ridge regression around a price that is a function of the error of
// each. How much is believed of either follows from generalised cross-validation.
class PriceModel {
 public:
  // REQUIRES: samples of this space, at least one
  PriceModel(const SearchSpace& space, std::span<const Scored> samples);

  // Loss of accuracy by alternative. `doubt` 0: as is most likely. Above: a draw of what it might be, as far
  // off as the samples leave open, so many times.
  Prices prices(double doubt, Random& random) const;

 private:
  void add_row(const Variant& variant, std::vector<double>& row) const;
  void choose_ridge(double squares, size_t samples);
  double price_of(size_t block, size_t choice, const std::vector<double>& weights) const;

  const SearchSpace& space_;
  std::vector<std::vector<size_t>> feature_;  // by block and alternative
  size_t features_ = 0;
  EigenSystem eigen_;            // of the features' products
  std::vector<double> targets_;  // in the directions of eigen_
  double ridge_ = 1, noise_ = 0;
};

}  // namespace limber
