// What is known of variants on machines, in memory, ready for the question which is best.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "variant/elastic_model.h"

namespace limber {

// Numbers that may be compared: found on one machine, accuracy on the same images. Both are up to
// kMaxContext printable ASCII characters.
struct VariantGroup {
  std::string context;  // machine, backend, threads, as whoever measures calls it
  std::string data;     // the images, as whoever judges calls them (EvaluationSet::name())

  auto operator<=>(const VariantGroup&) const = default;
};
inline constexpr size_t kMaxContext = 256;  // the names of processors have up to 48 characters

struct VariantRecord {
  VariantGroup group;
  Variant variant;
  double predicted_s = 0;            // latency, as a cost model has it
  std::optional<double> measured_s;  // as it was timed
  double accuracy = 0;               // share of images that are right, 0..1
  int64_t images = 0;                // that the accuracy was found on
  uint64_t memory_bytes = 0;         // that a process needs to run it
  uint64_t parameter_bytes = 0;
  double flops = 0;
  std::optional<double> energy_j;  // of one run

  double latency_s() const { return measured_s.value_or(predicted_s); }
  bool operator==(const VariantRecord&) const = default;
};
// All but the variant, which is one of a model or not.
Status check_record(const VariantRecord& record);

// What a variant may need; all by default.
struct VariantLimits {
  double latency_s = std::numeric_limits<double>::infinity();
  uint64_t memory_bytes = UINT64_MAX;
  double flops = std::numeric_limits<double>::infinity();
};

// Immutable: any thread may use it. What it hands out belongs to it.
class VariantIndex {
 public:
  // REQUIRES: check_record of each; no two of one group and variant
  explicit VariantIndex(std::vector<VariantRecord> records);
  VariantIndex(const VariantIndex&) = delete;
  VariantIndex& operator=(const VariantIndex&) = delete;

  size_t size() const { return size_; }
  std::vector<VariantGroup> groups() const;  // sorted
  // Of those of a context the one that was judged on most images; nullptr: there is none.
  const VariantGroup* widest(std::string_view context) const;

  // Of one group, by latency, the more accurate first where it is equal.
  std::span<const VariantRecord> all(const VariantGroup& group) const;
  // Those with low <= latency <= high.
  std::span<const VariantRecord> range(const VariantGroup& group, double low_s, double high_s) const;
  // Those that no other beats: as fast and more accurate, or faster and as accurate. By latency, so also by
  // accuracy. Of several that are equal in both the one that needs least memory.
  std::vector<const VariantRecord*> front(const VariantGroup& group) const;
  // The most accurate within limits, the fastest of those; nullptr: there is none. Takes well under a
  // microsecond with a limit on latency alone, and about one with others.
  const VariantRecord* best(const VariantGroup& group, const VariantLimits& limits) const;

 private:
  // What a lookup reads of a record, close together.
  struct Point {
    double latency_s, flops;
    uint64_t memory_bytes;
    const VariantRecord* record;
  };
  struct Entry {
    std::vector<VariantRecord> records;  // by latency
    std::vector<Point> front;            // by latency
    std::vector<Point> undominated;      // in latency, memory, flops and accuracy; the best first
  };
  static void finish(Entry& entry);
  const Entry* find(const VariantGroup& group) const;

  std::map<VariantGroup, Entry> groups_;
  size_t size_;
};

}  // namespace limber
