// An elastic model that a harness drives: how good its latency table and its search are.
#pragma once

#include <string>

#include "base/random.h"
#include "jobs/elastic_work.h"
#include "supernet/search/search.h"

namespace limber {

class SupernetAnswers {
 public:
  explicit SupernetAnswers(ElasticWork& work) : work_(work) {}

  // JSON, as bench/README.md says.
  Result<std::string> answer(const std::string& line);

 private:
  Result<std::string> table();
  // Random variants: as the table predicts them, and as they are measured.
  Result<std::string> subnets(int count);
  // A search: the best accuracy after each evaluation.
  Result<std::string> search(const std::string& method, double share, int evaluations, uint64_t seed);
  // The first variants that a search evaluates: how long that takes, and how long one by one.
  Result<std::string> reuse(double share, int count);
  Result<std::string> accuracy(const std::string& variant);
  // The original and the tuned variants: what they take by the original's time, and how good they are.
  Result<std::string> chain();
  // The variant with one kind of alternative in as few blocks, evenly spread, as keep the share of the time.
  Result<std::string> uniform(const std::string& alternative, double share) const;

  ElasticWork& work_;
  Random random_{1};
};

}  // namespace limber
