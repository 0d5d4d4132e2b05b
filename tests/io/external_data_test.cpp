#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/io/run_graph.h"

namespace limber {
namespace {

namespace fs = std::filesystem;
using test::ModelBuilder;

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("external_" + std::to_string(getpid()));
    fs::create_directories(folder_ / "model");
    std::ofstream(folder_ / "model" / "w.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(kData), sizeof(kData));
    std::ofstream(folder_ / "secret.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(kData), sizeof(kData));
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A model that returns x + w, with w of four floats at the given place.
  Result<Model> load(const std::string& location, const std::string& offset, const std::string& length) {
    ModelBuilder b;
    b.input("x", {4}).output("y");
    auto* w = b.tensor("w", onnx::TensorProto::FLOAT, {4});
    w->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair("location", location), {"offset", offset}, {"length", length}}) {
      if (value.empty()) continue;
      auto* entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    b.node("Add", {"x", "w"}, {"y"});
    const std::string path = (folder_ / "model" / "m.onnx").string();
    std::ofstream(path, std::ios::binary) << b.bytes();
    return import_onnx(path);
  }

  static constexpr float kData[] = {9, 9, 1, 2, 3, 4, 9, 9};
  fs::path folder_;
};

TEST_F(ExternalData, IsMappedNotCopied) {
  const auto model = load("w.bin", "8", "16");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto w = model->params->get("w");
  ASSERT_TRUE(w.ok());
  EXPECT_FALSE(w->buffer()->owned());
  EXPECT_EQ(w->data<float>()[3], 4);
}

TEST_F(ExternalData, IsCopiedWhereItIsNotAligned) {
  const auto model = load("w.bin", "7", "16");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(model->params->get("w")->buffer()->owned());
}

TEST_F(ExternalData, OutsideTheFileIsRefused) {
  for (const char* offset : {"20", "18446744073709551615", "-1", "x", "9223372036854775807"}) {
    const auto model = load("w.bin", offset, "16");
    ASSERT_FALSE(model.ok()) << offset;
    EXPECT_EQ(model.status().code(), Code::kCorrupt) << model.status().message();
  }
  EXPECT_FALSE(load("w.bin", "0", "12").ok());
}

TEST_F(ExternalData, OutsideTheFolderIsRefused) {
  fs::create_symlink(folder_ / "secret.bin", folder_ / "model" / "link.bin");
  for (const std::string& location :
       {std::string("../secret.bin"), (folder_ / "secret.bin").string(), std::string("a/../../secret.bin"),
        std::string("link.bin"), std::string("")}) {
    const auto model = load(location, "0", "16");
    ASSERT_FALSE(model.ok()) << location;
    EXPECT_NE(model.status().message().find("'w'"), std::string::npos) << model.status().message();
  }
  EXPECT_EQ(load("missing.bin", "0", "16").status().code(), Code::kNotFound);
}

TEST_F(ExternalData, IsRefusedInBytes) {
  ModelBuilder b;
  b.input("x", {4}).output("y");
  auto* w = b.tensor("w", onnx::TensorProto::FLOAT, {4});
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = w->add_external_data();
  entry->set_key("location");
  entry->set_value("w.bin");
  b.node("Add", {"x", "w"}, {"y"});
  EXPECT_EQ(b.import().status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace limber
