#include "io/wire.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/io/run_graph.h"

namespace limber {
namespace {

using onnx_io::split_model;
using test::ModelBuilder;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// x + w with w[100,100], and a small tensor that nobody reads.
ModelBuilder large_model() {
  ModelBuilder b;
  b.input("x", {100, 100}).output("y");
  b.floats("small", {2}, {1, 2});
  std::vector<float> values(10'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  b.floats("w", {100, 100}, values);
  b.node("Add", {"x", "w"}, {"y"});
  return b;
}

TEST(Wire, TakesOutLargeTensorsOnly) {
  ModelBuilder b = large_model();
  const std::string bytes = b.bytes();
  const auto split = split_model(bytes_of(bytes), 1000);
  ASSERT_TRUE(split);
  ASSERT_EQ(split->raw.size(), 2u);
  EXPECT_TRUE(split->raw[0].empty());
  EXPECT_EQ(split->raw[1].size(), 40'000u);
  EXPECT_LT(split->rest.size(), bytes.size() - 39'000);
  onnx::ModelProto rest;
  ASSERT_TRUE(rest.ParseFromString(split->rest));
  rest.mutable_graph()->mutable_initializer(1)->set_raw_data(split->raw[1].data(), split->raw[1].size());
  EXPECT_EQ(rest.SerializeAsString(), b.model.SerializeAsString());
}

TEST(Wire, LeavesAloneWhatIsNoMessage) {
  const std::string bytes = large_model().bytes();
  for (size_t size : {bytes.size() - 1, bytes.size() / 2}) {
    EXPECT_FALSE(split_model(bytes_of(bytes.substr(0, size)), 1000)) << size;
  }
  EXPECT_FALSE(split_model(bytes_of(std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11)), 1));
  EXPECT_FALSE(split_model(bytes_of(std::string("\x0b\x0c", 2)), 1));  // a group
  EXPECT_FALSE(split_model(bytes_of(std::string("\x00\x00", 2)), 1));  // field 0
  EXPECT_FALSE(split_model(bytes_of(std::string(1, '\x08')), 1));      // no value
}

TEST(Wire, LeavesAloneRawDataThatComesTwice) {
  const std::string tensor(
      "\x4a\x01"
      "a"
      "\x4a\x01"
      "b",
      6),
      graph = "\x2a\x06" + tensor;
  EXPECT_FALSE(split_model(bytes_of("\x3a\x08" + graph), 1));
  EXPECT_FALSE(split_model(bytes_of("\x3a\x08" + graph), 100));
}

TEST(Wire, MappedTensorsAreCopiedWhileTheyAreUsed) {
  const std::string path = ::testing::TempDir() + "/wire_test.onnx";
  // Some name makes the offset odd.
  for (const char* name : {"g", "gg", "ggg", "gggg"}) {
    ModelBuilder b = large_model();
    b.model.set_producer_name(name);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << b.bytes();
    const auto model = import_onnx(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto w = model->params->get("w"), again = model->params->get("w");
    ASSERT_TRUE(w.ok() && again.ok());
    EXPECT_EQ(w->raw(), again->raw());
    EXPECT_TRUE(w->is_aligned());
    EXPECT_EQ(w->data<float>()[9'999], 9'999.0f);
    const auto written = model->params->writable("w");
    ASSERT_TRUE(written.ok());
    EXPECT_TRUE(written->buffer()->owned());
    EXPECT_EQ(written->data<float>()[77], 77.0f);
    EXPECT_EQ(model->params->get("w")->raw(), written->raw());
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace limber
