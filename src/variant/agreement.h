// How near the answers of a variant are to those of the model.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/answers.h"
#include "tensor/tensor.h"

namespace limber {

class Agreement {
 public:
  // `sizes`: see output_sizes(); only values need them.
  Agreement(Answers answers, std::vector<int64_t> sizes);
  // The first `rows` images of a batch. REQUIRES: both of one type
  void add(const Tensor& answer, const Tensor& original, int64_t rows);
  // Of classes and places the share with the same best class. Of values 1 less the mean square of the
  // difference by the variance of what the model says, 0 at least, and the mean of that over its outputs. 0
  // when there was nothing to compare.
  double share() const;

 private:
  struct Sums {
    double differences = 0, values = 0, squares = 0;  // squares of differences and of values
    double count = 0;
  };
  void add_classes(const Tensor& answer, const Tensor& original, int64_t rows);
  void add_values(const Tensor& answer, const Tensor& original, int64_t rows);

  const Answers answers_;
  const std::vector<int64_t> sizes_;
  int64_t equal_ = 0, places_ = 0;
  std::vector<Sums> sums_;  // by output
};

}  // namespace limber
