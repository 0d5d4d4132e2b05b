// A served model beside a busy neighbour: what a demonstration measured of it, and the part of its page.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/page.h"
#include "report/plot.h"

namespace limber {

// Some seconds in which the neighbour slept, or worked. Times are seconds after the first request was due.
struct DemoPhase {
  bool busy = false;
  double from_s = 0, to_s = 0;
  int64_t requests = 0;  // all that were due in it; each was answered or refused
  int64_t answered = 0, refused = 0;
  int64_t within = 0;           // answered within the budget
  double p50_s = 0, p95_s = 0;  // of those that were answered, from when they were due
  double accuracy = 0;          // of the answers
  std::vector<std::pair<std::string, int64_t>> variants;  // answers by what computed them, most first
  int switches = 0;

  double share_within() const {
    return requests > 0 ? static_cast<double>(within) / static_cast<double>(requests) : 0;
  }
};

// One way to serve under the whole script.
struct DemoServed {
  std::string name;  // "fixed", "elastic"
  std::vector<DemoPhase> phases;
  struct Moment {
    double at_s = 0;   // its middle
    double p90_s = 0;  // infinite: more than one in ten were refused
  };
  std::vector<Moment> moments;
  struct Switch {
    double at_s = 0;
    std::string from, to, reason;
  };
  std::vector<Switch> switches;  // the last ones, where there are very many

  // Of all requests that were due while the neighbour worked, or slept.
  double share_within(bool busy) const;
  double accuracy(bool busy) const;
  // The budget is meant for nine of ten requests.
  bool kept(bool busy) const { return share_within(busy) >= 0.9; }
};

struct DemoServing {
  double budget_s = 0;        // of a request, waiting included
  double idle_p90_s = 0;      // of the fixed model, which the budget was found by
  double slack = 0;           // budget by idle_p90_s
  double rate = 0;            // requests a second, as by chance
  double use = 0;             // share of what the fixed model can do on the idle machine
  double least_accuracy = 0;  // of variants that may answer, on the images of the search
  int variants = 0;           // that may answer, the model itself included
  int workers = 0, neighbours = 0;
  int64_t batch = 0;             // images of a request
  int64_t images = 0;            // that were sent over and over
  std::vector<DemoServed> runs;  // of the same requests: fixed, elastic; empty: not served

  // What came of it, in a sentence that says no more than was measured. REQUIRES: two runs
  std::string verdict() const;
};

LinePlot serving_plot(const DemoServing& serving);
// REQUIRES: two runs
void add_serving(HtmlPage& page, const DemoServing& serving);

}  // namespace limber
