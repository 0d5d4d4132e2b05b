#include <gtest/gtest.h>

#include "base/random.h"
#include "data/dataset.h"
#include "tests/data/files.h"

namespace limber {
namespace {

std::vector<int64_t> labels_of(const Dataset& data) {
  std::vector<int64_t> labels;
  for (size_t i = 0; i < data.size(); ++i) labels.push_back(data.label(i));
  return labels;
}

TEST(Manifest, PathsAreRelativeToTheFile) {
  const Folder folder;
  folder.write_image("sub/one.png", 1);
  const auto two = folder.write_image("two, or so.png", 2);
  const auto data = open_manifest(folder.write(
      "m.csv", "sub/one.png,cat\r\n\n  \"two, or so.png\" , \"a \"\"dog\"\"\"\n\"" + two + "x\",cat"));
  ASSERT_TRUE(data.ok()) << data.status().message();
  ASSERT_EQ((*data)->size(), 3u);
  EXPECT_EQ((*data)->class_names(), (ClassNames{"a \"dog\"", "cat"}));
  EXPECT_EQ(labels_of(**data), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ((*data)->get(0)->image.data<uint8_t>()[0], 1);
  EXPECT_EQ((*data)->get(1)->image.data<uint8_t>()[0], 2);
  expect_failure((*data)->get(2), Code::kNotFound, {two + "x"});
}

TEST(Manifest, HeaderNamesTheColumns) {
  const Folder folder;
  const auto data = open_manifest(folder.write("m.csv",
                                               "\xef\xbb\xbf"
                                               "id,Label,Path\n7,1,a.png\n8,0,b.png\n"));
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ((*data)->name(0), folder / "a.png");
  EXPECT_EQ(labels_of(**data), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ((*data)->class_names(), (ClassNames{"0", "1"}));
}

TEST(Manifest, TabsAndSpacesSeparateToo) {
  const Folder folder;
  const auto same = [&](const char* name, const std::string& text) {
    const auto data = open_manifest(folder.write(name, text));
    ASSERT_TRUE(data.ok()) << data.status().message();
    EXPECT_EQ((*data)->class_names(), (ClassNames{"cat", "dog"}));
    EXPECT_EQ(labels_of(**data), (std::vector<int64_t>{1, 0}));
    EXPECT_EQ((*data)->name(0), folder / "my dog.png");
  };
  same("a.tsv", "my dog.png\tdog\nb.png\tcat\n");
  same("b.tsv", "label\timage\ndog\t\"my dog.png\"\ncat\tb.png\n");
  same("c.txt", "my dog.png   dog\nb.png cat\n");
  same("d.txt", "path label\nmy dog.png dog\nb.png cat\n");
  same("e.txt", "my dog.png,dog\nb.png,cat\n");
}

TEST(Manifest, WithoutLabelsTheFolderIsTheClass) {
  const Folder folder;
  const auto data = open_manifest(folder.write("list.txt", "x/dog/1.png\ncat/2.png\n"));
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ((*data)->class_names(), (ClassNames{"cat", "dog"}));
  EXPECT_EQ(labels_of(**data), (std::vector<int64_t>{1, 0}));
  expect_failure(open_manifest(folder.write("bad.txt", "cat/2.png\n3.png\n")), Code::kCorrupt,
                 {"bad.txt:2", "no label for '3.png'"});
  expect_failure(open_manifest(folder.write("mixed.txt", "cat/2.png\ncat/3.png dog\n")), Code::kCorrupt,
                 {"mixed.txt:2", "2 fields where 1"});
}

TEST(Manifest, ExpectedClassesRule) {
  const Folder folder;
  const auto names = folder.write("n.csv", "a.png,dog\nb.png,cat\n");
  EXPECT_EQ(labels_of(**open_manifest(names, {"dog", "cow", "cat"})), (std::vector<int64_t>{0, 2}));
  expect_failure(open_manifest(names, {"dog", "cow"}), Code::kInvalidArgument,
                 {"n.csv:2", "'cat'", "'b.png'"});
  const auto numbers = folder.write("m.csv", "a.png,1\nb.png,2\n");
  EXPECT_EQ(labels_of(**open_manifest(numbers, {"x", "y", "z"})), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(labels_of(**open_manifest(numbers, {"1", "2"})), (std::vector<int64_t>{0, 1}));
  expect_failure(open_manifest(numbers, {"x", "y"}), Code::kInvalidArgument, {"m.csv:2", "label 2", "0..1"});
}

TEST(Manifest, BadLinesAreNamed) {
  const Folder folder;
  const auto open = [&](const std::string& text) { return open_manifest(folder.write("m.csv", text)); };
  expect_failure(open(""), Code::kCorrupt, {"m.csv", "no images"});
  expect_failure(open("path,label\n"), Code::kCorrupt, {"no images"});
  expect_failure(open("a.png,1\nb.png\n"), Code::kCorrupt, {"m.csv:2", "1 fields"});
  expect_failure(open("a.png,1\n\nb, c.png,1\n"), Code::kCorrupt, {"m.csv:3", "3 fields", "quotes"});
  expect_failure(open("a.png,1\n,1\n"), Code::kCorrupt, {"m.csv:2", "path is empty"});
  expect_failure(open("a.png,\n"), Code::kCorrupt, {"m.csv:1", "label of 'a.png' is empty"});
  expect_failure(open("a.png,-1\n"), Code::kInvalidArgument, {"m.csv:1", "label -1"});
  expect_failure(open("a.png,9223372036854775807\n"), Code::kInvalidArgument, {"m.csv:1", "0..65535"});
  expect_failure(open("\"a.png,1\nb.png,2\n"), Code::kCorrupt, {"m.csv:1", "closing quote"});
  expect_failure(open("\"a\"b,1\n"), Code::kCorrupt, {"m.csv:1", "after the closing quote"});
  expect_failure(open(std::string("a\0b,1\n", 6)), Code::kCorrupt, {"m.csv:1", "zero byte"});
  expect_failure(open(std::string(1000, ',')), Code::kCorrupt, {"m.csv:1", "more than 64"});
  expect_failure(open_manifest(folder / "none.csv"), Code::kNotFound, {"none.csv"});
}

TEST(Manifest, AnyBytesEndInAnAnswer) {
  const Folder folder;
  Random random(5);
  constexpr std::string_view kAlphabet = "a1,\"\n\r \t.-\xff";
  for (int i = 0; i < 200; ++i) {
    std::string text(random.below(60), ' ');
    for (char& c : text) c = kAlphabet[random.below(kAlphabet.size())];
    const auto data = open_manifest(folder.write("m.csv", text));
    if (!data.ok()) continue;
    for (const int64_t label : labels_of(**data)) {
      EXPECT_LT(label, static_cast<int64_t>((*data)->class_names().size()));
    }
  }
}

}  // namespace
}  // namespace limber
