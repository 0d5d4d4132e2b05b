// The best variant of an elastic model within a budget, on this machine.
#pragma once

#include "jobs/elastic_work.h"
#include "supernet/search/search.h"

namespace limber {

// `model` is the folder of an elastic model.
struct SearchJobOptions : JobOptions {
  ImageSource source;
  double latency = 0;        // seconds at most; 0: `latency_share`
  double latency_share = 0;  // of the original's latency; one of the two must be given
  double margin = 0.02;      // share of the latency that stays free when a variant is timed
  SearchMethod method = SearchMethod::kEvolution;
  int evaluations = 200;  // variants to try, known ones included
  double max_params = 0;  // parameters at most; 0: any number, as for the next two
  size_t max_memory = 0;  // bytes of a run: parameters and what lies between layers
  double max_flops = 0;
};
Status check(const SearchJobOptions& job);

struct SearchOutcome {
  bool stopped = false;  // then only `evaluated` is meant, and what was evaluated is kept
  std::string folder;
  JudgedImages images;  // that accuracies are of
  double seconds = 0;   // that it took
  double evaluation_s = 0, confirmation_s = 0;
  size_t evaluated = 0, known = 0;  // variants, now and before
  double reuse_saving = 0;          // share of the work that shared beginnings saved

  ElasticModel model;  // whose variants these are
  Variant original;
  double original_s = 0, original_accuracy = 0;
  int64_t original_parameters = 0;

  double limit_s = 0;
  Scored best;        // seconds are predicted
  double best_s = 0;  // measured
  uint64_t best_memory = 0;
  GraphCost best_cost;
  int64_t best_parameters = 0;
  // False: nothing that was timed keeps the limit and its margin, and `best` is the fastest of it.
  bool within = false;
  // The best for every twentieth of the original's latency, as predicted; by rising seconds.
  std::vector<Scored> front;
};

Result<SearchOutcome> run_search(const SearchJobOptions& job, const JobControl& control = {});

// The same with a model that is open: several searches load and time once.
// REQUIRES: load_images(), and times in the table
Result<SearchOutcome> find_variant(const SearchJobOptions& job, ElasticWork& work, const JobControl& control);

}  // namespace limber
