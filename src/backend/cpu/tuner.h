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

// An implementation worth trying for one pair of formats.
struct Timing {
  onednn::Format src = onednn::Format::kPlain, dst = onednn::Format::kPlain;
  int variant = 0;  // how the layer is expressed: see layers.h
  int index = 0;    // which of oneDNN's implementations
  int tier = 0;     // as in Candidate: 0 oneDNN's first choice, 1 the fastest alone, 2 also with Winograd
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
  std::optional<int64_t> find_choice(const std::string& key) const;  // which whole plan was the fastest
  void keep_choice(const std::string& key, int64_t choice);

 private:
  void load();
  void save();

  const std::string file_;
  const std::string machine_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Timing>> layers_;
  std::map<std::string, double> reorders_;
  std::map<std::string, int64_t> choices_;
  bool changed_ = false;
};

// Seconds of one run (runtime/timing.h). Inputs are random. With `cold_weights`
// the weights (input 1) are taken from many copies in turn: in a network whose weights are larger than
// the inner caches, a layer never finds its own there.
Result<double> time_kernel(const onednn::Compiled& compiled, bool in_place, bool cold_weights);

// Relative difference (max |a-b| / max |b|) of two implementations of one layer on the same random data.
// Both must have the same formats. `weights` is the type of the weights, which are output 0 of a `gradient`
// and input 1 of others.
Result<double> difference(onednn::Library& library, const onednn::Compiled& a, const onednn::Compiled& b,
                          const TensorType& weights, bool gradient);

}  // namespace limber
