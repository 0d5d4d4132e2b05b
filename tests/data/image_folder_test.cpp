#include <gtest/gtest.h>

#include "data/dataset.h"
#include "tests/data/files.h"

namespace limber {
namespace {

TEST(ImageFolder, ClassesAndImagesAreInOrder) {
  const Folder folder;
  folder.write_image("dog/b.png", 2);
  folder.write_image("dog/a.PNG", 1);
  folder.write_image("cat/z.png", 3);
  folder.write("cat/readme.txt", "not an image");
  folder.write_image(".hidden/x.png", 9);
  folder.write("notes.txt", "x");
  const auto data = open_image_folder(folder.path());
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ((*data)->class_names(), (ClassNames{"cat", "dog"}));
  ASSERT_EQ((*data)->size(), 3u);
  const uint8_t values[] = {3, 1, 2};
  const int64_t labels[] = {0, 1, 1};
  for (size_t i = 0; i < 3; ++i) {
    const auto sample = (*data)->get(i);
    ASSERT_TRUE(sample.ok());
    EXPECT_EQ(sample->image.type().to_string(), "u8[4,4,3]");
    EXPECT_EQ(sample->image.data<uint8_t>()[0], values[i]);
    EXPECT_EQ(sample->label, labels[i]);
    EXPECT_EQ((*data)->label(i), labels[i]);
  }
  EXPECT_EQ((*data)->name(1), folder / "dog/a.PNG");
}

TEST(ImageFolder, NumbersAreOrderedAsNumbers) {
  const Folder folder;
  for (const char* name : {"10", "2", "1"}) folder.write_image(std::string(name) + "/a.png", 0);
  EXPECT_EQ((*open_image_folder(folder.path()))->class_names(), (ClassNames{"1", "2", "10"}));
  folder.write_image("x/a.png", 0);
  EXPECT_EQ((*open_image_folder(folder.path()))->class_names(), (ClassNames{"1", "10", "2", "x"}));
}

TEST(ImageFolder, ExpectedClassesGiveTheLabels) {
  const Folder folder;
  folder.write_image("a/1.png", 1);
  folder.write_image("b/1.png", 2);
  const auto data = open_image_folder(folder.path(), {"b", "a"});
  ASSERT_TRUE(data.ok());
  EXPECT_EQ((*data)->get(0)->image.data<uint8_t>()[0], 2);
  EXPECT_EQ((*data)->label(0), 0);
  expect_failure(open_image_folder(folder.path(), {"a", "b", "c"}), Code::kNotFound,
                 {folder.path(), "no folder for class 'c'"});
  expect_failure(open_image_folder(folder.path(), {"a"}), Code::kInvalidArgument, {"'b'", "1 classes"});
}

TEST(ImageFolder, WhatIsMissingIsSaid) {
  const Folder folder;
  expect_failure(open_image_folder(folder / "nowhere"), Code::kNotFound, {"nowhere"});
  expect_failure(open_image_folder(folder.write("file", "x")), Code::kIo, {"file", "cannot list"});
  expect_failure(open_image_folder(folder.path()), Code::kNotFound, {"no class folders"});
  folder.write_image("loose.png", 1);
  expect_failure(open_image_folder(folder.path()), Code::kNotFound, {"1 images but no class folders"});
  folder.write_image("full/a.png", 1);
  folder.make("empty");
  expect_failure(open_image_folder(folder.path()), Code::kNotFound, {folder / "empty", "remove it"});
  folder.make("empty/inner");
  expect_failure(open_image_folder(folder.path()), Code::kNotFound, {"holds folders ('inner')"});
}

// Root may read every folder: as long as this lives, root is nobody.
class NotRoot {
 public:
  NotRoot() { EXPECT_EQ(was_root_ ? seteuid(65534) : 0, 0); }
  ~NotRoot() { EXPECT_EQ(was_root_ ? seteuid(0) : 0, 0); }

 private:
  const bool was_root_ = geteuid() == 0;
};

TEST(ImageFolder, UnreadableFolderIsAnError) {
  const Folder folder;
  folder.write_image("a/1.png", 1);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(folder / "a", std::filesystem::perms::none);
  {
    const NotRoot user;
    expect_failure(open_image_folder(folder.path()), Code::kIo, {folder / "a"});
  }
  std::filesystem::permissions(folder / "a", std::filesystem::perms::owner_all);
}

TEST(ImageFolder, DamagedImageNamesItsFile) {
  const Folder folder;
  folder.write_image("a/1.png", 1);
  const std::string path = folder.write("a/2.jpg", "\xff\xd8\xff but no more");
  std::filesystem::create_symlink("/nowhere/at/all.png", folder / "a/3.png");
  const auto data = open_image_folder(folder.path());
  ASSERT_TRUE(data.ok());
  ASSERT_EQ((*data)->size(), 2u) << "a broken link is not an image";
  EXPECT_TRUE((*data)->get(0).ok());
  expect_failure((*data)->get(1), Code::kCorrupt, {path});
}

}  // namespace
}  // namespace limber
