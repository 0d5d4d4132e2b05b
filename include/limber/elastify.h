// A model that changes its shape: making it so, and finding the best shape for this machine.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "limber/control.h"
#include "limber/error.h"
#include "limber/export.h"

namespace limber {
inline namespace v1 {

struct ElastifySettings {
  std::string model;           // an ONNX file, the folder of a training, or "builtin:NAME"
  std::string data;            // images, with labels or without
  std::string output;          // folder of the elastic model
  bool resume = false;         // goes on with what is in `output`
  double budget_s = 600;       // for everything, from loading to saving
  std::vector<double> shares;  // of the model's latency, for which variants are tuned; empty: the whole range
  int threads = 0;             // 0: every core this process may use
  uint64_t seed = 0;
};

struct ElastifyReport {
  bool stopped = false;  // by Control::stop; the same settings with `resume` go on
  int64_t blocks = 0, alternatives = 0;
  double size_ratio = 1;  // all weights together by those of the model
  double seconds = 0;
};

// The model's own blocks stay as they are and get cheaper alternatives, taught by the model.
// What is no classifier is learnt from what the model itself says. kInvalidArgument, with nothing written,
// when no block of the model can be replaced or the budget is too small.
LIMBER_API Expected<ElastifyReport> elastify(const ElastifySettings& settings, const Control& control = {});

// A shape of an elastic model, and what is known of it on this machine.
struct KnownVariant {
  std::string variant;    // its name, which means the same shape as long as the folder has it
  double latency_s = 0;   // of one sample
  bool measured = false;  // as a whole; otherwise a sum over its blocks
  double accuracy = 0;    // share of `images` that are right, 0..1
  int64_t images = 0;
  uint64_t memory_bytes = 0;  // of a run: weights and what lies between layers
};

struct SearchSettings {
  std::string folder;        // of an elastic model
  std::string data;          // images that variants are judged by
  double latency_s = 0;      // at most; 0: `latency_share`
  double latency_share = 0;  // of the model's own latency; one of the two must be given
  uint64_t max_memory = 0;   // bytes; 0: any number
  int evaluations = 200;     // variants to try
  int64_t images = 500;      // at most
  int threads = 0;           // 0: every core this process may use
  uint64_t seed = 0;
};

struct SearchReport {
  bool stopped = false;  // by Control::stop; what was evaluated is kept in the folder
  double limit_s = 0;
  // False: nothing that was timed keeps the limit, and `best` is the fastest of it.
  bool within = false;
  KnownVariant best, original;
};

// What is found out goes into the folder, for Elastic::choose and for later searches.
LIMBER_API Expected<SearchReport> search(const SearchSettings& settings, const Control& control = {});

struct VariantBudget {
  double latency_s = std::numeric_limits<double>::infinity();
  uint64_t memory_bytes = std::numeric_limits<uint64_t>::max();
};

}  // namespace v1
}  // namespace limber
