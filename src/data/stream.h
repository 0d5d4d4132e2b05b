// A drifting stream of images: domains that follow one another, made from any data set.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/stream_spec.h"

namespace limber {

// One stay in a domain.
struct Visit {
  size_t domain = 0;  // in Stream::domains()
  int64_t first = 0;  // frame
  int64_t frames = 0;
};

struct StreamOptions {
  // What segments show that name no source, where the spec does not say: as open_dataset() takes it.
  std::string data;
  // So many images of that data set never appear; kept() has them.
  size_t keep = 0;
};

// The frames of a stream are the samples of a data set: any of them can be asked for at any time and depends
// on the spec and its number alone, so that a run resumes at a number. Memory does not grow with the number
// of frames (but for a segment whose classes are sorted: four bytes a frame of it). Before an image of a
// source is shown again, all others of it were.
class Stream : public Dataset {
 public:
  static Result<std::shared_ptr<const Stream>> open(const StreamSpec& spec,
                                                    const StreamOptions& options = {});

  size_t size() const override { return static_cast<size_t>(rounds_ * round_frames_); }
  Result<Sample> get(size_t index) const override;
  // Of a frame of pure noise: 0, which means nothing; see is_labelled().
  int64_t label(size_t index) const override;
  std::string name(size_t index) const override;

  // Every domain once, in the order of the spec.
  const std::vector<std::string>& domains() const { return domains_; }
  bool is_labelled(size_t domain) const { return labelled_[domain]; }
  Visit visit(size_t index) const;  // REQUIRES: index < size()
  // The images of the stream's own data set that never appear; null without StreamOptions::keep.
  const std::shared_ptr<const Dataset>& kept() const { return kept_; }

 private:
  struct Source {
    std::string name;
    std::shared_ptr<const Dataset> data;
    int64_t round_frames = 0;  // of all segments that show it
  };
  struct Segment {
    StreamDomain domain;
    size_t source = 0;
    size_t number = 0;  // in domains_
    int64_t frames = 0;
  };
  // Where a frame is.
  struct Spot {
    const Segment* segment;
    int64_t first;   // frame of the segment
    int64_t offset;  // in the segment
    int64_t shown;   // images of the source before the segment
  };
  struct SortedSegment {
    int64_t first = -1;
    std::vector<uint32_t> order;
  };

  Stream(const StreamSpec& spec, std::vector<std::string> classes)
      : Dataset(std::move(classes)), spec_(spec) {}
  void lay_out(std::vector<Segment> segments);
  Spot find(size_t index) const;
  size_t image_of(const Spot& spot) const;
  size_t nth_image(size_t source, int64_t n) const;
  std::shared_ptr<const SortedSegment> sorted(const Spot& spot) const;
  Result<Tensor> noise(uint64_t seed) const;

  StreamSpec spec_;
  std::vector<Source> sources_;
  std::vector<Segment> segments_;
  std::vector<std::string> domains_;
  std::vector<bool> labelled_;
  std::shared_ptr<const Dataset> kept_;
  int64_t round_frames_ = 0, rounds_ = 1;
  Shape noise_shape_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const SortedSegment> sorted_[2];  // the last ones, newest first
};

}  // namespace limber
