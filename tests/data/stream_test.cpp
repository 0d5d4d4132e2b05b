#include "data/stream.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "data/permutation.h"
#include "tests/data/files.h"

namespace limber {
namespace {

StreamSpec parsed(const std::string& text) {
  auto spec = parse_stream(text);
  EXPECT_TRUE(spec.ok()) << text << ": " << spec.status().message();
  return spec.ok() ? *std::move(spec) : StreamSpec();
}

std::shared_ptr<const Stream> opened(const std::string& text, const StreamOptions& options = {}) {
  auto stream = Stream::open(parsed(text), options);
  EXPECT_TRUE(stream.ok()) << text << ": " << stream.status().message();
  return stream.ok() ? *std::move(stream) : nullptr;
}

std::vector<uint8_t> pixels_of(const Stream& stream, size_t frame) {
  const Sample sample = *stream.get(frame);
  const auto data = sample.image.data<uint8_t>();
  return {data.begin(), data.end()};
}

TEST(StreamSpec, ReadsSegmentsAndSettings) {
  const StreamSpec spec = parsed(
      " synthetic: gaussian-noise@3*500, fog ,noise * 20; order = shuffled; classes=sorted;rounds=4;seed=7");
  EXPECT_EQ(spec.data, "synthetic");
  ASSERT_EQ(spec.segments.size(), 3u);
  EXPECT_EQ(spec.segments[0].domain.text(), "gaussian-noise@3");
  EXPECT_EQ(spec.segments[0].frames, 500);
  EXPECT_EQ(spec.segments[1].domain.text(), "fog@3");
  EXPECT_EQ(spec.segments[1].frames, 0);
  EXPECT_TRUE(spec.segments[2].domain.noise);
  EXPECT_EQ(spec.order, SegmentOrder::kShuffled);
  EXPECT_EQ(spec.classes, ClassOrder::kSorted);
  EXPECT_EQ(spec.rounds, 4);
  EXPECT_EQ(spec.seed, 7u);
}

TEST(StreamSpec, GroupsStandForFamilies) {
  const StreamSpec spec = parsed("all@5*10,extra@1,night+all;data=synthetic");
  ASSERT_EQ(spec.segments.size(), 15u + 4 + 15);
  EXPECT_EQ(spec.segments[14].domain.text(), "jpeg@5");
  EXPECT_EQ(spec.segments[14].frames, 10);
  EXPECT_EQ(spec.segments[15].domain.text(), "speckle-noise@1");
  EXPECT_EQ(spec.segments[19].domain.text(), "night@3+gaussian-noise@3");
}

TEST(StreamSpec, SourcesAndPaths) {
  const StreamSpec spec = parsed("svhn*100,mnist+fog@2*100;data.svhn=digits/svhn;data.mnist=\"a;b\"");
  EXPECT_EQ(spec.segments[1].domain.text(), "mnist+fog@2");
  EXPECT_EQ(spec.sources[1].second, "a;b");
  EXPECT_EQ(parsed("/data/pacs 96 ; frames=100").path, "/data/pacs 96");
  EXPECT_EQ(parsed("./pacs").path, "./pacs");
}

TEST(StreamSpec, ErrorsNameTheTokenItsPlaceAndWhatIsExpected) {
  const std::tuple<std::string, std::vector<std::string>> cases[] = {
      {"", {"at 1", "ends here", "a domain"}},
      {"clean,", {"at 7", "ends here", "a domain"}},
      {"clean,gausian-noise@3", {"at 7", "'gausian-noise'", "gaussian-noise, "}},
      {"clean@2", {"at 1", "'clean'", "family"}},
      {"fog@6", {"at 5", "'6'", "a strength, 1..5"}},
      {"fog@", {"at 5", "ends here", "a strength"}},
      {"fog*0", {"at 5", "'0'", "a number of frames, 1..2147483648"}},
      {"fog*1e3", {"at 5", "'1e3'", "number of frames"}},
      {"fog*99999999999999999999", {"at 5", "number of frames"}},
      {"fog fog", {"at 5", "'f'", "',', ';' or the end"}},
      {"noise+fog", {"at 7", "'fog'", "nothing beside noise"}},
      {"fog+noise", {"at 5", "'noise'", "nothing beside noise"}},
      {"clean+noise", {"at 7", "'noise'", "nothing beside noise"}},
      {"noise+clean", {"at 7", "'clean'", "nothing beside noise"}},
      {"fog;colour=1", {"at 5", "'colour'", "rounds=N"}},
      {"fog;rounds", {"at 11", "ends here", "'=' after 'rounds'"}},
      {"fog;classes=mix", {"at 13", "'mix'", "mixed or sorted"}},
      {"fog;seed=1;seed=2", {"at 12", "'seed'", "once"}},
      {"fog;data=\"x", {"at 10", "second '\"'"}},
      {"fog;data=", {"at 10", "a data set"}},
      {"fog;data.=x", {"at 5", "'data.'", "a name"}},
      {"fog;data.fog=x", {"at 5", "'data.fog'", "no family"}},
      {"synthetic:fog;data=x", {"at 20", "no data="}},
      {"mnist", {"at 1", "'mnist'", "data.NAME=DATA"}},
      {"a+b;data.a=x;data.b=y", {"at 3", "'b'", "one source"}},
      {"fog;data.a=x", {"at 5", "'data.a'", "a domain that shows it: 'a'"}},
      {"./photos;data.a=x", {"at 10", "'data.a'", "a domain that shows it: 'a'"}},
      {"synthetic:./photos", {"at 11", "a path without it"}},
      {"all+extra", {"at 5", "'extra'", "one 'all'"}},
  };
  for (const auto& [text, parts] : cases) {
    const auto spec = parse_stream(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.status().code(), Code::kInvalidArgument);
    for (const std::string& part : parts)
      EXPECT_NE(spec.status().message().find(part), std::string::npos)
          << text << ": '" << part << "' is not in " << spec.status().message();
  }
}

// Random specs in canonical text come back; random edits of them are read or refused, and what is read is
// stable.
TEST(StreamSpec, FormatAndParseAreInverse) {
  Random random(5);
  const std::string alphabet = " ,;*+@=\"./-_0159abcdefghijklmnopqrstuvwxyz\t\n\xff";
  const std::string seeds[] = {
      "synthetic:gaussian-noise@3*500,fog@2*500;order=shuffled;classes=sorted",
      "all@5*10,noise*3,x+night@1;data=\"a;b\";data.x=y;frames=3;rounds=9;split=train;seed=12",
      "./some where;frames=10;order=given", "clean;data=a\"b"};
  int good = 0;
  for (int i = 0; i < 40000; ++i) {
    std::string text = seeds[random.below(4)];
    for (uint64_t edits = random.below(4); edits > 0; --edits) {
      const size_t at = random.below(text.size() + 1);
      const char c = alphabet[random.below(alphabet.size())];
      if (random.below(3) == 0 && at < text.size())
        text.erase(at, 1 + random.below(4));
      else if (random.below(2) == 0 || at == text.size())
        text.insert(at, 1, c);
      else
        text[at] = c;
    }
    const auto spec = parse_stream(text);
    if (!spec.ok()) {
      EXPECT_NE(spec.status().message().find("at "), std::string::npos) << spec.status().message();
      continue;
    }
    ++good;
    const std::string canonical = format_stream(*spec);
    const auto again = parse_stream(canonical);
    ASSERT_TRUE(again.ok()) << text << " -> " << canonical << ": " << again.status().message();
    ASSERT_EQ(*again, *spec) << text << " -> " << canonical;
    ASSERT_EQ(format_stream(*again), canonical);
  }
  EXPECT_GT(good, 4000);
}

TEST(Permutation, IsOne) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const Permutation order(n, seed);
      std::set<uint64_t> seen;
      uint64_t fixed = 0;
      for (uint64_t i = 0; i < n; ++i) seen.insert(order.at(i)), fixed += order.at(i) == i;
      EXPECT_EQ(seen.size(), n);
      EXPECT_LT(*seen.rbegin(), n);
      EXPECT_TRUE(n < 100 || fixed < 12) << n << ": " << fixed;
    }
  }
}

TEST(Stream, FramesComeFromTheirDomains) {
  const auto stream = opened("clean*30,fog@5*20,noise*10,clean*40;rounds=2;data=synthetic:size=16,count=50");
  EXPECT_EQ(stream->size(), 200u);
  EXPECT_EQ(stream->domains(), (std::vector<std::string>{"clean", "fog@5", "noise"}));
  EXPECT_TRUE(stream->is_labelled(1));
  EXPECT_FALSE(stream->is_labelled(2));
  const size_t expected[] = {0, 1, 2, 0};
  const int64_t first[] = {0, 30, 50, 60}, frames[] = {30, 20, 10, 40};
  for (int64_t i = 0; i < 200; ++i) {
    const Visit visit = stream->visit(static_cast<size_t>(i));
    size_t part = 3;
    while (first[part] > i % 100) --part;
    EXPECT_EQ(visit.domain, expected[part]);
    EXPECT_EQ(visit.first, i / 100 * 100 + first[part]);
    EXPECT_EQ(visit.frames, frames[part]);
  }
  EXPECT_NE(stream->name(35).find("frame 35 (fog@5, synthetic test image"), std::string::npos)
      << stream->name(35);
}

// Any frame, at any time, in any order: what a run that resumes needs.
TEST(Stream, AFrameDependsOnItsNumberAlone) {
  const std::string text =
      "motion-blur@4*40,noise*5,gaussian-noise*40;rounds=3;order=shuffled;data=synthetic:size=16,count=60;"
      "seed=3";
  for (const char* classes : {"", ";classes=sorted"}) {
    const auto forward = opened(text + classes), backward = opened(text + classes);
    std::map<size_t, std::vector<uint8_t>> seen;
    for (size_t i = 0; i < forward->size(); i += 3) seen[i] = pixels_of(*forward, i);
    for (auto it = seen.rbegin(); it != seen.rend(); ++it) {
      EXPECT_EQ(pixels_of(*backward, it->first), it->second);
      EXPECT_EQ(backward->label(it->first), forward->get(it->first)->label);
    }
    EXPECT_NE(pixels_of(*opened(text + classes + ";frames=1"), 0).size(), 0u);
  }
}

TEST(Stream, EveryImageIsShownBeforeOneComesAgain) {
  for (const char* order : {"given", "shuffled"}) {
    const auto stream = opened(
        fmt::format("clean*7,noise*3,clean*13;rounds=10;order={};data=synthetic:size=16,count=50", order));
    std::map<std::string, int> shown;
    int64_t frames = 0;
    for (size_t i = 0; i < stream->size(); ++i) {
      if (!stream->is_labelled(stream->visit(i).domain)) continue;
      const std::string name = stream->name(i);
      ++shown[name.substr(name.find(','))];
      if (++frames % 50 != 0) continue;
      EXPECT_EQ(shown.size(), 50u);
      for (const auto& [image, times] : shown) EXPECT_EQ(times, frames / 50);
    }
    EXPECT_EQ(frames, 200);
  }
}

TEST(Stream, SortedSegmentsShowTheSameImagesClassByClass) {
  const std::string text = "fog*60,clean*30;rounds=2;data=synthetic:size=16,count=50";
  const auto mixed = opened(text), sorted = opened(text + ";classes=sorted");
  std::map<int64_t, std::multiset<int64_t>> labels[2];
  for (size_t i = 0; i < mixed->size(); ++i) {
    const Visit visit = sorted->visit(i);
    labels[0][visit.first].insert(mixed->label(i));
    labels[1][visit.first].insert(sorted->label(i));
    EXPECT_TRUE(static_cast<int64_t>(i) == visit.first || sorted->label(i - 1) <= sorted->label(i)) << i;
  }
  EXPECT_EQ(labels[0], labels[1]);
}

TEST(Stream, KeptImagesNeverAppear) {
  const auto stream = opened("clean*300;data=synthetic:size=16,count=100", {.data = "", .keep = 30});
  std::set<std::string> kept;
  for (size_t i = 0; i < 30; ++i) kept.insert(stream->kept()->name(i));
  EXPECT_EQ(kept.size(), 30u);
  for (size_t i = 0; i < stream->size(); ++i) {
    for (const std::string& name : kept) EXPECT_EQ(stream->name(i).find(name + ")"), std::string::npos);
  }
}

TEST(Stream, AFolderOfDataSetsIsAStreamOfDomains) {
  const Folder folder;
  for (const char* domain : {"day", "night"}) {
    for (const char* kind : {"cat", "dog"}) {
      for (int i = 0; i < 3; ++i)
        folder.write_image(fmt::format("{}/{}/{}.png", domain, kind, i), static_cast<uint8_t>(domain[0] + i));
    }
  }
  // "night" is also a shift, which only matters to those who write segments.
  const auto both = opened(folder.path());
  EXPECT_EQ(both->domains(), (std::vector<std::string>{"day", "night"}));
  EXPECT_EQ(both->size(), 12u);
  EXPECT_EQ(both->class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(opened(folder.path() + ";frames=5;rounds=2")->size(), 20u);
  const auto one = opened(folder / "day");
  EXPECT_EQ(one->domains(), (std::vector<std::string>{"clean"}));
  EXPECT_EQ(one->size(), 6u);
  expect_failure(Stream::open(parsed((folder / "day") + ";data=synthetic")), Code::kInvalidArgument,
                 {"day is a data set itself", "leave one of them out"});
  const auto named =
      opened(fmt::format("a*6,b+fog@2*4;data.a={};data.b={}", folder / "day", folder / "night"));
  EXPECT_EQ(named->domains(), (std::vector<std::string>{"a", "b+fog@2"}));
}

TEST(Stream, WhatCannotBeOpenedIsSaid) {
  expect_failure(Stream::open(parsed("fog*10")), Code::kInvalidArgument,
                 {"no data set for 'fog@3'", "data=DATA"});
  expect_failure(Stream::open(parsed("/nowhere/at/all")), Code::kNotFound, {"/nowhere/at/all"});
  expect_failure(Stream::open(parsed("x*10;data.x=/nowhere")), Code::kNotFound, {"data.x", "/nowhere"});
  expect_failure(Stream::open(parsed("clean*2000000000;rounds=2;data=synthetic")), Code::kInvalidArgument,
                 {"2 rounds"});
  expect_failure(Stream::open(parsed("clean;data=synthetic:count=10"), {.data = "", .keep = 10}),
                 Code::kInvalidArgument, {"10 images to hold out"});
}

}  // namespace
}  // namespace limber
