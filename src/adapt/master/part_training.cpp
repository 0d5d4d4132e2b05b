#include "adapt/master/part_training.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "ops/op_def.h"
#include "passes/classifier.h"

namespace limber::adapt {
namespace {

// Of each size of the network one is enough, but where constants say which units are kept, every cut has a
// plan of its own.
constexpr size_t kMaxParts = 16;
constexpr size_t kArenaBytes = size_t{1} << 36;  // of addresses; pages become memory when a step uses them
constexpr std::string_view kSparsity = "sparsity";

// The mean of the gates of every layer, and of these the mean, times `weight`, as one more output.
Status add_sparsity(Graph& graph, double weight) {
  const std::vector<FilterGate> gates = find_gates(graph);
  const auto share = static_cast<float>(weight / static_cast<double>(gates.size()));
  const ValueId factor = graph.add_constant("sparsity/weight", Tensor::scalar(share));
  ValueId sum = kNoValue;
  for (const FilterGate& gate : gates) {
    LIMBER_ASSIGN(const ValueId mean,
                  emit(graph, OpKind::kReduceMean, {gate.value},
                       {{"axes", std::vector<int64_t>{0, 1}}, {"keepdims", int64_t{0}}}, "sparsity/mean"));
    if (sum == kNoValue) {
      sum = mean;
      continue;
    }
    LIMBER_ASSIGN(sum, emit(graph, OpKind::kAdd, {sum, mean}, {}, "sparsity/sum"));
  }
  LIMBER_ASSIGN(sum, emit(graph, OpKind::kMul, {sum, factor}, {}, "sparsity/weighted"));
  graph.add_output(sum, kSparsity);
  return {};
}

Result<Tensor> copy_of(const Tensor& tensor) {
  LIMBER_ASSIGN(Tensor copy, Tensor::allocate(tensor.type()));
  if (tensor.bytes() > 0) std::memcpy(copy.raw(), tensor.raw(), tensor.bytes());
  return copy;
}

// Kernels for convolutions work on blocks of so many channels; between two multiples of it a step of
// ResNet-20 took up to twice as long as with all channels.
constexpr int64_t kChannelBlock = 8;

// As many more units as fill the last block, the first that are not kept.
std::vector<int64_t> fill_up(const std::vector<int64_t>& kept, int64_t units) {
  const auto count = static_cast<int64_t>(kept.size());
  const int64_t wanted = std::min(units, (count + kChannelBlock - 1) / kChannelBlock * kChannelBlock);
  std::vector<int64_t> filled = kept;
  for (int64_t unit = 0; static_cast<int64_t>(filled.size()) < wanted; ++unit) {
    if (!std::binary_search(kept.begin(), kept.end(), unit)) filled.push_back(unit);
  }
  std::sort(filled.begin(), filled.end());
  return filled;
}

// Where one tensor of the master goes in the small network, and back. A tensor that keeps everything, or has
// another shape than the one it goes with, such as a counter of the optimiser, goes as it is.
class Slice {
 public:
  // Either may be null. `small`: of the small network's.
  Slice(const SlicedTensor* kept, const SlicedTensor* filled, const TensorType& small) {
    if (kept == nullptr || small != (filled == nullptr ? kept->full : filled->small)) return;
    kept_ = kept;
    inner_ = {kept->name, small, kept->small, {}};
    for (const KeptAxis& axis : kept->axes) inner_.axes.push_back({axis.axis, places(axis, filled)});
  }

  Result<Tensor> to_small(const Tensor& full) const {
    if (kept_ == nullptr) return copy_of(full);
    LIMBER_ASSIGN(const Tensor part, take(*kept_, full));
    LIMBER_ASSIGN(Tensor small, Tensor::zeros(inner_.full));
    LIMBER_TRY(put_back(inner_, part, small));
    return small;
  }
  Status to_full(const Tensor& small, Tensor& full) const {
    if (kept_ == nullptr) {
      if (small.bytes() > 0) std::memcpy(full.raw(), small.raw(), small.bytes());
      return {};
    }
    LIMBER_ASSIGN(const Tensor part, take(inner_, small));
    return put_back(*kept_, part, full);
  }
  TensorType full_type(const TensorType& small) const { return kept_ == nullptr ? small : kept_->full; }

 private:
  // Of the kept indices among those of the small network.
  static std::vector<int64_t> places(const KeptAxis& kept, const SlicedTensor* filled) {
    const auto found = filled == nullptr ? nullptr : axis_of(*filled, kept.axis);
    if (found == nullptr) return kept.indices;
    std::vector<int64_t> places;
    for (const int64_t index : kept.indices)
      places.push_back(std::lower_bound(found->indices.begin(), found->indices.end(), index) -
                       found->indices.begin());
    return places;
  }
  static const KeptAxis* axis_of(const SlicedTensor& slice, int axis) {
    const auto it = std::find_if(slice.axes.begin(), slice.axes.end(),
                                 [axis](const KeptAxis& one) { return one.axis == axis; });
    return it == slice.axes.end() ? nullptr : &*it;
  }

  const SlicedTensor* kept_ = nullptr;
  SlicedTensor inner_;  // from the small network's tensor to what is kept
};

class Slices {
 public:
  Slices(const SlicedGraph& kept, const SlicedGraph& filled) {
    for (const SlicedTensor& slice : kept.tensors) kept_.emplace(slice.name, &slice);
    for (const SlicedTensor& slice : filled.tensors) filled_.emplace(slice.name, &slice);
  }
  // Of a tensor that has the shape of the parameter `name`, or has another and no slice.
  Slice of(std::string_view name, const TensorType& small) const {
    return {find(kept_, name), find(filled_, name), small};
  }

 private:
  using ByName = std::map<std::string_view, const SlicedTensor*>;
  static const SlicedTensor* find(const ByName& slices, std::string_view name) {
    const auto it = slices.find(name);
    return it == slices.end() ? nullptr : it->second;
  }
  ByName kept_, filled_;
};

}  // namespace

Result<std::unique_ptr<PartTraining>> PartTraining::create(const AdaptedModel& model, const Master& master,
                                                           const PartOptions& options) {
  std::unique_ptr<PartTraining> made(new PartTraining(model, master, options));
  LIMBER_TRY(count_classes(model.graph).status());
  LIMBER_ASSIGN(made->memory_, WorkArena::reserve(kArenaBytes));
  return made;
}

Result<std::unique_ptr<TrainingSession>> PartTraining::make_training(
    const Graph& graph, bool whole, std::shared_ptr<Parameters> params) const {
  Graph logits = logits_of(graph);
  TrainingOptions how{.threads = model_.threads, .memory = memory_};
  how.step = {.batch = options_.batch,
              .loss = {.kind = LossKind::kCrossEntropy},
              .soft_targets = true,
              .optimizer = options_.optimizer,
              .batch_norm = whole ? BatchNormMode::kFrozen : BatchNormMode::kBatch};
  if (options_.sparsity > 0) {
    LIMBER_TRY(add_sparsity(logits, options_.sparsity));
    how.step.penalty = kSparsity;
  }
  return TrainingSession::create(logits, std::move(params), model_.backends, how);
}

Result<PartTraining::Cut> PartTraining::make_cut(std::span<const std::vector<int64_t>> units) const {
  Cut cut;
  LIMBER_ASSIGN(cut.kept, slice_channels(master_.graph, master_.groups, units));
  std::vector<std::vector<int64_t>> filled;
  for (size_t g = 0; g < units.size(); ++g)
    filled.push_back(fill_up(units[g], master_.groups.groups[g].units));
  LIMBER_ASSIGN(cut.filled, slice_channels(master_.graph, master_.groups, filled));
  return cut;
}

Result<PartTraining::Part*> PartTraining::part_for(const Cut& cut) {
  const SlicedGraph& filled = cut.filled;
  const uint64_t key = hash(filled.graph);
  const bool whole = cut.kept.tensors.empty();
  for (auto it = parts_.begin(); it != parts_.end(); ++it) {
    if (it->key != key || it->whole != whole) continue;
    parts_.splice(parts_.begin(), parts_, it);
    return &parts_.front();
  }
  Part part{key, whole, std::make_shared<Parameters>(), nullptr};
  LIMBER_TRY(slice_parameters(filled, *model_.weights, *part.params));
  for (const std::string& name : part.params->names()) {  // what is not sliced is shared until here
    LIMBER_ASSIGN(const Tensor tensor, part.params->get(name));
    LIMBER_ASSIGN(Tensor own, copy_of(tensor));
    part.params->set(name, std::move(own));
  }
  LIMBER_ASSIGN(part.training, make_training(filled.graph, part.whole, part.params));
  if (parts_.size() == kMaxParts) parts_.pop_back();
  parts_.push_front(std::move(part));
  return &parts_.front();
}

Status PartTraining::take_all(const Cut& cut, Part& part) {
  const Slices slices(cut.kept, cut.filled);
  const auto take_one = [&](const std::string& name, std::string_view parameter) -> Status {
    LIMBER_ASSIGN(const TensorType type, part.params->type(name));
    const Slice slice = slices.of(parameter, type);
    if (!model_.weights->contains(name)) {  // state, before the first step
      LIMBER_ASSIGN(Tensor zeros, Tensor::zeros(slice.full_type(type)));
      model_.weights->set(name, std::move(zeros));
    }
    LIMBER_ASSIGN(const Tensor full, model_.weights->get(name));
    LIMBER_ASSIGN(Tensor small, slice.to_small(full));
    part.params->set(name, std::move(small));
    return {};
  };
  for (const std::string& name : part.training->trained()) {
    LIMBER_TRY(take_one(name, name));
    if (part.whole) continue;
    for (const std::string& state : optimizer_state(name)) {
      if (part.params->contains(state)) LIMBER_TRY(take_one(state, name));
    }
  }
  return {};
}

Status PartTraining::put_all(const Cut& cut, const Part& part) {
  const Slices slices(cut.kept, cut.filled);
  std::vector<std::string> changed;
  const auto put_one = [&](const std::string& name, std::string_view parameter) -> Status {
    LIMBER_ASSIGN(const Tensor small, part.params->get(name));
    LIMBER_ASSIGN(Tensor full, model_.weights->writable(name));
    changed.push_back(name);
    return slices.of(parameter, small.type()).to_full(small, full);
  };
  for (const std::string& name : part.training->trained()) {
    LIMBER_TRY(put_one(name, name));
    if (part.whole) continue;
    for (const std::string& state : optimizer_state(name)) {
      if (part.params->contains(state)) LIMBER_TRY(put_one(state, name));
    }
  }
  model_.weights->mark_changed(changed);
  return {};
}

Result<float> PartTraining::step(std::span<const std::vector<int64_t>> units, const Tensor& images,
                                 const Tensor& targets, double rate) {
  LIMBER_ASSIGN(const Cut cut, make_cut(units));
  LIMBER_ASSIGN(Part* const part, part_for(cut));
  LIMBER_TRY(take_all(cut, *part));
  TrainingSession& training = *part->training;
  LIMBER_ASSERT(images.bytes() == training.images().bytes() && targets.bytes() == training.targets().bytes());
  std::memcpy(training.images().raw(), images.raw(), images.bytes());
  std::memcpy(training.targets().raw(), targets.raw(), targets.bytes());
  training.set_rate(rate);
  LIMBER_ASSIGN(const float loss, training.step());
  LIMBER_TRY(put_all(cut, *part));
  return loss;
}

}  // namespace limber::adapt
