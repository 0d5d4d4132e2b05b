#include "data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "tests/data/files.h"

namespace limber {
namespace {

// Image i is 4x4 and starts with i; its label is i % 7. Some images cannot be read.
class Counting : public Dataset {
 public:
  explicit Counting(size_t size, std::set<size_t> bad = {}, bool slow = false)
      : Dataset({"a", "b", "c", "d", "e", "f", "g"}), size_(size), bad_(std::move(bad)), slow_(slow) {}
  size_t size() const override { return size_; }
  int64_t label(size_t index) const override { return static_cast<int64_t>(index % 7); }
  std::string name(size_t index) const override { return "image" + std::to_string(index); }
  Result<Sample> get(size_t index) const override {
    ++calls;
    if (slow_) std::this_thread::sleep_for(std::chrono::microseconds(index * 37 % 11 * 50));
    if (bad_.contains(index)) return corrupt("{}: damaged", name(index));
    Tensor image = *Tensor::allocate({DType::kU8, Shape{4, 4, 1}});
    for (size_t i = 0; i < 16; ++i) image.data<uint8_t>()[i] = static_cast<uint8_t>(index + i);
    return Sample{std::move(image), label(index)};
  }
  mutable std::atomic<int> calls{0};

 private:
  size_t size_;
  std::set<size_t> bad_;
  bool slow_;
};

LoaderOptions small(int64_t batch) {
  LoaderOptions options;
  options.batch = batch;
  options.workers = 0;
  options.input.height = options.input.width = 4;
  options.input.channels = 1;
  options.input.normalisation.std = {1.F / 255, 1.F / 255, 1.F / 255};
  return options;
}

LoaderOptions everything(int64_t batch) {
  LoaderOptions options = small(batch);
  options.seed = 99;
  options.augmentation.padding = 2;
  options.augmentation.flip = 0.5;
  options.augmentation.brightness = 0.3;
  options.augmentation.cutout = 2;
  options.mixup = 0.4;
  return options;
}

std::unique_ptr<Loader> loader(std::shared_ptr<const Dataset> data, const LoaderOptions& options) {
  auto made = Loader::make(std::move(data), options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

// All bytes of the batches that are left.
std::vector<float> drain(Loader& loader) {
  std::vector<float> all;
  for (;;) {
    const auto batch = loader.next();
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    if (!batch.ok() || batch->size == 0) return all;
    for (const float v : batch->images.data<float>()) all.push_back(v);
    for (const int64_t v : batch->labels.data<int64_t>()) all.push_back(static_cast<float>(v));
    if (!batch->targets.valid()) continue;
    for (const float v : batch->targets.data<float>()) all.push_back(v);
  }
}

std::vector<float> epoch(Loader& loader, uint64_t number, int64_t first = 0) {
  EXPECT_TRUE(loader.start_epoch(number, first).ok());
  return drain(loader);
}

// The first pixel of every image, which is its index.
std::vector<int> indices(Loader& loader, uint64_t number) {
  EXPECT_TRUE(loader.start_epoch(number).ok());
  std::vector<int> all;
  for (;;) {
    const auto batch = loader.next();
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    if (!batch.ok() || batch->size == 0) return all;
    const auto pixels = batch->images.data<float>();
    for (size_t i = 0; i < static_cast<size_t>(batch->size); ++i) {
      all.push_back(static_cast<int>(std::lround(pixels[16 * i])));
      EXPECT_EQ(batch->labels.data<int64_t>()[i], all.back() % 7);
    }
  }
}

TEST(Loader, EveryImageOnceAnEpochInANewOrder) {
  const auto data = std::make_shared<Counting>(50);
  const auto random = loader(data, small(8));
  const auto first = indices(*random, 0), second = indices(*random, 1), again = indices(*random, 0);
  std::vector<int> all(50);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, second);
  EXPECT_NE(first, all);
  for (auto order : {first, second}) {
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, all);
  }
  LoaderOptions in_order = small(8);
  in_order.shuffle = false;
  EXPECT_EQ(indices(*loader(data, in_order), 3), all);
}

TEST(Loader, OrdersAreUniform) {
  LoaderOptions options = small(10);
  options.augment = false;
  const auto l = loader(std::make_shared<Counting>(10), options);
  int counts[10][10] = {};
  constexpr int kEpochs = 2000;
  for (int e = 0; e < kEpochs; ++e) {
    const auto order = indices(*l, static_cast<uint64_t>(e));
    for (size_t i = 0; i < 10; ++i) ++counts[i][order[i]];
  }
  double chi2 = 0;
  for (const auto& row : counts) {
    for (const int count : row) chi2 += std::pow(count - kEpochs / 10.0, 2) / (kEpochs / 10.0);
  }
  EXPECT_LT(chi2, 126.1) << "81 degrees of freedom, p = 0.001";
}

TEST(Loader, BatchesHaveTheirShapes) {
  LoaderOptions options = small(8);
  const auto data = std::make_shared<Counting>(20);
  const auto l = loader(data, options);
  EXPECT_EQ(l->batches(), 3);
  ASSERT_TRUE(l->start_epoch(0).ok());
  const Batch batch = *l->next();
  EXPECT_EQ(batch.images.type().to_string(), "f32[8,1,4,4]");
  EXPECT_EQ(batch.labels.type().to_string(), "i64[8]");
  EXPECT_FALSE(batch.targets.valid());
  EXPECT_EQ(l->next()->size, 8);
  EXPECT_EQ(l->next()->size, 4);
  EXPECT_EQ(l->next()->size, 0);
  EXPECT_EQ(l->next()->size, 0);
  options.drop_last = true;
  EXPECT_EQ(loader(data, options)->batches(), 2);
  EXPECT_EQ(indices(*loader(data, options), 0).size(), 16u);
}

TEST(Loader, WorkersChangeNothing) {
  const auto data = std::make_shared<Counting>(61, std::set<size_t>{3, 4, 17, 60}, true);
  LoaderOptions options = everything(7);
  options.on_bad_image = OnBadImage::kSkip;
  const auto none = loader(data, options);
  const std::vector<float> expected[] = {epoch(*none, 0), epoch(*none, 1)};
  EXPECT_NE(expected[0], expected[1]);
  for (const int workers : {1, 2, 5, 16}) {
    options.workers = workers;
    const auto many = loader(data, options);
    EXPECT_EQ(epoch(*many, 0), expected[0]) << workers;
    EXPECT_EQ(epoch(*many, 1), expected[1]) << workers;
    EXPECT_EQ(many->skipped(), none->skipped());
    EXPECT_EQ(many->skip_messages(), none->skip_messages());
  }
  options.workers = 0;
  for (const int threads : {1, 2, 3}) {
    options.threads = threads;
    const auto many = loader(data, options);
    EXPECT_EQ(epoch(*many, 0), expected[0]) << threads;
    EXPECT_EQ(many->skipped(), none->skipped());
  }
  options.seed = 100;
  EXPECT_NE(epoch(*loader(data, options), 0), expected[0]);
}

TEST(Loader, ResumesInTheMiddleOfAnEpoch) {
  const auto data = std::make_shared<Counting>(40);
  for (const int workers : {0, 3}) {
    LoaderOptions options = everything(6);
    options.workers = workers;
    const auto whole = loader(data, options);
    ASSERT_TRUE(whole->start_epoch(5).ok());
    for (int64_t first = 0; first <= whole->batches(); ++first) {
      const auto resumed = loader(data, options);
      ASSERT_TRUE(whole->start_epoch(5).ok());
      for (int64_t i = 0; i < first; ++i) ASSERT_TRUE(whole->next().ok());
      EXPECT_EQ(drain(*whole), epoch(*resumed, 5, first)) << first;
    }
    expect_failure(Result<int>(whole->start_epoch(5, 8)), Code::kInvalidArgument,
                   {"batch 8", "7 batches of 6"});
    EXPECT_FALSE(whole->start_epoch(5, -1).ok());
  }
}

TEST(Loader, EpochsMayBeLeftEarlyAndLoadersDestroyedAnyTime) {
  const auto data = std::make_shared<Counting>(200, std::set<size_t>{}, true);
  LoaderOptions options = small(4);
  options.workers = 3;
  const auto reused = loader(data, options);
  LoaderOptions plain = small(4);
  const auto expected = epoch(*loader(data, plain), 7);
  for (int taken = 0; taken < 6; ++taken) {
    ASSERT_TRUE(reused->start_epoch(static_cast<uint64_t>(taken)).ok());
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(reused->next().ok());
    const auto dropped = loader(data, options);
    if (taken % 2 == 0) {
      ASSERT_TRUE(dropped->start_epoch(0).ok());
    }
  }
  EXPECT_EQ(epoch(*reused, 7), expected);
}

TEST(Loader, PrefetchingIsBounded) {
  const auto data = std::make_shared<Counting>(1000);
  LoaderOptions options = small(10);
  options.workers = 2;
  const auto l = loader(data, options);
  ASSERT_TRUE(l->start_epoch(0).ok());
  ASSERT_TRUE(l->next().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(data->calls, 10 * (1 + 4));
}

TEST(Loader, FirstBadImageByPositionIsReported) {
  LoaderOptions options = small(5);
  options.shuffle = false;
  for (const int workers : {0, 1, 4}) {
    options.workers = workers;
    // A worker that starts with 15 fails long before the one that gets to 14.
    const auto l = loader(std::make_shared<Counting>(40, std::set<size_t>{14, 15, 17}, true), options);
    ASSERT_TRUE(l->start_epoch(0).ok());
    EXPECT_TRUE(l->next().ok());
    EXPECT_TRUE(l->next().ok());
    expect_failure(l->next(), Code::kCorrupt, {"image14: damaged"});
    expect_failure(l->next(), Code::kCorrupt, {"image14: damaged"});
    EXPECT_TRUE(l->start_epoch(0, 4).ok());
    EXPECT_EQ(drain(*l).size(), 4u * 5 * 17);
  }
}

TEST(Loader, SkippedImagesAreReplacedByTheNextGoodOne) {
  LoaderOptions options = small(5);
  options.shuffle = false;
  options.on_bad_image = OnBadImage::kSkip;
  const auto l = loader(std::make_shared<Counting>(10, std::set<size_t>{2, 3, 9}), options);
  EXPECT_EQ(indices(*l, 0), (std::vector<int>{0, 1, 4, 4, 4, 5, 6, 7, 8, 0}));
  EXPECT_EQ(indices(*l, 1).size(), 10u);
  EXPECT_EQ(l->skipped(), 3u) << "each once, although seen in two epochs";
  EXPECT_EQ(l->skip_messages(),
            (std::vector<std::string>{"image2: damaged", "image3: damaged", "image9: damaged"}));
}

TEST(Loader, NothingButBadImagesIsAnError) {
  std::set<size_t> bad;
  for (size_t i = 0; i < 500; ++i) bad.insert(i);
  LoaderOptions options = small(5);
  options.on_bad_image = OnBadImage::kSkip;
  const auto data = std::make_shared<Counting>(500, bad);
  const auto l = loader(data, options);
  ASSERT_TRUE(l->start_epoch(0).ok());
  expect_failure(l->next(), Code::kCorrupt, {"100 images in a row", "damaged"});
  EXPECT_EQ(l->skip_messages().size(), 10u);
  EXPECT_EQ(l->skipped(), 100u);
  EXPECT_LE(data->calls, 5 * 100) << "for each image of the batch";
}

TEST(Loader, DamagedFileInTheMiddleIsNamed) {
  const Folder folder;
  for (int i = 0; i < 9; ++i) folder.write_image(fmt::format("a/{}.png", i), static_cast<uint8_t>(i));
  const std::string path = folder.write("a/4.png", "\x89PNG\r\n\x1a\n and nothing more");
  std::shared_ptr<const Dataset> data = *open_image_folder(folder.path());
  LoaderOptions options = small(2);
  options.shuffle = false;
  options.workers = 2;
  const auto strict = loader(data, options);
  ASSERT_TRUE(strict->start_epoch(0).ok());
  EXPECT_TRUE(strict->next().ok());
  EXPECT_TRUE(strict->next().ok());
  expect_failure(strict->next(), Code::kCorrupt, {path});
  options.on_bad_image = OnBadImage::kSkip;
  const auto lenient = loader(data, options);
  EXPECT_EQ(epoch(*lenient, 0).size(), 9u * 17);
  EXPECT_EQ(lenient->skipped(), 1u);
}

TEST(Loader, MixupBlendsPixelsAndTargetsAlike) {
  LoaderOptions options = small(5);
  options.mixup = 0.3;
  const auto data = std::make_shared<Counting>(50);
  const auto mixed = loader(data, options);
  options.mixup = 0;
  const auto plain = loader(data, options);
  double sum = 0, extreme = 0;
  int batches = 0;
  for (uint64_t e = 0; e < 40; ++e) {
    ASSERT_TRUE(mixed->start_epoch(e).ok() && plain->start_epoch(e).ok());
    for (;;) {
      const Batch a = *mixed->next(), b = *plain->next();
      if (a.size == 0) break;
      ASSERT_EQ(a.targets.type().to_string(), "f32[5,7]");
      const auto x = a.images.data<float>(), y = b.images.data<float>(), t = a.targets.data<float>();
      // The share, from the first pixel of the first pair.
      const double share = (x[0] - y[64]) / (y[0] - y[64]);
      for (size_t i = 0; i < 5; ++i) {
        std::vector<double> target(7);
        target[static_cast<size_t>(b.labels.data<int64_t>()[i])] += share;
        target[static_cast<size_t>(b.labels.data<int64_t>()[4 - i])] += 1 - share;
        for (size_t c = 0; c < 7; ++c) ASSERT_NEAR(t[7 * i + c], target[c], 1e-3);
        for (size_t p = 0; p < 16; ++p) {
          ASSERT_NEAR(x[16 * i + p], share * y[16 * i + p] + (1 - share) * y[16 * (4 - i) + p], 0.1);
        }
      }
      sum += share;
      extreme += share < 0.1 || share > 0.9;
      ++batches;
    }
  }
  EXPECT_NEAR(sum / batches, 0.5, 0.06);
  EXPECT_NEAR(extreme / batches, 0.565, 0.08) << "of Beta(0.3, 0.3)";
}

// One image over and over: every position of every epoch draws for itself.
TEST(Loader, EachPositionAndEpochHasItsOwnDraws) {
  Tensor image = *Tensor::zeros({DType::kU8, Shape{200, 4, 4}});
  std::fill(image.data<uint8_t>().begin(), image.data<uint8_t>().end(), uint8_t{100});
  std::shared_ptr<const Dataset> data =
      *open_arrays(image, *Tensor::zeros({DType::kI64, Shape{200}}), "same");
  LoaderOptions options = small(10);
  options.shuffle = false;
  options.augmentation.brightness = 0.5;
  const auto l = loader(data, options);
  std::set<float> seen;
  for (uint64_t e = 0; e < 3; ++e) {
    ASSERT_TRUE(l->start_epoch(e).ok());
    for (Batch batch = *l->next(); batch.size > 0; batch = *l->next()) {
      for (size_t i = 0; i < 10; ++i) seen.insert(batch.images.data<float>()[16 * i]);
    }
  }
  EXPECT_GT(seen.size(), 595u);
}

TEST(Loader, EvaluationIsNotRandom) {
  LoaderOptions options = everything(5);
  options.mixup = 0;
  options.augment = false;
  options.shuffle = false;
  const auto l = loader(std::make_shared<Counting>(12), options);
  EXPECT_EQ(epoch(*l, 0), epoch(*l, 1));
}

TEST(Loader, OptionsThatMakeNoSenseAreRefused) {
  const auto data = std::make_shared<Counting>(5);
  const auto refused = [&](auto change, const std::string& word) {
    LoaderOptions options = small(4);
    change(options);
    expect_failure(Loader::make(data, options), Code::kInvalidArgument, {word});
  };
  refused([](auto& o) { o.batch = 0; }, "batch of 0");
  refused([](auto& o) { o.workers = -2; }, "-2 loader threads");
  refused([](auto& o) { o.mixup = -1; }, "mixup");
  refused([](auto& o) { o.input.height = 0; }, "height");
  refused([](auto& o) { o.batch = 6, o.drop_last = true; }, "5 images");
}

}  // namespace
}  // namespace limber
