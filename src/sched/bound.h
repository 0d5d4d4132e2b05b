// Above what no schedule can be: what applications would choose if machine time had a price.
//
// By each of some moments applications together cannot have used more than the machine had. Taken as prices
// (Lagrange multipliers) instead of limits, each application chooses by itself; what they choose, and what
// the machine time is worth, is a bound whatever the prices are, and good prices make it tight.
#pragma once

#include <vector>

#include "sched/problem.h"

namespace limber::sched {

class Prices {
 public:
  explicit Prices(const Problem& problem);

  struct Offer {
    double worth = 0;  // of a candidate, less what its machine time costs
    double end = 0;    // of its retraining, where that is best
  };
  Offer offer(const Candidate& candidate) const;
  double income() const { return income_; }  // what all machine time costs

  // Changes prices towards what is used: `chosen` and `offers` are by application. `excess` is how far the
  // bound is above what is known to be possible, `step` below 2.
  void follow(const std::vector<size_t>& chosen, const std::vector<Offer>& offers, double excess,
              double step);

 private:
  struct Use {
    double work = 0, rate = 0;  // machine time; the most of it by time
  };
  Use use_of(const Candidate& candidate) const;
  double cost(const Use& use, double end) const;
  void add_up();

  const Problem& problem_;
  std::vector<double> moments_, prices_;
  std::vector<double> sums_, moment_sums_;  // of prices, and of prices times moments, from each on
  double income_ = 0;
};

// Bounds found by changing prices again and again, and the best plan met on the way.
struct Priced {
  double bound = 0;
  std::vector<std::vector<double>> worths;  // of candidates, at the prices of the bound
  double income = 0;                        // at these
  Plan plan;
  double value = 0;  // of the plan
};
Priced find_prices(const Problem& problem, int rounds);

}  // namespace limber::sched
