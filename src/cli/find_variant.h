// The best variant of an elastic model within a budget, as the options of limber search describe it.
#pragma once

#include "cli/search_work.h"

namespace limber {

inline constexpr double kParameterBytes = sizeof(float);

struct SearchCommand : CommonOptions {
  ImageSource source;
  std::string method = "evolution";
  SearchOptions search;
  double max_params = 0;
  size_t max_memory = 0;  // bytes; 0: any number
  double margin = 0.02;   // share of the latency that stays free when a variant is timed
};

void declare_search(Arguments& arguments, SearchCommand& options);

struct SearchOutcome {
  bool stopped = false;  // by stop_asked(): then only `evaluated` is meant
  double original_s = 0, original_accuracy = 0, limit_s = 0, seconds = 0;
  double evaluation_s = 0, confirmation_s = 0;  // that these parts took
  std::vector<Scored> all;                      // evaluated now and before
  size_t evaluated = 0;                         // now
  Scored best;
  double best_s = 0;  // measured
  uint64_t best_memory = 0;
  // False: nothing that was timed keeps the limit and its margin, and `best` is the fastest of it.
  bool within = false;
};

// Searches and confirms by timing whole variants; what is found goes into the folder's variant table.
// REQUIRES: load_images() and measure_blocks()
Result<SearchOutcome> find_variant(const SearchCommand& options, SearchWork& work);

}  // namespace limber
