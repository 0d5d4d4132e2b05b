#include "data/subset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/random.h"

namespace limber {
namespace {

class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::vector<uint32_t> indices)
      : Dataset(whole->class_names()), whole_(std::move(whole)), indices_(std::move(indices)) {}

  size_t size() const override { return indices_.size(); }
  Result<Sample> get(size_t index) const override { return whole_->get(indices_[index]); }
  int64_t label(size_t index) const override { return whole_->label(indices_[index]); }
  std::string name(size_t index) const override { return whole_->name(indices_[index]); }

 private:
  const std::shared_ptr<const Dataset> whole_;
  const std::vector<uint32_t> indices_;
};

// The end of an image's name that stays when the data set is moved: "<class>/<file>", "train.idx[17]".
std::string_view own_name(std::string_view name) {
  const size_t file = name.rfind('/');
  if (file == std::string_view::npos || file == 0) return name;
  const size_t folder = name.rfind('/', file - 1);
  return folder == std::string_view::npos ? name : name.substr(folder + 1);
}

// The images of each class in an order that depends on the seed and each image's name alone.
std::vector<std::vector<uint32_t>> shuffled_classes(const Dataset& data, uint64_t seed) {
  std::vector<uint64_t> keys(data.size());
  std::vector<std::vector<uint32_t>> classes(data.class_names().size());
  for (size_t i = 0; i < data.size(); ++i) {
    // Random spreads the hash, whose last letters alone would hardly change the order.
    keys[i] = Random(Hasher().add(seed).add(own_name(data.name(i))).digest()).next();
    classes[static_cast<size_t>(data.label(i))].push_back(static_cast<uint32_t>(i));
  }
  for (auto& images : classes) {
    std::sort(images.begin(), images.end(),
              [&](uint32_t a, uint32_t b) { return std::pair(keys[a], a) < std::pair(keys[b], b); });
  }
  return classes;
}

size_t held_of(size_t images, double share) {
  constexpr size_t kFew = 5;  // below, an image is missed more in training than it is worth in validation
  const auto wanted = static_cast<size_t>(std::lround(static_cast<double>(images) * share));
  if (images < 2) return 0;
  return std::clamp<size_t>(wanted, images < kFew ? 0 : 1, images - 1);
}

}  // namespace

Result<std::shared_ptr<const Dataset>> make_subset(std::shared_ptr<const Dataset> whole,
                                                   std::vector<uint32_t> indices) {
  if (indices.empty()) return invalid("a part of a data set without an image");
  const uint32_t last = *std::max_element(indices.begin(), indices.end());
  if (last >= whole->size()) return invalid("image {} of a data set of {}", last, whole->size());
  return std::shared_ptr<const Dataset>(std::make_shared<Subset>(std::move(whole), std::move(indices)));
}

Result<SplitDataset> hold_out(std::shared_ptr<const Dataset> whole, size_t count, uint64_t seed) {
  if (count < 1 || count >= whole->size())
    return invalid("{} images to hold out of {}, expected 1..{}", count, whole->size(), whole->size() - 1);
  std::vector<uint32_t> order(whole->size());
  std::iota(order.begin(), order.end(), 0U);
  Random random(seed);
  for (size_t i = 0; i < count; ++i) std::swap(order[i], order[i + random.below(order.size() - i)]);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  SplitDataset split;
  LIMBER_ASSIGN(split.held, make_subset(whole, {order.begin(), middle}));
  LIMBER_ASSIGN(split.rest, make_subset(whole, {middle, order.end()}));
  return split;
}

Result<SplitDataset> hold_out_per_class(std::shared_ptr<const Dataset> whole, double share, uint64_t seed) {
  if (!(share > 0 && share < 1))
    return invalid("a share of {} to hold out, expected one between 0 and 1", share);
  const auto classes = shuffled_classes(*whole, seed);
  const auto count = [&](const auto& images) { return held_of(images.size(), share); };
  const bool few = std::all_of(classes.begin(), classes.end(), [&](const auto& c) { return count(c) == 0; });
  std::vector<uint32_t> rest, held;
  for (const auto& images : classes) {
    const size_t taken = few && images.size() > 1 ? 1 : count(images);
    const auto middle = images.begin() + static_cast<std::ptrdiff_t>(taken);
    held.insert(held.end(), images.begin(), middle);
    rest.insert(rest.end(), middle, images.end());
  }
  if (held.empty())
    return invalid("no class has two images, so none can be held out; give validation images separately");
  std::sort(rest.begin(), rest.end());
  std::sort(held.begin(), held.end());
  SplitDataset split;
  LIMBER_ASSIGN(split.held, make_subset(whole, std::move(held)));
  LIMBER_ASSIGN(split.rest, make_subset(whole, std::move(rest)));
  return split;
}

uint64_t digest_names(const Dataset& data) {
  uint64_t sum = data.size();  // of numbers that look random: no order matters
  for (size_t i = 0; i < data.size(); ++i)
    sum += Random(Hasher().add(own_name(data.name(i))).digest()).next();
  return sum;
}

}  // namespace limber
