#include "data/subset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/synthetic.h"

namespace limber {
namespace {

std::shared_ptr<const Dataset> shapes(size_t count) { return *open_synthetic({.count = count}); }

TEST(Subset, HasTheImagesAskedFor) {
  const auto whole = shapes(20);
  const auto part = make_subset(whole, {3, 17, 3});
  ASSERT_TRUE(part.ok()) << part.status().message();
  EXPECT_EQ((*part)->size(), 3u);
  EXPECT_EQ((*part)->class_names(), whole->class_names());
  EXPECT_EQ((*part)->label(1), whole->label(17));
  EXPECT_EQ((*part)->name(2), whole->name(3));
  EXPECT_EQ((*part)->get(0)->label, whole->get(3)->label);
}

TEST(Subset, HoldsOutEachImageOnceAndTheSameForASeed) {
  const auto whole = shapes(50);
  const auto split = hold_out(whole, 12, 4), same = hold_out(whole, 12, 4), other = hold_out(whole, 12, 5);
  ASSERT_TRUE(split.ok() && same.ok() && other.ok());
  std::set<std::string> names;
  for (const auto& part : {split->held, split->rest}) {
    for (size_t i = 0; i < part->size(); ++i) names.insert(part->name(i));
  }
  EXPECT_EQ(split->held->size(), 12u);
  EXPECT_EQ(names.size(), 50u);
  bool differs = false;
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(split->held->name(i), same->held->name(i));
    differs |= split->held->name(i) != other->held->name(i);
  }
  EXPECT_TRUE(differs);
}

TEST(Subset, RefusesWhatIsNotThere) {
  const auto whole = shapes(5);
  EXPECT_FALSE(make_subset(whole, {}).ok());
  EXPECT_FALSE(make_subset(whole, {5}).ok());
  EXPECT_FALSE(hold_out(whole, 0, 1).ok());
  EXPECT_FALSE(hold_out(whole, 5, 1).ok());
}

// Names and labels alone.
class Named : public Dataset {
 public:
  explicit Named(std::vector<std::pair<std::string, int64_t>> images, size_t classes)
      : Dataset(ClassNames(classes, "c")), images_(std::move(images)) {}
  size_t size() const override { return images_.size(); }
  Result<Sample> get(size_t index) const override { return invalid("{} has no pixels", name(index)); }
  int64_t label(size_t index) const override { return images_[index].second; }
  std::string name(size_t index) const override { return images_[index].first; }

 private:
  std::vector<std::pair<std::string, int64_t>> images_;
};

using Images = std::vector<std::pair<std::string, int64_t>>;

Images some_images(const std::string& root, const std::vector<int>& per_class) {
  Images images;
  for (size_t c = 0; c < per_class.size(); ++c) {
    for (int i = 0; i < per_class[c]; ++i)
      images.emplace_back(fmt::format("{}/{}/{:03}.jpg", root, c, i), static_cast<int64_t>(c));
  }
  return images;
}

std::set<std::string> names_of(const Dataset& data, size_t skip) {
  std::set<std::string> names;
  for (size_t i = 0; i < data.size(); ++i) names.insert(data.name(i).substr(skip));
  return names;
}

TEST(HoldOutPerClass, TakesItsShareOfEachClass) {
  const auto whole = std::make_shared<Named>(some_images("/d", {100, 40, 10, 4, 1}), 5);
  const auto split = hold_out_per_class(whole, 0.2, 1);
  ASSERT_TRUE(split.ok()) << split.status().message();
  std::vector<int> held(5), rest(5);
  for (size_t i = 0; i < split->held->size(); ++i) ++held[static_cast<size_t>(split->held->label(i))];
  for (size_t i = 0; i < split->rest->size(); ++i) ++rest[static_cast<size_t>(split->rest->label(i))];
  EXPECT_EQ(held, (std::vector<int>{20, 8, 2, 1, 0}));
  EXPECT_EQ(rest, (std::vector<int>{80, 32, 8, 3, 1}));
}

TEST(HoldOutPerClass, DependsOnTheSeedAndTheNamesOnly) {
  Images images = some_images("/one", {50, 50});
  const auto first = hold_out_per_class(std::make_shared<Named>(images, 2), 0.2, 7);
  std::reverse(images.begin(), images.end());
  const auto turned = hold_out_per_class(std::make_shared<Named>(images, 2), 0.2, 7);
  const auto moved = hold_out_per_class(std::make_shared<Named>(some_images("/two", {50, 50}), 2), 0.2, 7);
  const auto other = hold_out_per_class(std::make_shared<Named>(images, 2), 0.2, 8);
  ASSERT_TRUE(first.ok() && turned.ok() && moved.ok() && other.ok());
  EXPECT_EQ(names_of(*first->held, 0), names_of(*turned->held, 0));
  EXPECT_EQ(names_of(*first->held, 4), names_of(*moved->held, 4));
  EXPECT_NE(names_of(*first->held, 0), names_of(*other->held, 0));
  // A new image moves at most one other of its class.
  images.emplace_back("/one/0/999.jpg", 0);
  const auto grown = hold_out_per_class(std::make_shared<Named>(images, 2), 0.2, 7);
  size_t common = 0;
  for (const std::string& name : names_of(*grown->held, 0)) common += names_of(*first->held, 0).count(name);
  EXPECT_GE(common, 19u);
}

TEST(HoldOutPerClass, FewImagesAndNonsense) {
  const auto pairs = hold_out_per_class(std::make_shared<Named>(some_images("/d", {2, 3, 1}), 3), 0.1, 0);
  ASSERT_TRUE(pairs.ok()) << pairs.status().message();
  EXPECT_EQ(pairs->held->size(), 2u) << "one of each class that has two";
  const auto single = std::make_shared<Named>(some_images("/d", {1, 1}), 2);
  EXPECT_EQ(hold_out_per_class(single, 0.5, 0).status().code(), Code::kInvalidArgument);
  for (const double share : {0.0, 1.0, -1.0, std::nan("")})
    EXPECT_EQ(hold_out_per_class(shapes(20), share, 0).status().code(), Code::kInvalidArgument) << share;
}

}  // namespace
}  // namespace limber
