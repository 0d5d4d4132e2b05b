#include "data/subset.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace limber
