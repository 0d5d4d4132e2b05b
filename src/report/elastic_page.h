// A page about an elastic model: what its variants take and are worth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/elastic_records.h"
#include "report/plot.h"

namespace limber {

// A variant that was evaluated.
struct VariantPoint {
  enum class Kind : uint8_t {
    kOriginal,
    kUniform,  // the same alternative wherever there is one
    kExits,    // inputs leave early
    kOther,
  };
  std::string name;  // as the command line takes it
  Kind kind = Kind::kOther;
  double predicted_s = 0;
  double measured_s = 0;  // 0: not timed as a whole
  double accuracy = 0;    // 0..1
  int64_t images = 0;     // that the accuracy is of
  double parameter_bytes = 0;

  double seconds() const { return measured_s > 0 ? measured_s : predicted_s; }
};

struct ElasticReport {
  // Variants that may be compared: timed on one machine, judged by the same images.
  struct Machine {
    std::string name;
    std::vector<VariantPoint> points;  // by seconds()
    std::vector<VariantPoint> front;   // those that no other beats, by seconds()
  };
  struct Alternative {
    std::string block, name;
    int span = 1;
    double error = 0;
  };
  std::string folder;
  size_t blocks = 0;
  double variants = 0;
  std::vector<Alternative> alternatives;  // without the originals
  std::vector<Machine> machines;
  std::vector<SearchRecord> searches;  // in their order, as the next
  std::vector<ExitsRecord> exits;
  std::vector<std::string> damaged;  // lines of the history that are left out
};

// Accuracy over latency of all that was evaluated on a machine.
LinePlot variants_plot(const ElasticReport::Machine& machine);
std::string elastic_page(const ElasticReport& report);

}  // namespace limber
