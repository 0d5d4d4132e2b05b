#include "data/stream.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/hash.h"
#include "data/listing.h"
#include "data/parts.h"
#include "data/permutation.h"
#include "data/subset.h"

namespace limber {
namespace {

using SharedData = std::shared_ptr<const Dataset>;

Result<SharedData> open_source(const std::string& data, Split split, const ClassNames& expected) {
  LIMBER_ASSIGN(auto opened, open_dataset(data, {split, false, expected}));
  return SharedData(std::move(opened));
}

// The data sets in the folders of a folder; none when it is a data set itself, or no folder.
Result<std::vector<std::pair<std::string, std::string>>> folders_of_domains(const std::string& path) {
  std::vector<std::pair<std::string, std::string>> domains;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return domains;
  LIMBER_ASSIGN(const Listing listing, list_folder(path));
  if (has_parts(listing)) return domains;
  for (const std::string& folder : listing.folders) {
    LIMBER_ASSIGN(const Listing within, list_folder(path + "/" + folder));
    if (within.folders.empty()) return std::vector<std::pair<std::string, std::string>>();
    domains.emplace_back(folder, path + "/" + folder);
  }
  return domains;
}

// The spec with what its path stands for.
Result<StreamSpec> resolved(StreamSpec spec, const std::string& data) {
  const bool names_data = !spec.data.empty();
  if (!names_data) spec.data = data;
  if (spec.path.empty()) return spec;
  LIMBER_ASSIGN(const auto folders, folders_of_domains(spec.path));
  if (folders.empty()) {
    if (names_data)
      return invalid("stream: {} is a data set itself, which data={} cannot replace; leave one of them out",
                     spec.path, spec.data);
    spec.data = spec.path;
    spec.segments = {{{}, spec.frames}};
    return spec;
  }
  for (const auto& [name, folder] : folders) {
    spec.sources.emplace_back(name, folder);
    StreamDomain domain;
    domain.source = name;
    spec.segments.push_back({std::move(domain), spec.frames});
  }
  return spec;
}

Result<Tensor> look_at(Tensor image, const Look& look, uint64_t seed) {
  if (const auto corruption = find_corruption(look.family))
    return apply_corruption(image, *corruption, look.strength, seed);
  LIMBER_ASSIGN(
      const auto shifts,
      parse_shifts(fmt::format("{}={}", look.family, static_cast<double>(look.strength) / kStrengths)));
  return apply_shifts(image, shifts, seed);
}

}  // namespace

Result<std::shared_ptr<const Stream>> Stream::open(const StreamSpec& asked, const StreamOptions& options) {
  LIMBER_ASSIGN(const StreamSpec spec, resolved(asked, options.data));
  const bool own = options.keep > 0 || std::any_of(spec.segments.begin(), spec.segments.end(),
                                                   [](const auto& s) { return s.domain.source.empty(); });
  if (own && spec.data.empty())
    return invalid("stream: no data set for '{}'; say it with data=DATA, or begin with 'synthetic:'",
                   spec.segments.empty() ? "clean" : spec.segments[0].domain.text());
  std::vector<Source> sources;
  SharedData kept;
  ClassNames classes;
  const auto add = [&](const std::string& name, const std::string& data) -> Status {
    auto opened = open_source(data, spec.split, classes);
    if (!opened.ok()) return opened.status().in(name.empty() ? "stream" : "stream, data." + name);
    if (classes.empty()) classes = (*opened)->class_names();
    sources.push_back({name, *std::move(opened)});
    return {};
  };
  if (own) LIMBER_TRY(add("", spec.data));
  for (const auto& [name, data] : spec.sources) LIMBER_TRY(add(name, data));
  if (options.keep > 0) {
    LIMBER_ASSIGN(auto split, hold_out(sources[0].data, options.keep, spec.seed));
    kept = std::move(split.held);
    sources[0].data = std::move(split.rest);
  }
  std::shared_ptr<Stream> stream(new Stream(spec, std::move(classes)));
  stream->kept_ = std::move(kept);
  stream->sources_ = std::move(sources);
  std::vector<Segment> segments;
  int64_t total = 0;
  for (const StreamSegment& segment : spec.segments) {
    Segment made{segment.domain, 0, 0, segment.frames > 0 ? segment.frames : spec.frames};
    while (stream->sources_[made.source].name != made.domain.source) ++made.source;
    if (made.frames == 0)
      made.frames = spec.path.empty() ? kSegmentFrames
                                      : static_cast<int64_t>(stream->sources_[made.source].data->size());
    if (made.frames > kMaxSamples - total)
      return invalid("a stream of more than {} frames in one round", kMaxSamples);
    total += made.frames;
    segments.push_back(std::move(made));
  }
  if (spec.rounds > kMaxSamples / total)
    return invalid("a stream of {} rounds of {} frames; at most {} frames", spec.rounds, total, kMaxSamples);
  LIMBER_ASSIGN(const Sample first, stream->sources_[0].data->get(0));
  stream->noise_shape_ = Shape{first.image.shape().dim(0), first.image.shape().dim(1), 3};
  stream->lay_out(std::move(segments));
  return std::shared_ptr<const Stream>(std::move(stream));
}

void Stream::lay_out(std::vector<Segment> segments) {
  rounds_ = spec_.rounds;
  for (Segment& segment : segments) {
    const std::string name = segment.domain.text();
    const auto known = std::find(domains_.begin(), domains_.end(), name);
    segment.number = static_cast<size_t>(known - domains_.begin());
    if (known == domains_.end()) {
      domains_.push_back(name);
      labelled_.push_back(!segment.domain.noise);
    }
    round_frames_ += segment.frames;
    if (!segment.domain.noise) sources_[segment.source].round_frames += segment.frames;
  }
  segments_ = std::move(segments);
}

Stream::Spot Stream::find(size_t index) const {
  LIMBER_ASSERT(index < size());
  const int64_t round = static_cast<int64_t>(index) / round_frames_;
  int64_t left = static_cast<int64_t>(index) % round_frames_;
  std::vector<int64_t> shown(sources_.size());
  for (size_t i = 0; i < shown.size(); ++i) shown[i] = round * sources_[i].round_frames;
  const Permutation order(segments_.size(),
                          Hasher().add(spec_.seed).add("order").add(static_cast<uint64_t>(round)).digest());
  for (size_t i = 0;; ++i) {
    const Segment& segment = segments_[spec_.order == SegmentOrder::kShuffled ? order.at(i) : i];
    if (left < segment.frames)
      return {&segment, static_cast<int64_t>(index) - left, left, shown[segment.source]};
    left -= segment.frames;
    if (!segment.domain.noise) shown[segment.source] += segment.frames;
  }
}

size_t Stream::nth_image(size_t source, int64_t n) const {
  const auto size = static_cast<int64_t>(sources_[source].data->size());
  const auto pass = static_cast<uint64_t>(n / size);
  const uint64_t seed = Hasher().add(spec_.seed).add(sources_[source].name).add(pass).digest();
  return Permutation(static_cast<uint64_t>(size), seed).at(static_cast<uint64_t>(n % size));
}

std::shared_ptr<const Stream::SortedSegment> Stream::sorted(const Spot& spot) const {
  const std::lock_guard lock(mutex_);
  if (sorted_[1] && sorted_[1]->first == spot.first) std::swap(sorted_[0], sorted_[1]);
  if (sorted_[0] && sorted_[0]->first == spot.first) return sorted_[0];
  auto made = std::make_shared<SortedSegment>();
  made->first = spot.first;
  for (int64_t i = 0; i < spot.segment->frames; ++i)
    made->order.push_back(static_cast<uint32_t>(nth_image(spot.segment->source, spot.shown + i)));
  const Dataset& data = *sources_[spot.segment->source].data;
  std::stable_sort(made->order.begin(), made->order.end(),
                   [&](uint32_t a, uint32_t b) { return data.label(a) < data.label(b); });
  sorted_[1] = std::exchange(sorted_[0], made);
  return made;
}

size_t Stream::image_of(const Spot& spot) const {
  if (spec_.classes == ClassOrder::kSorted) return sorted(spot)->order[static_cast<size_t>(spot.offset)];
  return nth_image(spot.segment->source, spot.shown + spot.offset);
}

Result<Sample> Stream::get(size_t index) const {
  const Spot spot = find(index);
  uint64_t seed = Hasher().add(spec_.seed).add("frame").add(static_cast<uint64_t>(index)).digest();
  if (spot.segment->domain.noise) {
    LIMBER_ASSIGN(Tensor image, noise(seed));
    return Sample{std::move(image), 0};
  }
  LIMBER_ASSIGN(Sample sample, sources_[spot.segment->source].data->get(image_of(spot)));
  for (const Look& look : spot.segment->domain.looks) {
    LIMBER_ASSIGN(sample.image, look_at(std::move(sample.image), look, seed));
    seed = Random(seed).next();
  }
  return sample;
}

Result<Tensor> Stream::noise(uint64_t seed) const {
  LIMBER_ASSIGN(Tensor image, Tensor::allocate({DType::kU8, noise_shape_}));
  Random random(seed);
  for (uint8_t& value : image.data<uint8_t>()) value = static_cast<uint8_t>(random.next() >> 56);
  return image;
}

int64_t Stream::label(size_t index) const {
  const Spot spot = find(index);
  return spot.segment->domain.noise ? 0 : sources_[spot.segment->source].data->label(image_of(spot));
}

std::string Stream::name(size_t index) const {
  const Spot spot = find(index);
  const std::string domain = spot.segment->domain.text();
  if (spot.segment->domain.noise) return fmt::format("frame {} ({})", index, domain);
  return fmt::format("frame {} ({}, {})", index, domain,
                     sources_[spot.segment->source].data->name(image_of(spot)));
}

Visit Stream::visit(size_t index) const {
  const Spot spot = find(index);
  return {spot.segment->number, spot.first, spot.segment->frames};
}

}  // namespace limber
