// From outputs to classes.
#include "jobs/scores.h"

#include <cmath>

#include "jobs/classification.h"
#include "tests/data/files.h"

namespace limber {
namespace {

std::vector<int64_t> indices(const std::vector<ClassScore>& top) {
  std::vector<int64_t> list;
  for (const ClassScore& one : top) list.push_back(one.index);
  return list;
}

TEST(Scores, OfEqualOnesTheFirstIsBest) {
  const std::vector<float> row = {1, 3, 3, 2};
  EXPECT_EQ(indices(top_of_row(row, 3, {})), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(claim_of(row).index, 1);
  EXPECT_EQ(top_of_row(row, 9, {}).size(), 4U) << "no more than there are";
}

TEST(Scores, AreProbabilitiesAlreadyOrBecomeSome) {
  const auto logits = top_of_row(std::vector<float>{0, std::log(3.F)}, 2, {"no", "yes"});
  EXPECT_NEAR(logits[0].probability, 0.75, 1e-6);
  EXPECT_NEAR(logits[1].probability, 0.25, 1e-6);
  EXPECT_EQ(logits[0].label, "yes");
  const auto shares = top_of_row(std::vector<float>{0.75F, 0.25F}, 2, {"no"});
  EXPECT_EQ(shares[0].probability, 0.75F) << "softmax twice would make them alike";
  EXPECT_EQ(shares[1].label, "class 1") << "the list of labels ends before";
  // Large scores stay finite.
  EXPECT_EQ(top_of_row(std::vector<float>{1e4F, -1e4F}, 1, {})[0].probability, 1);
  EXPECT_EQ(claim_of(std::vector<float>{1e4F, -1e4F}).confidence, 1);
}

TEST(Scores, AreOfTheFirstOutputThatHasClasses) {
  const Tensor map = *Tensor::zeros({DType::kF32, Shape{2, 3, 4, 4}});
  const Tensor one = *Tensor::zeros({DType::kF32, Shape{2, 1}});
  Tensor pooled = *Tensor::zeros({DType::kF32, Shape{2, 3, 1, 1}});
  pooled.data<float>()[2] = 1;  // of the first row
  pooled.data<float>()[4] = 1;  // of the second
  const auto rows = top_classes({{"map", map}, {"one", one}, {"pooled", pooled}}, 1, {});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0][0].index, 2);
  EXPECT_EQ(rows[1][0].index, 1);
  EXPECT_TRUE(top_classes({{"map", map}}, 1, {}).empty());
}

TEST(Labels, AreLinesHoweverTheyEnd) {
  const Folder folder;
  EXPECT_EQ(*read_labels(folder.write("dos.txt", "cat\r\nbig dog\r\n")),
            (std::vector<std::string>{"cat", "big dog"}));
  EXPECT_EQ(*read_labels(folder.write("cut.txt", "cat\ndog")), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(*read_labels(folder.write("gap.txt", "cat\n\ndog\n")),
            (std::vector<std::string>{"cat", "", "dog"}))
      << "a class without a name keeps its number";
  expect_failure(read_labels(folder / "none.txt"), Code::kNotFound, {"none.txt"});
}

}  // namespace
}  // namespace limber
