// A follower's state: weights as tensors, frames by their numbers, the rest as text.
#include <algorithm>
#include <cstring>

#include "adapt/follower.h"
#include "record/fields.h"

namespace limber::adapt {

struct SavedFrames {
  std::vector<int64_t> numbers, kept;  // the second: those nothing learns from
  static void fields(auto& self, auto& field) {
    field("numbers", self.numbers);
    field("kept", self.kept);
  }
};

struct SavedNet {
  std::string name;
  int64_t domain = 0;
  static void fields(auto& self, auto& field) {
    field("name", self.name);
    field("domain", self.domain);
  }
};

struct Follower::Numbers {
  FollowCounts counts;
  int64_t collected = 0, begun_at = 0, domain = 0;
  bool learnt = false, settling = false;
  std::vector<int64_t> waiting;
  SavedFrames recent;
  std::optional<SavedNet> answering;
  std::vector<SavedNet> accepted;

  static void fields(auto& self, auto& field) {
    field("frames", self.counts.frames);
    field("not_a_number", self.counts.faults.not_a_number);
    field("flat", self.counts.faults.flat);
    field("noise", self.counts.faults.noise);
    field("unreadable", self.counts.faults.unreadable);
    field("by_learnt", self.counts.by_learnt);
    field("learnt_frames", self.counts.learnt.frames);
    field("learnt_s", self.counts.learnt.seconds);
    field("original_frames", self.counts.original.frames);
    field("original_s", self.counts.original.seconds);
    field("operations", self.counts.operations);
    field("adapted", self.counts.adapted);
    field("rejected", self.counts.rejected);
    field("rolled_back", self.counts.rolled_back);
    field("returned", self.counts.returned);
    field("failed", self.counts.failed);
    field("answering_s", self.counts.answering_s);
    field("detecting_s", self.counts.detecting_s);
    field("learning_s", self.counts.learning_s);
    field("judging_s", self.counts.judging_s);
    field("collected", self.collected);
    field("begun_at", self.begun_at);
    field("domain", self.domain);
    field("learnt", self.learnt);
    field("settling", self.settling);
    field("waiting", self.waiting);
    field("recent", self.recent);
    field("answering", self.answering);
    field("accepted", self.accepted);
  }
};

namespace {

bool equal(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// Only what is not as it came.
Status save_weights(const std::string& what, const WeightSnapshot& weights, const WeightSnapshot& source,
                    std::map<std::string, Tensor>& to) {
  for (const std::string& name : weights.weights().names()) {
    LIMBER_ASSIGN(Tensor tensor, weights.weights().get(name));
    if (source.weights().contains(name)) {
      LIMBER_ASSIGN(const Tensor was, source.weights().get(name));
      if (equal(was, tensor)) continue;
    }
    to[what + "/" + name] = std::move(tensor);
  }
  return {};
}

Result<WeightSnapshot> saved_weights(const std::string& what, const WeightSnapshot& source,
                                     const std::map<std::string, Tensor>& from) {
  Parameters weights(source);
  const std::string prefix = what + "/";
  for (auto it = from.lower_bound(prefix); it != from.end() && it->first.starts_with(prefix); ++it) {
    const std::string name = it->first.substr(prefix.size());
    if (weights.contains(name)) {
      LIMBER_ASSIGN(const TensorType type, weights.type(name));
      if (type != it->second.type())
        return corrupt("'{}' is {}; the model has {}", it->first, it->second.type().to_string(),
                       type.to_string());
    }
    weights.set(name, it->second);
  }
  return weights.snapshot();
}

Tensor tensor_of(const std::vector<std::vector<float>>& rows) {
  std::vector<float> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  const auto count = static_cast<int64_t>(rows.size());
  return Tensor::from(std::span<const float>(values),
                      Shape{count, static_cast<int64_t>(rows.empty() ? 0 : rows[0].size())});
}

Result<std::vector<std::vector<float>>> rows_in(const std::map<std::string, Tensor>& tensors,
                                                const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end() || found->second.dtype() != DType::kF32 || found->second.shape().rank() != 2)
    return corrupt("there is no table '{}'", name);
  const Shape& shape = found->second.shape();
  const auto width = static_cast<size_t>(shape.dim(1));
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < static_cast<size_t>(shape.dim(0)); ++i) {
    const auto row = found->second.data<float>().subspan(i * width, width);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

std::string accepted_name(size_t i) { return fmt::format("accepted{}", i); }

}  // namespace

Result<FollowerState> Follower::state() const {
  FollowerState state;
  Numbers numbers;
  numbers.counts = counts_;
  numbers.collected = collected_;
  numbers.begun_at = begun_at_;
  numbers.domain = domain();
  numbers.learnt = learnt_;
  numbers.settling = settling_;
  numbers.waiting.assign(waiting_numbers_.begin(), waiting_numbers_.end());
  for (const RecentFrame& frame : recent_) {
    numbers.recent.numbers.push_back(frame.number);
    if (frame.kept) numbers.recent.kept.push_back(frame.number);
  }
  const std::vector<double> detector = source_.detector.state();
  state.tensors["detector"] =
      Tensor::from(std::span<const double>(detector), Shape{static_cast<int64_t>(detector.size())});
  if (answering_.net != nullptr) numbers.answering = {answering_.net->name, answering_.net->domain};
  if (!remodels()) {
    for (const auto& net : accepted_) numbers.accepted.push_back({net->name, net->domain});
    LIMBER_TRY(save_nets(state));
  }
  state.text = format_fields(numbers);
  return state;
}

Status Follower::save_nets(FollowerState& state) const {
  LIMBER_TRY(save_weights("learning", last_weights_, source_weights_, state.tensors));
  LIMBER_TRY(save_weights("begun", begun_weights_, source_weights_, state.tensors));
  for (size_t i = 0; i < accepted_.size(); ++i)
    LIMBER_TRY(save_weights(accepted_name(i), accepted_[i]->weights, source_weights_, state.tensors));
  if (answering_.net == nullptr) return {};
  LIMBER_TRY(save_weights("answering", answering_.net->weights, source_weights_, state.tensors));
  std::vector<std::vector<float>> original, answers, frames;
  for (const WatchedFrame& one : watched_) {
    original.push_back(one.original);
    answers.push_back(one.answers);
    frames.emplace_back(one.frame.features.begin(), one.frame.features.end());
    frames.back().push_back(static_cast<float>(one.frame.claimed));
  }
  state.tensors["watched/original"] = tensor_of(original);
  state.tensors["watched/answers"] = tensor_of(answers);
  state.tensors["watched/frames"] = tensor_of(frames);
  return {};
}

Status Follower::restore(const FollowerState& state, const FrameLoader& load) {
  LIMBER_ASSIGN(const Numbers numbers, parse_fields<Numbers>(state.text));
  const auto detector = state.tensors.find("detector");
  if (detector == state.tensors.end() || detector->second.dtype() != DType::kF64)
    return corrupt("there are no numbers of a 'detector'");
  LIMBER_TRY(source_.detector.restore(detector->second.data<double>()));
  domain_ = numbers.domain;
  LIMBER_TRY(remodels() ? restore_remodelled(numbers) : restore_nets(state, numbers));
  counts_ = numbers.counts;
  collected_ = numbers.collected;
  begun_at_ = numbers.begun_at;
  learnt_ = numbers.learnt;
  settling_ = numbers.settling;
  return restore_frames(numbers.waiting, numbers.recent.numbers, numbers.recent.kept, load);
}

// The strategy has a state of its own, and what it remembers of the domain answers again.
Status Follower::restore_remodelled(const Numbers& numbers) {
  LIMBER_TRY(strategy_->enter(domain_));
  if (!numbers.answering || strategy_->remodelled()->weights == model_.weights) return {};
  LIMBER_ASSIGN(Runner runner, candidate(numbers.answering->name));
  answer_with(std::move(runner));
  return {};
}

Status Follower::restore_nets(const FollowerState& state, const Numbers& numbers) {
  LIMBER_ASSIGN(const WeightSnapshot begun, saved_weights("begun", source_weights_, state.tensors));
  LIMBER_TRY(go_on_from(begun));
  LIMBER_ASSIGN(last_weights_, saved_weights("learning", source_weights_, state.tensors));
  LIMBER_TRY(set_weights(last_weights_));
  LIMBER_TRY(strategy_->enter(domain_));
  const auto net_of = [&](const std::string& what,
                          const SavedNet& saved) -> Result<std::shared_ptr<const Net>> {
    LIMBER_ASSIGN(WeightSnapshot weights, saved_weights(what, source_weights_, state.tensors));
    return std::make_shared<const Net>(Net{model_.graph, std::move(weights), saved.name, saved.domain});
  };
  for (size_t i = 0; i < numbers.accepted.size(); ++i) {
    LIMBER_ASSIGN(auto net, net_of(accepted_name(i), numbers.accepted[i]));
    accepted_.push_back(std::move(net));
  }
  if (!numbers.answering) return {};
  LIMBER_ASSIGN(auto net, net_of("answering", *numbers.answering));
  for (const auto& one : accepted_) net = one->name == net->name ? one : net;
  LIMBER_ASSIGN(Runner runner, runner_of(std::move(net)));
  answer_with(std::move(runner));
  return restore_watched(state);
}

Status Follower::restore_watched(const FollowerState& state) {
  LIMBER_ASSIGN(auto original, rows_in(state.tensors, "watched/original"));
  LIMBER_ASSIGN(auto answers, rows_in(state.tensors, "watched/answers"));
  LIMBER_ASSIGN(const auto frames, rows_in(state.tensors, "watched/frames"));
  if (original.size() != answers.size() || original.size() != frames.size())
    return corrupt("tables of what was watched have {}, {} and {} rows", original.size(), answers.size(),
                   frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].size() != kFrameFeatures + 1)
      return corrupt("'watched/frames' has {} columns; expected {}", frames[i].size(), kFrameFeatures + 1);
    Frame frame;
    std::copy_n(frames[i].begin(), kFrameFeatures, frame.features.begin());
    frame.claimed = static_cast<int32_t>(frames[i].back());
    watched_.push_back({std::move(original[i]), std::move(answers[i]), frame});
  }
  return {};
}

Status Follower::restore_frames(const std::vector<int64_t>& waiting, const std::vector<int64_t>& recent,
                                const std::vector<int64_t>& kept, const FrameLoader& load) {
  if (!waiting.empty()) {
    LIMBER_ASSIGN(const Tensor images, load(waiting));
    LIMBER_TRY(check_images(model_.graph, images));
    const auto pixels = images.data<float>();
    waiting_.assign(pixels.begin(), pixels.end());
    waiting_numbers_.assign(waiting.begin(), waiting.end());
  }
  if (recent.empty()) return {};
  LIMBER_ASSIGN(const Tensor images, load(recent));
  LIMBER_TRY(check_images(model_.graph, images));
  LIMBER_ASSIGN(Logits logits, original_.answerer->answer(images));
  if (logits.size() != recent.size())
    return error(Code::kInternal, "{} frames were asked for, {} came", recent.size(), logits.size());
  const auto pixels = images.data<float>();
  for (size_t i = 0; i < recent.size(); ++i) {
    const auto one = pixels.subspan(i * image_size_, image_size_);
    const Frame frame = describe(one, logits[i]);
    recent_.push_back({{one.begin(), one.end()},
                       std::move(logits[i]),
                       frame,
                       recent[i],
                       std::find(kept.begin(), kept.end(), recent[i]) != kept.end()});
  }
  return {};
}

}  // namespace limber::adapt
