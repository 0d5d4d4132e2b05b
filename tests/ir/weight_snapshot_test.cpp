#include <gtest/gtest.h>

#include "ir/parameters.h"

namespace limber {
namespace {

Tensor row_of(std::initializer_list<float> values) {
  return Tensor::from<float>(values, Shape{Dim(static_cast<int64_t>(values.size()))});
}

std::vector<float> read_back(const WeightSnapshot& snapshot, std::string_view name) {
  const Tensor tensor = *snapshot.weights().get(name);
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}

const void* address_of(const Parameters& params, std::string_view name) { return params.get(name)->raw(); }

void write_first(Parameters& params, const std::string& name, float value) {
  Tensor tensor = *params.writable(name);
  tensor.data<float>()[0] = value;
  params.mark_changed(std::span(&name, 1));
}

class Snapshots : public testing::Test {
 protected:
  void SetUp() override {
    params_.set("w", row_of({1, 2, 3}));
    params_.set("b", row_of({4}));
  }

  WeightSnapshot snapshot() { return *params_.snapshot(); }

  Parameters params_;
};

TEST_F(Snapshots, CopyNothingThatNobodyWrites) {
  const WeightSnapshot one = snapshot(), two = snapshot();
  EXPECT_EQ(address_of(one.weights(), "w"), address_of(params_, "w"));
  EXPECT_EQ(address_of(one.weights(), "w"), address_of(two.weights(), "w"));
  EXPECT_GT(two.version(), one.version());
}

TEST_F(Snapshots, DoNotSeeWhatIsWrittenLater) {
  const WeightSnapshot before = snapshot();
  write_first(params_, "w", 9);
  const WeightSnapshot after = snapshot();
  write_first(params_, "w", 11);  // the memory it was written to is still the working set's
  EXPECT_EQ(read_back(before, "w"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(read_back(after, "w"), (std::vector<float>{9, 2, 3}));
  EXPECT_EQ(read_back(snapshot(), "w"), (std::vector<float>{11, 2, 3}));
}

TEST_F(Snapshots, AWriterKeepsItsMemoryWhileOthersArePublished) {
  Tensor held = *params_.writable("w");
  const WeightSnapshot one = snapshot();
  EXPECT_EQ(params_.writable("w")->raw(), held.raw());
  EXPECT_NE(address_of(one.weights(), "w"), held.raw());
  held.data<float>()[0] = 5;
  EXPECT_EQ(read_back(one, "w"), (std::vector<float>{1, 2, 3}));
}

TEST_F(Snapshots, ShareWhatDidNotChange) {
  write_first(params_, "w", 7);
  write_first(params_, "b", 8);
  const WeightSnapshot one = snapshot();
  write_first(params_, "w", 9);
  const WeightSnapshot two = snapshot();
  EXPECT_EQ(address_of(one.weights(), "b"), address_of(two.weights(), "b"));
  EXPECT_NE(address_of(one.weights(), "w"), address_of(two.weights(), "w"));
  const std::vector<std::string> names = {"b", "w"};
  EXPECT_EQ(one.weights().versions(names)[0], two.weights().versions(names)[0]);
  EXPECT_LT(one.weights().versions(names)[1], two.weights().versions(names)[1]);
}

TEST_F(Snapshots, HoldWhatWasAskedFor) {
  const std::vector<std::string> names = {"b"}, unknown = {"b", "velocity"};
  const auto some = params_.snapshot(names);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->weights().names(), names);
  EXPECT_EQ(params_.snapshot(unknown).status().code(), Code::kNotFound);
}

TEST_F(Snapshots, UnpackWhatIsPacked) {
  auto buffer = *Buffer::allocate(3 * sizeof(float));
  int unpacked = 0;
  auto* packed = reinterpret_cast<float*>(buffer->data());
  std::fill_n(packed, 3, 5.F);
  const auto unpack = [&](const Buffer& from, Tensor& to) -> Status {
    ++unpacked;
    std::memcpy(to.raw(), from.data(), to.bytes());
    return {};
  };
  ASSERT_TRUE(params_.hold_packed("w", {"key", buffer, unpack}).ok());
  const WeightSnapshot one = snapshot(), two = snapshot();
  EXPECT_EQ(unpacked, 1);
  packed[0] = 6;
  params_.mark_changed(std::vector<std::string>{"w"});
  const WeightSnapshot three = snapshot();
  EXPECT_EQ(unpacked, 2);
  EXPECT_EQ(read_back(two, "w"), (std::vector<float>{5, 5, 5}));
  EXPECT_EQ(read_back(three, "w"), (std::vector<float>{6, 5, 5}));
  EXPECT_NE(params_.find_packed("w", "key"), nullptr);  // the training goes on with it
  // The plain form that snapshots hold is not what a writer gets.
  params_.writable("w")->data<float>()[0] = 100;
  EXPECT_EQ(read_back(three, "w"), (std::vector<float>{6, 5, 5}));
}

TEST_F(Snapshots, StartAWorkingSetWithoutCopies) {
  const WeightSnapshot origin = snapshot();
  Parameters one(origin), two(origin);
  EXPECT_EQ(address_of(one, "w"), address_of(origin.weights(), "w"));
  write_first(one, "w", 20);
  write_first(two, "w", 30);
  EXPECT_EQ(read_back(origin, "w"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(read_back(*one.snapshot(), "w"), (std::vector<float>{20, 2, 3}));
  EXPECT_EQ(read_back(*two.snapshot(), "w"), (std::vector<float>{30, 2, 3}));
  const std::vector<std::string> names = {"b", "w"};
  EXPECT_EQ(one.versions(names)[0], two.versions(names)[0]);  // the same value
  EXPECT_NE(one.versions(names)[1], two.versions(names)[1]);  // whoever made it, its version is its own
}

TEST_F(Snapshots, GoWithTheirLastReader) {
  write_first(params_, "w", 1);
  std::weak_ptr<Buffer> old;
  {
    PublishedWeights published(snapshot());
    const WeightSnapshot reader = published.current();
    old = reader.weights().get("w")->buffer();
    write_first(params_, "w", 2);
    published.publish(snapshot());
    EXPECT_FALSE(old.expired());  // the reader has it
    EXPECT_EQ(read_back(reader, "w"), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(read_back(published.current(), "w"), (std::vector<float>{2, 2, 3}));
    EXPECT_EQ(published.version(), published.current().version());
    EXPECT_GT(published.version(), reader.version());
  }
  EXPECT_TRUE(old.expired());
}

TEST_F(Snapshots, ShareDerivedWeightsAmongThemselvesOnly) {
  const WeightSnapshot one = snapshot(), two = snapshot();
  const Parameters next(two);
  EXPECT_EQ(&one.weights().derived(), &two.weights().derived());
  EXPECT_NE(&one.weights().derived(), &params_.derived());
  EXPECT_NE(&one.weights().derived(), &next.derived());
}

TEST(DerivedWeights, AreFoundUnderKeyAndStampWhileSomebodyHoldsThem) {
  DerivedWeights derived;
  auto first = *Buffer::allocate(4), second = *Buffer::allocate(4);
  derived.keep("packed w", 1, first);
  derived.keep("packed w", 2, second);
  EXPECT_EQ(derived.find("packed w", 1), first);
  EXPECT_EQ(derived.find("packed w", 2), second);
  EXPECT_EQ(derived.find("packed w", 3), nullptr);
  EXPECT_EQ(derived.find("folded w", 1), nullptr);
  first = nullptr;
  EXPECT_EQ(derived.find("packed w", 1), nullptr);
  EXPECT_EQ(derived.alive(), 1u);
}

TEST(DerivedWeights, TheTableIsBoundedByWhatLives) {
  DerivedWeights derived;
  std::vector<std::shared_ptr<Buffer>> held;
  for (uint64_t i = 0; i < 100; ++i) {
    held.push_back(*Buffer::allocate(4));
    derived.keep("held", i, held.back());
  }
  for (uint64_t i = 0; i < 10'000; ++i) derived.keep("gone", i, *Buffer::allocate(4));
  EXPECT_EQ(derived.alive(), 100u);
  EXPECT_LE(derived.size(), 400u);
}

TEST(DerivedWeights, AStampSaysWhichVersions) {
  const std::vector<uint64_t> a = {1, 2}, b = {2, 1}, c = {1, 2, 3};
  EXPECT_EQ(DerivedWeights::stamp(a), DerivedWeights::stamp(std::vector<uint64_t>{1, 2}));
  EXPECT_NE(DerivedWeights::stamp(a), DerivedWeights::stamp(b));
  EXPECT_NE(DerivedWeights::stamp(a), DerivedWeights::stamp(c));
}

}  // namespace
}  // namespace limber
