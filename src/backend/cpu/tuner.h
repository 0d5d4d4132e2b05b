// Timings of candidates, measured once and remembered: in the process and, when a file is given, on
// disk, so that the second compile of a model is fast and repeats the first one's choices.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/onednn.h"

namespace limber {

// The fastest implementation found for one pair of formats.
struct Timing {
  onednn::Format src = onednn::Format::kPlain, dst = onednn::Format::kPlain;
  int variant = 0;  // how the layer is expressed: see layers.h
  int index = 0;    // which of oneDNN's implementations
  std::string impl;
  double seconds = 0;
};

// Thread-safe. Entries are for one machine, thread count and oneDNN version; a file holds many of these.
class Tuner {
 public:
  // A missing or damaged file is an empty one: it is only a cache.
  Tuner(std::string cache_file, int threads);
  // Writes new entries to the file, merging with what other processes wrote meanwhile.
  ~Tuner();

  std::optional<std::vector<Timing>> find(const std::string& key) const;
  void keep(const std::string& key, std::vector<Timing> timings);
  std::optional<double> find_reorder(const std::string& key) const;
  void keep_reorder(const std::string& key, double seconds);

 private:
  void load();
  void save();

  const std::string file_;
  const std::string machine_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Timing>> layers_;
  std::map<std::string, double> reorders_;
  bool changed_ = false;
};

// Seconds of one run, the best of several: noise only ever adds. Inputs are random, weights (input 1)
// are taken from several copies in turn when they are small, because in a network they are never warm
// in the innermost cache.
Result<double> time_kernel(const onednn::Compiled& compiled, bool in_place);

// Relative difference (max |a-b| / max |b|) of two implementations of one layer on the same random data.
// Both must have the same formats. `type` is the type of the weights.
Result<double> difference(onednn::Library& library, const onednn::Compiled& a, const onednn::Compiled& b,
                          const TensorType& weights);

}  // namespace limber
