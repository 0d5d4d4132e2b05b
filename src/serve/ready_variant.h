// A variant that is compiled, warm and timed: what workers run.
#pragma once

#include <memory>
#include <vector>

#include "runtime/session.h"
#include "serve/source.h"

namespace limber {

// One worker's memory for one size of batch.
class Lane {
 public:
  virtual ~Lane() = default;
  virtual Tensor input(size_t index) const = 0;
  virtual Status run() = 0;
  virtual Tensor output(size_t index) const = 0;  // until the next run
};

struct ReadyOptions {
  int workers = 1;
  int threads = 1;        // of each
  int64_t max_batch = 4;  // rows that are computed at once, where that pays
};

// Plans and weights are shared by the workers. Each worker uses lanes of its own number, one at a time; apart
// from that it is immutable. Whoever holds it keeps it alive: a variant that was switched away from goes
// when the last request leaves it.
class ReadyVariant {
 public:
  // Takes as long as compiling and timing take, some 0.1 to 2 seconds. `number` is what its owner calls it.
  static Result<std::shared_ptr<const ReadyVariant>> make(
      const ServedSource& source, const ServedVariant& variant, int number, const WeightSnapshot& weights,
      const std::vector<std::shared_ptr<Backend>>& backends, const ReadyOptions& options);

  // `net` in the place of the variant of this name. Where its graph is that of `like`, plans and times are
  // taken over, and it takes as long as weights take to be laid out. Null `like`: from nothing.
  static Result<std::shared_ptr<const ReadyVariant>> make(
      const ServedNet& net, const std::string& variant, int number, const ReadyVariant* like,
      const std::vector<std::shared_ptr<Backend>>& backends, const ReadyOptions& options);

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  const std::string& net() const { return net_; }  // empty: the variant as it came
  // Of one row, as it was timed when it was made; of a variant with exits the mean over images, as it was
  // given.
  double seconds() const { return kinds_.front().seconds; }
  // Rows of the lane that computes so many rows quickest, and how long it takes.
  int64_t batch_for(int64_t rows) const;
  int64_t largest_batch() const { return kinds_.back().batch; }
  double seconds(int64_t batch) const;
  double seconds_of(int64_t rows) const;  // of one request with so many rows, cut into batches
  Lane& lane(int worker, int64_t batch) const;
  size_t memory_bytes() const { return memory_bytes_; }  // of all lanes, without weights

 private:
  struct Kind {
    int64_t batch = 1;
    double seconds = 0;
    std::vector<std::unique_ptr<Lane>> lanes;  // by worker
    std::shared_ptr<const Plan> plan;          // null: with exits
  };
  ReadyVariant(int number, std::string name, std::string net)
      : number_(number), name_(std::move(name)), net_(std::move(net)) {}
  const Kind& kind(int64_t batch) const;
  Status time(Kind& kind);
  Status add_kinds(const Graph& graph, const WeightSnapshot& weights,
                   const std::vector<std::shared_ptr<Backend>>& backends, const ReadyOptions& options);
  Status add_kinds_of(const ReadyVariant& like, const WeightSnapshot& weights, const ReadyOptions& options);
  Status add_lanes(Kind& kind, const WeightSnapshot& weights, const ReadyOptions& options);

  const int number_;
  const std::string name_, net_;
  uint64_t graph_ = 0;       // its hash; 0: with exits
  std::vector<Kind> kinds_;  // by batch; the first is of one row
  size_t memory_bytes_ = 0;
};

}  // namespace limber
