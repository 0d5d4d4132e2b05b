#include "jobs/judged_images.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "data/subset.h"

namespace limber {

std::string JudgedImages::text() const {
  const std::string some = fmt::format("{} image{} of", count, count == 1 ? "" : "s");
  switch (part) {
    case Part::kTest:
      return fmt::format("{} the test part of {}", some, data);
    case Part::kTrain:
      return fmt::format("{} the training part of {}", some, data);
    case Part::kGiven:
      return fmt::format("{} {}", some, data);
    case Part::kHeldOut:
      return fmt::format("{} {} that were held out", some, data);
    case Part::kWhole:
      return fmt::format("{} {}, some of which it may have learnt from", some, data);
  }
  return some;
}

HeldOut hold_tenth(const Dataset& data, size_t most, uint64_t seed) {
  return {data.size(), std::clamp<size_t>(data.size() / 10, 1, most), seed};
}

void write_held(ElasticInfo& info, std::string_view note, const HeldOut& held) {
  info.notes[std::string(note)] = format_fields(held);
}

std::optional<HeldOut> read_held(const ElasticInfo& info, std::string_view note) {
  const auto found = info.notes.find(std::string(note));
  if (found == info.notes.end()) return std::nullopt;
  auto held = parse_fields<HeldOut>(found->second);
  return held.ok() ? std::optional(*held) : std::nullopt;
}

Result<JudgedData> open_unseen(const std::string& spec, const ElasticInfo& info, const ClassNames& expected,
                               const JobControl& control) {
  using Part = JudgedImages::Part;
  OpenOptions open{.split = Split::kTest, .need_split = true, .expected = expected};
  auto test = open_dataset(spec, open);
  if (test.ok()) {
    std::shared_ptr<const Dataset> data = *std::move(test);
    return JudgedData{data, {spec, Part::kTest, static_cast<int64_t>(data->size())}};
  }
  if (test.status().code() != Code::kNotFound) return test.status();
  open.need_split = false;
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data, open_dataset(spec, open));
  const std::optional<HeldOut> held = read_held(info, kHeldNote);
  if (held && held->size == data->size()) {
    LIMBER_ASSIGN(const SplitDataset split, hold_out(data, held->count, held->seed));
    return JudgedData{split.held, {spec, Part::kHeldOut, static_cast<int64_t>(held->count)}};
  }
  control.note(NoteKind::kWarning,
               fmt::format("{} has no test part, and nothing says which of its images were held out: the "
                           "accuracies are also of images that were learnt from",
                           spec));
  return JudgedData{data, {spec, Part::kWhole, static_cast<int64_t>(data->size())}};
}

Result<JudgedData> keep_from_learning(const KeptFromLearning& how, ElasticInfo& info,
                                      std::shared_ptr<const Dataset>& learnt, const JobControl& control) {
  auto test = open_dataset(how.data, {.split = Split::kTest, .need_split = true});
  if (!test.ok() && test.status().code() != Code::kNotFound) return test.status();
  const std::optional<HeldOut> noted = read_held(info, kHeldNote);
  if (!test.ok() && noted && noted->size != learnt->size())
    return invalid("{} has {} images, and had {} when {} was begun with it; give the same data", how.data,
                   learnt->size(), noted->size, how.output);
  if (!test.ok() && !noted && !how.begun && learnt->size() > 1)
    write_held(info, kHeldNote, hold_tenth(*learnt, how.most, how.seed));
  LIMBER_ASSIGN(JudgedData judged, open_unseen(how.data, info, {}, control));
  if (judged.images.part == JudgedImages::Part::kHeldOut) {
    const HeldOut held = *read_held(info, kHeldNote);
    LIMBER_ASSIGN(const SplitDataset split, hold_out(learnt, held.count, held.seed));
    learnt = split.rest;
    control.note(NoteKind::kNote,
                 fmt::format("{} of {} images are held out to judge by", held.count, held.size));
  }
  if (learnt->size() < static_cast<size_t>(how.batch))
    return invalid("there are {} images to learn from, fewer than a batch of {}; give a smaller batch",
                   learnt->size(), how.batch);
  return judged;
}

Result<JudgedData> open_seen(const std::string& spec, const ClassNames& expected) {
  OpenOptions open{.split = Split::kTrain, .need_split = true, .expected = expected};
  auto part = open_dataset(spec, open);
  const bool has_parts = part.ok();
  if (part.status().code() == Code::kNotFound) {
    open.need_split = false;
    part = open_dataset(spec, open);
  }
  LIMBER_TRY(part.status());
  std::shared_ptr<const Dataset> data = *std::move(part);
  const auto which = has_parts ? JudgedImages::Part::kTrain : JudgedImages::Part::kWhole;
  return JudgedData{data, {spec, which, static_cast<int64_t>(data->size())}};
}

std::optional<TrainingSplit> read_split(const CheckpointInfo& info) {
  const auto share = info.options.find(TrainingSplit::kShareText);
  const auto data = info.options.find(TrainingSplit::kDataText);
  if (share == info.options.end() || data == info.options.end()) return std::nullopt;
  TrainingSplit split{.seed = info.seed};
  const auto parse = [](const std::string& text, auto& number, auto... how) {
    const auto end = text.data() + text.size();
    return std::from_chars(text.data(), end, number, how...).ptr == end;
  };
  const bool known = parse(share->second, split.share) && parse(data->second, split.data, 16);
  return known ? std::optional(split) : std::nullopt;
}

Result<JudgedData> open_judged(const std::string& spec, Split split,
                               const std::optional<TrainingSplit>& trained, const ClassNames& expected) {
  using Part = JudgedImages::Part;
  const auto judged = [&](std::shared_ptr<const Dataset> data, Part part) {
    const auto count = static_cast<int64_t>(data->size());
    return JudgedData{std::move(data), {spec, part, count}};
  };
  OpenOptions open{.split = split, .need_split = true, .expected = expected};
  const Part part = split == Split::kTest ? Part::kTest : Part::kTrain;
  auto found = open_dataset(spec, open);
  if (found.ok()) return judged(*std::move(found), part);
  if (found.status().code() != Code::kNotFound) return found.status();
  open.need_split = false;
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> whole, open_dataset(spec, open));
  if (!trained || digest_names(*whole) != trained->data) return judged(whole, Part::kGiven);
  LIMBER_ASSIGN(const SplitDataset parts, hold_out_per_class(whole, trained->share, trained->seed));
  return split == Split::kTest ? judged(parts.held, Part::kHeldOut) : judged(parts.rest, Part::kTrain);
}

}  // namespace limber
