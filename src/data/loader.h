// Batches for training and evaluation.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/prefetch.h"

namespace limber {

enum class OnBadImage : uint8_t {
  kFail,
  kSkip,  // the next image of the epoch that can be read takes its place, label included
};

// Threads that compute lose more to one that wants their core than its work takes: no worker when they have
// every core, else one.
inline constexpr int kAutoWorkers = -1;

struct LoaderOptions {
  int64_t batch = 32;
  bool shuffle = true;  // a new order each epoch
  uint64_t seed = 0;
  int workers = kAutoWorkers;  // threads that decode ahead, each up to two batches; 0: next() does the work
  int threads = 0;         // those that compute, which next() may use when it does the work; 0: every core
  bool drop_last = false;  // leave out a last batch that is not full
  Preprocess input;
  bool augment = true;  // the training version, by `augmentation`; false: the evaluation version
  AugmentOptions augmentation;
  double mixup = 0;  // above 0: blends pairs of a batch by a share drawn from Beta(mixup, mixup)
  OnBadImage on_bad_image = OnBadImage::kFail;
};

struct Batch {
  Tensor images;                  // f32[size,C,H,W]
  Tensor labels;                  // i64[size]; those before mixup
  Tensor targets;                 // f32[size,classes], rows sum to 1; only with mixup
  std::vector<uint32_t> samples;  // which images of the data set they are
  int64_t size = 0;               // 0: the epoch is over, and there are no tensors
};

// What comes out depends on the data set, the options but `workers` and `threads`, the epoch and the number
// of the batch, and on nothing else: training that resumes in the middle of an epoch sees what it would have
// seen. Use from one thread.
class Loader {
 public:
  static Result<std::unique_ptr<Loader>> make(std::shared_ptr<const Dataset> dataset,
                                              const LoaderOptions& options);
  ~Loader() = default;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }
  int64_t batches() const;  // of a whole epoch

  // The next batch will be number `first_batch` of the epoch. What was prefetched is dropped.
  Status start_epoch(uint64_t epoch, int64_t first_batch = 0);
  // Fails with the failure of the first image, by position, that cannot be read; it then goes on failing
  // until the next start_epoch. REQUIRES: start_epoch was called
  Result<Batch> next();

  // Images left out so far because they cannot be read, each counted once.
  size_t skipped() const { return skipped_.size(); }
  // Why, for the first few: each message starts with the image's name.
  const std::vector<std::string>& skip_messages() const { return skip_messages_; }

 private:
  struct BadImage {
    size_t index;
    std::string message;
  };
  struct Made {
    Status status;
    Batch batch;
    std::vector<BadImage> bad;
  };

  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, const Augmenter& augmenter);
  void order_epoch();
  int64_t size_of(int64_t batch) const;
  Made produce(int64_t batch) const;
  Status fill(int64_t batch, Made& made) const;
  struct Loaded {
    Status status;
    size_t index = 0;
    int64_t label = 0;
    std::vector<BadImage> bad;
  };
  Loaded load(size_t position, std::span<float> chw) const;
  Result<int64_t> load_index(size_t index, size_t position, std::span<float> chw) const;
  Status mix(int64_t first, Batch& batch) const;

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;  // with kAutoWorkers replaced
  const Augmenter augmenter_;
  // Read by workers; written only while none works.
  uint64_t epoch_ = 0;
  std::vector<uint32_t> order_;

  Status failure_;
  std::unordered_set<size_t> skipped_;
  std::vector<std::string> skip_messages_;
  Prefetcher<Made> prefetcher_;  // last: its threads use the members above
};

}  // namespace limber
