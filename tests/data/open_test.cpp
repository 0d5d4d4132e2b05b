#include <gtest/gtest.h>

#include "data/dataset.h"
#include "tensor/npy.h"
#include "tests/data/files.h"

namespace limber {
namespace {

OpenOptions part(Split split, bool need = false) { return {split, need, {}}; }

std::string cifar_images(size_t count) { return std::string(3073 * count, '\0'); }
std::string idx_images(char count) {
  return std::string("\0\0\x08\x03\0\0\0", 7) + count + std::string("\0\0\0\1\0\0\0\1", 8) +
         std::string(static_cast<size_t>(count), 'x');
}
std::string idx_labels(char count) {
  return std::string("\0\0\x08\x01\0\0\0", 7) + count + std::string(static_cast<size_t>(count), '\0');
}

size_t size_of(const std::string& spec, const OpenOptions& options = {}) {
  const auto data = open_dataset(spec, options);
  EXPECT_TRUE(data.ok()) << data.status().message();
  return data.ok() ? (*data)->size() : 0;
}

TEST(OpenDataset, FoldersOfImages) {
  const Folder folder;
  folder.write_image("train/a/1.png", 1);
  folder.write_image("train/b/1.png", 1);
  folder.write_image("valid/a/1.png", 1);
  folder.write_image("valid/b/1.png", 1);
  folder.write_image("valid/b/2.png", 1);
  EXPECT_EQ(size_of(folder.path() + "/"), 2u);
  EXPECT_EQ(size_of(folder.path(), part(Split::kTest, true)), 3u);
  EXPECT_EQ(size_of(folder / "train", part(Split::kTest)), 2u) << "no parts: all of it";
  expect_failure(open_dataset(folder / "train", part(Split::kTest, true)), Code::kNotFound, {"no test part"});
}

TEST(OpenDataset, FolderOfCifar) {
  const Folder folder;
  folder.write("data_batch_1.bin", cifar_images(2));
  folder.write("data_batch_2.bin", cifar_images(1));
  expect_failure(open_dataset(folder.path(), part(Split::kTest)), Code::kNotFound, {"no test part"});
  folder.write("test_batch.bin", cifar_images(4));
  EXPECT_EQ(size_of(folder.path()), 3u);
  EXPECT_EQ(size_of(folder.path(), part(Split::kTest)), 4u);
  EXPECT_EQ(size_of(folder / "data_batch_1.bin"), 2u);
  const auto hundred = open_dataset(folder.write("x.bin", std::string(3074, '\0')));
  ASSERT_TRUE(hundred.ok());
  EXPECT_EQ((*hundred)->class_names().size(), 100u);
}

TEST(OpenDataset, IdxPairs) {
  const Folder folder;
  folder.write("train-images-idx3-ubyte", idx_images(3));
  folder.write("train-labels-idx1-ubyte", idx_labels(3));
  folder.write("t10k-images.idx", idx_images(2));
  expect_failure(open_dataset(folder / "t10k-images.idx"), Code::kNotFound, {"no labels", "IMAGES,LABELS"});
  folder.write("t10k-labels.idx", idx_labels(2));
  EXPECT_EQ(size_of(folder.path()), 3u);
  EXPECT_EQ(size_of(folder.path(), part(Split::kTest, true)), 2u);
  EXPECT_EQ(size_of(folder / "t10k-images.idx"), 2u);
  folder.write("usps-train-images.idx", idx_images(1));
  folder.write("usps-train-labels.idx", idx_labels(1));
  expect_failure(open_dataset(folder.path()), Code::kInvalidArgument, {"several data sets", "usps"});
  folder.write("odd", idx_labels(3));
  EXPECT_EQ(size_of(folder / "train-images-idx3-ubyte" + "," + (folder / "odd")), 3u);
}

TEST(OpenDataset, NpyPairsAndManifests) {
  const Folder folder;
  const auto write = [&](const std::string& x, const std::string& y, int64_t n) {
    ASSERT_TRUE(write_npy(folder / x, *Tensor::zeros({DType::kU8, Shape{n, 2, 2, 3}})).ok());
    ASSERT_TRUE(write_npy(folder / y, *Tensor::zeros({DType::kI64, Shape{n}})).ok());
  };
  write("p/images.npy", "p/labels.npy", 2);
  write("q/x_train.npy", "q/y_train.npy", 3);
  write("q/x_test.npy", "q/y_test.npy", 4);
  EXPECT_EQ(size_of(folder / "p"), 2u);
  expect_failure(open_dataset(folder / "p", part(Split::kTrain, true)), Code::kNotFound, {"no train part"});
  EXPECT_EQ(size_of(folder / "p/images.npy"), 2u);
  EXPECT_EQ(size_of(folder / "q"), 3u);
  EXPECT_EQ(size_of(folder / "q", part(Split::kTest)), 4u);
  folder.write("r/labels.csv", "a.png,1\n");
  EXPECT_EQ(size_of(folder / "r"), 1u);
  EXPECT_EQ(size_of(folder.write("any.CSV", "a.png,1\nb.png,1\n")), 2u);
}

TEST(OpenDataset, SaysWhatItLookedFor) {
  const Folder folder;
  expect_failure(
      open_dataset(folder / "nothing"), Code::kNotFound,
      {folder / "nothing", "no such file", "<class>/*.jpg", "images.npy", "data_batch_1.bin", ".csv"});
  expect_failure(open_dataset(folder.path()), Code::kNotFound,
                 {"no data set in this folder", "<class>/*.jpg"});
  expect_failure(open_dataset(folder.write_image("a.png", 1)), Code::kInvalidArgument, {"one image"});
  expect_failure(open_dataset(folder.write("a.rar", "x")), Code::kUnsupported, {"a.rar", ".csv", ".zip"});
  expect_failure(open_dataset(""), Code::kNotFound, {"no such file"});
}

// The data sets this machine has; see LIMBER_DATA.
std::string real_data(const std::string& name) {
  const char* root = std::getenv("LIMBER_DATA");
  const char* home = std::getenv("HOME");
  const std::string folder =
      root != nullptr ? root : std::string(home != nullptr ? home : "") + "/.cache/limber-data";
  return std::filesystem::exists(folder + "/" + name) ? folder + "/" + name : "";
}

TEST(OpenDataset, RealDataSets) {
  const std::string cifar = real_data("cifar10"), digits = real_data("digits"),
                    flowers = real_data("flowers102-96");
  if (cifar.empty() || digits.empty() || flowers.empty())
    GTEST_SKIP() << "the data sets are not on this machine";
  EXPECT_EQ(size_of(cifar), 50000u);
  EXPECT_EQ(size_of(cifar, part(Split::kTest, true)), 10000u);
  const auto mnist = open_dataset(digits + "/mnist-test-images.idx.gz");
  ASSERT_TRUE(mnist.ok()) << mnist.status().message();
  EXPECT_EQ((*mnist)->size(), 10000u);
  EXPECT_EQ((*mnist)->class_names().size(), 10u);
  EXPECT_EQ((*mnist)->get(9999)->image.type().to_string(), "u8[28,28,1]");
  const auto flower = open_dataset(flowers);
  ASSERT_TRUE(flower.ok()) << flower.status().message();
  EXPECT_EQ((*flower)->class_names()[101], "102");
}

}  // namespace
}  // namespace limber
