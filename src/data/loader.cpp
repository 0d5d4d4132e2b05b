#include "data/loader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "base/hash.h"
#include "base/parallel.h"

namespace limber {
namespace {

constexpr int64_t kMaxBatch = 1 << 16;  // images; more is a slip of the finger
constexpr int kMaxWorkers = 256;        // threads, likewise
constexpr size_t kMaxBadInARow = 100;   // more is not a bad image, but a bad data set
constexpr size_t kMessagesKept = 10;    // enough for people to see what is wrong

// Draws that have nothing to do with each other.
enum class Stream : uint64_t { kOrder, kSample, kMixup };

Random stream(Stream which, uint64_t seed, uint64_t epoch, uint64_t position) {
  return Random(Hasher().add(static_cast<uint64_t>(which)).add(seed).add(epoch).add(position).digest());
}

// Gamma(shape, 1), by Marsaglia and Tsang.
double gamma(Random& random, double shape) {
  if (shape < 1) return gamma(random, shape + 1) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

float beta(Random& random, double shape) {
  const double a = gamma(random, shape), b = gamma(random, shape);
  return a + b > 0 ? static_cast<float>(a / (a + b)) : 1.F;
}

// Both become share of the one and 1 - share of the other.
void blend(std::span<float> a, std::span<float> b, float share) {
  for (size_t i = 0; i < a.size(); ++i) {
    const float x = a[i], y = b[i];
    a[i] = share * x + (1 - share) * y;
    b[i] = share * y + (1 - share) * x;
  }
}

Status check(const LoaderOptions& options) {
  if (options.batch < 1 || options.batch > kMaxBatch) {
    return invalid("a batch of {}; expected 1..{}", options.batch, kMaxBatch);
  }
  if (options.workers < kAutoWorkers || options.workers > kMaxWorkers) {
    return invalid("{} loader threads; expected 0..{}", options.workers, kMaxWorkers);
  }
  if (!(options.mixup >= 0 && options.mixup <= 100)) {
    return invalid("mixup {}; expected 0 (off) to 100", options.mixup);
  }
  return {};
}

LoaderOptions decided(LoaderOptions options) {
  if (options.threads <= 0) options.threads = available_cores();
  if (options.workers == kAutoWorkers) options.workers = options.threads < available_cores() ? 1 : 0;
  return options;
}

}  // namespace

Result<std::unique_ptr<Loader>> Loader::make(std::shared_ptr<const Dataset> dataset,
                                             const LoaderOptions& options) {
  LIMBER_ASSERT(dataset != nullptr);
  LIMBER_TRY(check(options));
  LIMBER_ASSIGN(const Augmenter augmenter, Augmenter::make(options.input, options.augmentation));
  if (options.drop_last && dataset->size() < static_cast<size_t>(options.batch)) {
    return invalid("{} images make no full batch of {}; use a smaller batch or keep the last one",
                   dataset->size(), options.batch);
  }
  return std::unique_ptr<Loader>(new Loader(std::move(dataset), options, augmenter));
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options,
               const Augmenter& augmenter)
    : dataset_(std::move(dataset)),
      options_(decided(options)),
      augmenter_(augmenter),
      order_(dataset_->size()),
      prefetcher_(options_.workers, [this](int64_t batch) { return produce(batch); }) {}

int64_t Loader::batches() const {
  const auto size = static_cast<int64_t>(dataset_->size());
  return options_.drop_last ? size / options_.batch : (size + options_.batch - 1) / options_.batch;
}

int64_t Loader::size_of(int64_t batch) const {
  return std::min(options_.batch, static_cast<int64_t>(dataset_->size()) - batch * options_.batch);
}

void Loader::order_epoch() {
  std::iota(order_.begin(), order_.end(), 0U);
  if (!options_.shuffle) return;
  Random random = stream(Stream::kOrder, options_.seed, epoch_, 0);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
}

Status Loader::start_epoch(uint64_t epoch, int64_t first_batch) {
  if (first_batch < 0 || first_batch > batches()) {
    return invalid("cannot start at batch {}: an epoch of {} images has {} batches of {}", first_batch,
                   dataset_->size(), batches(), options_.batch);
  }
  prefetcher_.cancel();
  failure_ = Status();
  epoch_ = epoch;
  order_epoch();
  prefetcher_.start(first_batch, batches());
  return {};
}

Result<Batch> Loader::next() {
  if (!failure_.ok()) return failure_;
  if (prefetcher_.done()) return Batch{};
  Made made = prefetcher_.take();
  for (BadImage& bad : made.bad) {
    if (!skipped_.insert(bad.index).second) continue;
    if (skip_messages_.size() < kMessagesKept) skip_messages_.push_back(std::move(bad.message));
  }
  if (made.status.ok()) return std::move(made.batch);
  failure_ = made.status;
  return failure_;
}

Loader::Made Loader::produce(int64_t batch) const {
  Made made;
  made.status = fill(batch, made);
  return made;
}

Status Loader::fill(int64_t batch, Made& made) const {
  const Preprocess& o = options_.input;
  const int64_t size = size_of(batch), first = batch * options_.batch;
  LIMBER_ASSIGN(made.batch.images,
                Tensor::allocate({DType::kF32, Shape{size, o.channels, o.height, o.width}}));
  LIMBER_ASSIGN(made.batch.labels, Tensor::allocate({DType::kI64, Shape{size}}));
  const auto pixels = made.batch.images.data<float>();
  const auto labels = made.batch.labels.data<int64_t>();
  const size_t each = augmenter_.output_size();
  std::vector<Loaded> loaded(static_cast<size_t>(size));
  const ThreadScope scope(options_.workers == 0 ? options_.threads : 1);
  parallel_for(size, 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      loaded[i] = load(static_cast<size_t>(first) + i, pixels.subspan(i * each, each));
  });
  for (size_t i = 0; i < loaded.size(); ++i) {
    std::move(loaded[i].bad.begin(), loaded[i].bad.end(), std::back_inserter(made.bad));
    LIMBER_TRY(loaded[i].status);
    labels[i] = loaded[i].label;
    made.batch.samples.push_back(static_cast<uint32_t>(loaded[i].index));
  }
  made.batch.size = size;
  return options_.mixup > 0 ? mix(first, made.batch) : Status();
}

// Writes the image at `position` of the epoch, or the one that takes its place, and says which it is.
Loader::Loaded Loader::load(size_t position, std::span<float> chw) const {
  const size_t tries = std::min(order_.size(), kMaxBadInARow);
  Loaded loaded;
  for (size_t i = 0; i < tries; ++i) {
    loaded.index = order_[(position + i) % order_.size()];
    const auto label = load_index(loaded.index, position, chw);
    loaded.status = label.status();
    if (label.ok()) loaded.label = *label;
    if (label.ok() || options_.on_bad_image == OnBadImage::kFail) return loaded;
    loaded.bad.push_back({loaded.index, label.status().message()});
  }
  loaded.status = error(loaded.status.code(), "{} images in a row cannot be read; the first: {}", tries,
                        loaded.bad[0].message);
  return loaded;
}

Result<int64_t> Loader::load_index(size_t index, size_t position, std::span<float> chw) const {
  LIMBER_ASSIGN(const Sample sample, dataset_->get(index));
  Random random = stream(Stream::kSample, options_.seed, epoch_, position);
  const Status written =
      options_.augment ? augmenter_.train(sample.image, random, chw) : augmenter_.evaluate(sample.image, chw);
  if (!written.ok()) return written.in(dataset_->name(index));
  return sample.label;
}

// Pairs the first image with the last, the second with the last but one ...
Status Loader::mix(int64_t first, Batch& batch) const {
  const size_t classes = dataset_->class_names().size(), each = augmenter_.output_size();
  const auto size = static_cast<size_t>(batch.size);
  LIMBER_ASSIGN(batch.targets,
                Tensor::zeros({DType::kF32, Shape{batch.size, static_cast<int64_t>(classes)}}));
  const auto pixels = batch.images.data<float>(), targets = batch.targets.data<float>();
  const auto labels = batch.labels.data<int64_t>();
  for (size_t i = 0; i < size; ++i) targets[i * classes + static_cast<size_t>(labels[i])] = 1;
  Random random = stream(Stream::kMixup, options_.seed, epoch_, static_cast<uint64_t>(first));
  const float share = beta(random, options_.mixup);
  for (size_t i = 0, j = size - 1; i < j; ++i, --j) {
    blend(pixels.subspan(i * each, each), pixels.subspan(j * each, each), share);
    blend(targets.subspan(i * classes, classes), targets.subspan(j * classes, classes), share);
  }
  return {};
}

}  // namespace limber
