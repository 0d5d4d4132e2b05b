#include "sched/study.h"

#include <gtest/gtest.h>

namespace limber::sched {
namespace {

// Accuracy is a plane over two features.
ApplicationProfile plane() {
  ApplicationProfile profile;
  profile.application.options = {{"whole", 1, 0, 0, {1}, 0, 0}};
  for (const double x : {-1.0, 0.0, 1.0})
    for (const double y : {-1.0, 0.0, 1.0})
      profile.domains.push_back({"", {x, y}, {0.5 + 0.2 * x}, {0.7 + 0.1 * x - 0.1 * y}});
  return profile;
}

TEST(Study, DoesNotLookHere) {
  ApplicationProfile profile = plane();
  const Expected guess = study_elsewhere(profile, 4, 0);
  profile.domains[4].before[0] = 0;
  profile.domains[4].after[0] = 1;
  EXPECT_EQ(study_elsewhere(profile, 4, 0).after, guess.after);
  profile.domains[3].after[0] = 0;
  EXPECT_LT(study_elsewhere(profile, 4, 0).after, guess.after);
}

TEST(Study, SlopesOfFeaturesGoOn) {
  const ApplicationProfile profile = plane();
  EXPECT_NEAR(study_elsewhere(profile, 4, 0).before, 0.5, 1e-9);
  const Expected corner = study_elsewhere(profile, 6, 0);  // x is 1, y is -1
  EXPECT_GT(corner.before, 0.55);
  EXPECT_GT(corner.after, 0.73);
}

TEST(Study, IsTheMeanWhereNobodyKnowsFeatures) {
  ApplicationProfile profile = plane();
  for (DomainProfile& domain : profile.domains) domain.features.clear();
  EXPECT_NEAR(study_elsewhere(profile, 0, 0).after, (9 * 0.7 - 0.7) / 8, 1e-9);
  profile.domains.resize(1);
  EXPECT_NEAR(study_elsewhere(profile, 0, 0).after, 0.7, 1e-9);  // there is nothing else
}

}  // namespace
}  // namespace limber::sched
