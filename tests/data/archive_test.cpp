#include "data/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "data/dataset.h"
#include "tests/data/files.h"

namespace limber {
namespace {

struct Entry {
  std::string path;
  std::string bytes;
};

std::string flat_png(uint8_t value, int side = 4) {
  Tensor image = *Tensor::allocate({DType::kU8, Shape{side, side, 3}});
  std::fill(image.data<uint8_t>().begin(), image.data<uint8_t>().end(), value);
  return *encode_png(image);
}

// The format goes by the name, as archive_write_set_format_filter_by_ext knows it.
std::string pack(const Folder& folder, const std::string& name, const std::vector<Entry>& entries,
                 const char* options = "") {
  const std::string path = folder / name;
  archive* out = archive_write_new();
  EXPECT_EQ(archive_write_set_format_filter_by_ext(out, path.c_str()), ARCHIVE_OK);
  EXPECT_EQ(archive_write_set_options(out, options), ARCHIVE_OK) << archive_error_string(out);
  EXPECT_EQ(archive_write_open_filename(out, path.c_str()), ARCHIVE_OK);
  for (const Entry& one : entries) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, one.path.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(one.bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    EXPECT_GE(archive_write_header(out, entry), ARCHIVE_WARN);
    archive_write_data(out, one.bytes.data(), one.bytes.size());
    archive_entry_free(entry);
  }
  archive_write_close(out);
  archive_write_free(out);
  return path;
}

const std::vector<Entry>& cats_and_dogs() {
  static const std::vector<Entry> entries{{"dog/2.png", flat_png(20)}, {"cat/1.png", flat_png(10)},
                                          {"dog/1.png", flat_png(19)}, {"__MACOSX/dog/._1.png", "junk"},
                                          {"dog/.hidden.png", "junk"}, {"README.md", "not an image"}};
  return entries;
}

std::vector<int> first_pixels(const Dataset& data) {
  std::vector<int> values;
  for (size_t i = 0; i < data.size(); ++i) {
    const auto sample = data.get(i);
    EXPECT_TRUE(sample.ok()) << sample.status().message();
    values.push_back(sample.ok() ? sample->image.data<uint8_t>()[0] : -1);
  }
  return values;
}

TEST(OpenArchive, ReadsEveryKind) {
  const Folder folder;
  const auto check = [&](const std::string& path) {
    const auto data = open_dataset(path);
    ASSERT_TRUE(data.ok()) << data.status().message();
    EXPECT_EQ((*data)->class_names(), (ClassNames{"cat", "dog"}));
    EXPECT_EQ(first_pixels(**data), (std::vector<int>{10, 19, 20})) << path;
    EXPECT_EQ(first_pixels(**data), (std::vector<int>{10, 19, 20})) << "and again";
    EXPECT_EQ((*data)->name(1), path + "/dog/1.png");
  };
  check(pack(folder, "a.tar", cats_and_dogs()));
  check(pack(folder, "a.tar.gz", cats_and_dogs()));
  check(pack(folder, "a.tgz", cats_and_dogs()));
  check(pack(folder, "a.tar.xz", cats_and_dogs()));
  check(pack(folder, "stored.zip", cats_and_dogs(), "zip:compression=store"));
  check(pack(folder, "small.zip", cats_and_dogs(), "zip:compression=deflate"));
}

// A process that never called setlocale(), as this one, is in the locale "C", which has no such letters.
TEST(OpenArchive, NamesMayHaveAnyLetters) {
  const Folder folder;
  const std::string school = "\xc3\xa9\x63ole";
  const std::vector<Entry> entries{{school + "/1.png", flat_png(10)}, {"b/1.png", flat_png(20)}};
  const auto check = [&](const std::string& path) {
    const auto data = open_dataset(path);
    ASSERT_TRUE(data.ok()) << data.status().message();
    EXPECT_EQ((*data)->class_names(), (ClassNames{"b", school})) << path;
    EXPECT_EQ(first_pixels(**data), (std::vector<int>{20, 10})) << path;
  };
  check(pack(folder, "a.tar", entries));
  // Bit 11 of a zip's flags says that the name is UTF-8, as most programs have it, but not this writer here.
  std::string bytes = *os_files().read(pack(folder, "a.zip", entries, "zip:compression=store"), 1 << 20);
  for (const auto& [mark, flags] : {std::pair("PK\x03\x04", 7U), std::pair("PK\x01\x02", 9U)}) {
    for (size_t at = 0; (at = bytes.find(mark, at)) != std::string::npos; ++at) bytes[at + flags] |= 8;
  }
  check(folder.write("utf8.zip", bytes));
}

// Where images are stored as they are they stay in the file.
TEST(ReadArchive, StoredImagesAreNotCopied) {
  const Folder folder;
  for (const std::string& path : {pack(folder, "a.tar", cats_and_dogs()),
                                  pack(folder, "a.zip", cats_and_dogs(), "zip:compression=store")}) {
    const auto first = read_archive(path);
    ASSERT_TRUE(first.ok()) << first.status().message();
    ASSERT_EQ(first->images.size(), 3u);
    const auto distance = first->images[1].bytes.data() - first->images[0].bytes.data();
    EXPECT_GT(distance, 0) << path;
    EXPECT_LT(distance, static_cast<std::ptrdiff_t>(std::filesystem::file_size(path))) << path;
  }
}

TEST(OpenArchive, PartsAndATopFolder) {
  const Folder folder;
  const std::string path = pack(folder, "a.tar",
                                {{"./flowers/train/b/1.png", flat_png(1)},
                                 {"./flowers/train/a/1.png", flat_png(2)},
                                 {"./flowers/val/a/9.png", flat_png(3)},
                                 {"./flowers/val/b/9.png", flat_png(4)}});
  const auto train = open_dataset(path),
             test = open_dataset(path, {.split = Split::kTest, .need_split = true});
  ASSERT_TRUE(train.ok()) << train.status().message();
  ASSERT_TRUE(test.ok()) << test.status().message();
  EXPECT_EQ(first_pixels(**train), (std::vector<int>{2, 1}));
  EXPECT_EQ(first_pixels(**test), (std::vector<int>{3, 4}));
  const std::string whole =
      pack(folder, "b.tar", {{"top/in/a/1.png", flat_png(1)}, {"top/in/b/1.png", flat_png(2)}});
  EXPECT_EQ((*open_dataset(whole))->class_names(), (ClassNames{"a", "b"}));
  expect_failure(open_dataset(whole, {.split = Split::kTest, .need_split = true}), Code::kNotFound,
                 {"b.tar", "no test part"});
  const std::string one = pack(folder, "c.tar", {{"only/1.png", flat_png(1)}});
  EXPECT_EQ((*open_dataset(one))->class_names(), (ClassNames{"only"}));
}

TEST(OpenArchive, ExpectedClassesRule) {
  const Folder folder;
  const std::string path = pack(folder, "a.tar", cats_and_dogs());
  EXPECT_EQ((*open_archive(path, {.expected = {"dog", "cat"}}))->label(0), 0);
  expect_failure(open_archive(path, {.expected = {"dog"}}), Code::kInvalidArgument, {"'cat'"});
  expect_failure(open_archive(path, {.expected = {"dog", "cat", "cow"}}), Code::kNotFound, {"'cow'"});
}

TEST(OpenArchive, WhatHoldsNoDataSetIsSaid) {
  const Folder folder;
  expect_failure(open_dataset(pack(folder, "a.tar", {{"x.txt", "hello"}})), Code::kNotFound,
                 {"a.tar", "no images"});
  expect_failure(open_dataset(pack(folder, "b.tar", {{"1.png", flat_png(1)}})), Code::kNotFound,
                 {"b.tar", "no class folders"});
  expect_failure(open_dataset(folder.write("c.zip", "this is no archive")), Code::kCorrupt, {"c.zip"});
  expect_failure(open_dataset(folder.write("d.tar", "")), Code::kCorrupt, {"d.tar"});
  const auto bad = open_dataset(pack(folder, "e.tar", {{"a/1.png", "no image"}}));
  ASSERT_TRUE(bad.ok());
  expect_failure((*bad)->get(0), Code::kCorrupt, {"e.tar/a/1.png"});
}

TEST(OpenArchive, DamageEndsInAStatus) {
  const Folder folder;
  for (const char* name : {"a.tar", "a.tar.gz", "a.zip"}) {
    std::ifstream file(pack(folder, name, cats_and_dogs()), std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    Random random(9);
    for (int i = 0; i < 100; ++i) {
      std::string damaged = whole.substr(0, i % 2 == 0 ? whole.size() : random.below(whole.size()));
      for (int k = 0; k < 4 && !damaged.empty(); ++k)
        damaged[random.below(damaged.size())] = static_cast<char>(random.next());
      const auto data = open_dataset(folder.write(fmt::format("damaged-{}", name), damaged));
      if (!data.ok()) continue;
      for (size_t s = 0; s < (*data)->size(); ++s) (void)(*data)->get(s);
    }
  }
}

// A few bytes that unpack to a lot.
TEST(OpenArchive, ABombIsRefused) {
  const Folder folder;
  const std::string path = pack(folder, "a.tar.gz", {{"a/1.png", std::string(size_t{257} << 20, '\0')}});
  EXPECT_LT(std::filesystem::file_size(path), size_t{1} << 20);
  expect_failure(open_dataset(path), Code::kResourceExhausted, {"a.tar.gz", "a/1.png"});
}

}  // namespace
}  // namespace limber
