// How a stream of images is spelled: which domains follow one another, and for how long.
//
//   stream  = segments settings | PATH settings
//   segments = segment { "," segment }         segment = domain [ "*" FRAMES ]
//   domain  = part { "+" part }                part = "clean" | "noise" | FAMILY [ "@" STRENGTH ] | SOURCE
//   settings = { ";" KEY "=" VALUE }
//
// docs/adaptation.md explains every word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/corruptions.h"
#include "data/dataset.h"
#include "data/shift.h"

namespace limber {

// What images go through.
struct Look {
  std::string family;  // of corruptions, or a shift that has no namesake among them
  int strength = 3;    // 1..kStrengths
  bool operator==(const Look&) const = default;
};

struct StreamDomain {
  bool noise = false;       // no pictures at all
  std::string source;       // a data set of its own, by name; empty: the stream's
  std::vector<Look> looks;  // one after the other; empty: as the images are
  bool operator==(const StreamDomain&) const = default;
  std::string text() const;  // "sketch+fog@2"
};

struct StreamSegment {
  StreamDomain domain;
  int64_t frames = 0;  // 0: StreamSpec::frames
  bool operator==(const StreamSegment&) const = default;
};

enum class SegmentOrder : uint8_t {
  kGiven,
  kShuffled,  // anew in each round
};
enum class ClassOrder : uint8_t {
  kMixed,
  kSorted,  // in each segment one class after the other
};

struct StreamSpec {
  std::string path;  // instead of segments: a data set, or a folder with one in each of its folders
  std::vector<StreamSegment> segments;
  std::string data;                                          // of segments without a source
  std::vector<std::pair<std::string, std::string>> sources;  // name, data set
  int64_t frames = 0;                                        // of a segment; 0: 500, or all images of a path
  int64_t rounds = 1;                                        // how often the segments come
  SegmentOrder order = SegmentOrder::kGiven;
  ClassOrder classes = ClassOrder::kMixed;
  Split split = Split::kTest;
  uint64_t seed = 0;
  bool operator==(const StreamSpec&) const = default;
};

inline constexpr int64_t kSegmentFrames = 500;
inline constexpr size_t kMaxSegments = 10000;  // of a round
inline constexpr size_t kMaxStreamText = size_t{1} << 20;

// Reads nothing but the text. What is wrong is named with its place, counted from 1, and what is expected
// there.
Result<StreamSpec> parse_stream(std::string_view text);
// The same stream in the same words; parse_stream() gives it back.
std::string format_stream(const StreamSpec& spec);

}  // namespace limber
