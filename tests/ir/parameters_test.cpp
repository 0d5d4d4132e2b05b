#include "ir/parameters.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

Tensor numbers(std::initializer_list<float> values) {
  return Tensor::from<float>(values, Shape{Dim(static_cast<int64_t>(values.size()))});
}

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}

// Backwards, behind one number of padding. Counts how often it is unpacked.
PackedTensor backwards(const Tensor& plain, int* unpacked) {
  const auto n = static_cast<size_t>(plain.elements());
  auto buffer = *Buffer::allocate((n + 1) * sizeof(float));
  auto* packed = reinterpret_cast<float*>(buffer->data());
  packed[0] = 0;
  std::reverse_copy(plain.data<float>().begin(), plain.data<float>().end(), packed + 1);
  return {"backwards", buffer, [unpacked](const Buffer& from, Tensor& to) -> Status {
            ++*unpacked;
            const auto* first = reinterpret_cast<const float*>(from.data()) + 1;
            std::reverse_copy(first, first + to.elements(), to.data<float>().begin());
            return {};
          }};
}

class PackedParameter : public testing::Test {
 protected:
  void SetUp() override {
    params_.set("w", numbers({1, 2, 3}));
    ASSERT_TRUE(params_.hold_packed("w", backwards(numbers({1, 2, 3}), &unpacked_)).ok());
  }

  float* packed() { return reinterpret_cast<float*>(params_.find_packed("w", "backwards")->data()) + 1; }

  const std::vector<std::string> names_ = {"w"};
  Parameters params_;
  int unpacked_ = 0;
};

TEST_F(PackedParameter, LooksLikeAPlainOne) {
  EXPECT_EQ(values_of(*params_.get("w")), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(params_.type("w")->to_string(), "f32[3]");
  EXPECT_EQ(params_.bytes(), 12u);
  EXPECT_EQ(params_.names(), names_);
  EXPECT_FALSE(params_.type("v").ok());
  EXPECT_FALSE(params_.hold_packed("v", {}).ok());
}

TEST_F(PackedParameter, ThePlainFormLivesAsLongAsItIsUsed) {
  {
    const Tensor one = *params_.get("w"), two = *params_.get("w");
    EXPECT_EQ(one.raw(), two.raw());
    EXPECT_EQ(unpacked_, 1);
  }
  EXPECT_EQ(values_of(*params_.get("w")), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(unpacked_, 2);
}

TEST_F(PackedParameter, AChangeIsSeenAndOldTensorsStay) {
  const Tensor before = *params_.get("w");
  packed()[0] = 7;
  const uint64_t version = params_.versions(names_)[0];
  params_.mark_changed(names_);
  EXPECT_GT(params_.versions(names_)[0], version);
  EXPECT_EQ(values_of(*params_.get("w")), (std::vector<float>{1, 2, 7}));
  EXPECT_EQ(values_of(before), (std::vector<float>{1, 2, 3}));
}

TEST_F(PackedParameter, WhoeverWritesGetsItPlain) {
  const uint64_t state = params_.state(), of_value = params_.versions(names_)[0];
  Tensor tensor = *params_.writable("w");
  EXPECT_EQ(params_.find_packed("w", "backwards"), nullptr);
  EXPECT_GT(params_.state(), state);  // whoever holds the packed form learns of it
  EXPECT_EQ(params_.versions(names_)[0], of_value);
  tensor.data<float>()[1] = 5;
  params_.mark_changed(names_);
  EXPECT_EQ(values_of(*params_.get("w")), (std::vector<float>{1, 5, 3}));
}

TEST_F(PackedParameter, SetReplacesIt) {
  params_.set("w", numbers({4, 5}));
  EXPECT_EQ(params_.find_packed("w", "backwards"), nullptr);
  EXPECT_EQ(values_of(*params_.get("w")), (std::vector<float>{4, 5}));
}

TEST_F(PackedParameter, IsFoundUnderItsKeyOnly) {
  EXPECT_NE(params_.find_packed("w", "backwards"), nullptr);
  EXPECT_EQ(params_.find_packed("w", "sideways"), nullptr);
  EXPECT_EQ(params_.find_packed("v", "backwards"), nullptr);
}

TEST_F(PackedParameter, AFailureToUnpackIsPassedOn) {
  PackedTensor broken = backwards(numbers({1, 2, 3}), &unpacked_);
  broken.unpack = [](const Buffer&, Tensor&) -> Status { return error(Code::kResourceExhausted, "full"); };
  ASSERT_TRUE(params_.hold_packed("w", std::move(broken)).ok());
  EXPECT_EQ(params_.get("w").status().message(), "full");
  EXPECT_EQ(params_.writable("w").status().message(), "full");
}

}  // namespace
}  // namespace limber
