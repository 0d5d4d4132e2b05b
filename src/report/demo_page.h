// The page about a demonstration: from a model to one that learns faster, runs within a budget and
// keeps it while the machine gets busy.
#pragma once

#include <string>
#include <vector>

#include "report/demo_serving.h"
#include "report/elastic_page.h"
#include "report/run_log.h"

namespace limber {

// One way to learn the new domain.
struct DemoTraining {
  std::string name;     // "full", "elastic", "last layer"
  double seconds = 0;   // from the command to its end, without evaluation
  double wall_s = 0;    // with it
  double accuracy = 0;  // on images that played no part before
  double val_best = 0;  // on those that were evaluated after each epoch
  RunLog log;
};

// A subnet that was found for a budget.
struct DemoBudget {
  double share = 0;           // of the original's latency: the budget
  double promised_share = 0;  // by the search, which timed it
  double promised_s = 0;
  double promised_accuracy = 0;  // on the images of the search
  double measured_s = 0;         // of the exported file, in turns with the others
  double accuracy = 0;           // of the exported file, on images that played no part before
  int64_t parameters = 0;
  std::string variant, file;
};

// What was run, as it is typed, and how long it took.
struct DemoStep {
  std::string command;
  double seconds = 0;
};

struct DemoReport {
  std::string folder, machine, version, model, domain;
  int threads = 0;
  uint64_t seed = 0;
  bool quick = false;
  double seconds = 0;                   // of everything
  std::string samples_png;              // images of the old domain above those of the new one; bytes
  double base_accuracy = 0;             // of the first model on the old domain
  double base_shifted = 0;              // and on the new one
  std::vector<DemoTraining> trainings;  // full, elastic, last layer, full for the time of elastic
  int64_t judged_images = 0;            // that accuracies are of
  int64_t searched_images = 0;          // that the search judged by
  // The model that was made elastic, as exported.
  double original_s = 0, original_accuracy = 0;
  int64_t original_parameters = 0;
  int timed_runs = 0;  // of each file
  std::vector<DemoBudget> budgets;
  std::vector<double> unreachable;  // shares for which the search found no variant that is fast enough
  ElasticReport elastic;
  DemoServing serving;
  std::vector<DemoStep> steps;

  // REQUIRES: four trainings
  double speedup() const { return trainings[0].seconds / trainings[1].seconds; }
  double points_lost() const { return 100 * (trainings[0].accuracy - trainings[1].accuracy); }
  // Over everything for the same time.
  double points_gained() const { return 100 * (trainings[1].accuracy - trainings[3].accuracy); }
  double measured_share(const DemoBudget& budget) const { return budget.measured_s / original_s; }
  bool within(const DemoBudget& budget) const { return measured_share(budget) <= budget.share; }
};

// REQUIRES: four trainings and a machine with variants
std::string demo_page(const DemoReport& report);
// The two plots that say most, as an SVG file.
std::string demo_picture(const DemoReport& report);

}  // namespace limber
