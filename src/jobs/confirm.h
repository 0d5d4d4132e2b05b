// From predictions to a promise: variants are compiled and timed as a whole.
#pragma once

#include "jobs/search_job.h"
#include "jobs/search_journal.h"

namespace limber {

// Goes through variants, the best first, for the first that keeps all limits when it is compiled and timed as
// a whole: predictions are sums, and machines change.
class Confirmation {
 public:
  // Fills in what `outcome` says of the original's time and of the best. All must outlive it.
  Confirmation(const SearchJobOptions& job, const ElasticWork& work, SearchJournal& journal,
               SearchOutcome& outcome);

  // `predicted_limit`: seconds, in the terms of the candidates' predictions. kInvalidArgument when none needs
  // as little memory as the job allows.
  Status run(std::vector<Scored> candidates, double predicted_limit);

 private:
  double standing(const Scored& one) const;
  Result<std::vector<Scored>> take(std::vector<Scored>& candidates);
  Result<bool> fits_memory(const Variant& variant);
  Status time(const std::vector<Scored>& some);

  const SearchJobOptions& job_;
  const ElasticWork& work_;
  SearchJournal& journal_;
  SearchOutcome& outcome_;
  const std::vector<Variant> tuned_;
  double predicted_limit_ = 0;
  double slowness_ = 1;  // how far above its prediction a variant was, at most; in units of the limit
  uint64_t least_memory_ = UINT64_MAX;
};

}  // namespace limber
