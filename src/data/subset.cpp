#include "data/subset.h"

#include <algorithm>
#include <numeric>

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

}  // namespace limber
