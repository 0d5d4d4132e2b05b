#include "adapt/master/part_training.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "ops/op_def.h"
#include "passes/classifier.h"
#include "passes/slice_channels.h"

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

// By name: how a tensor shrank. What the optimiser knows of a tensor shrinks with it, when it has its shape.
class Slices {
 public:
  explicit Slices(const SlicedGraph& sliced) {
    for (const SlicedTensor& slice : sliced.tensors) by_name_.emplace(slice.name, &slice);
  }
  // The slice of `name`, or of state of that tensor; null when it is whole.
  const SlicedTensor* of(std::string_view name, const TensorType& small) const {
    const auto it = by_name_.find(name);
    return it == by_name_.end() || it->second->small != small ? nullptr : it->second;
  }

 private:
  std::map<std::string_view, const SlicedTensor*> by_name_;
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
    const Graph& graph, std::shared_ptr<Parameters> params) const {
  Graph logits = logits_of(graph);
  TrainingOptions how{.threads = model_.threads, .memory = memory_};
  how.step = {.batch = options_.batch,
              .loss = {.kind = LossKind::kCrossEntropy},
              .soft_targets = true,
              .optimizer = options_.optimizer,
              .batch_norm = BatchNormMode::kBatch};
  if (options_.sparsity > 0) {
    LIMBER_TRY(add_sparsity(logits, options_.sparsity));
    how.step.penalty = kSparsity;
  }
  return TrainingSession::create(logits, std::move(params), model_.backends, how);
}

Result<PartTraining::Part*> PartTraining::part_for(const SlicedGraph& sliced) {
  const uint64_t key = hash(sliced.graph);
  for (auto it = parts_.begin(); it != parts_.end(); ++it) {
    if (it->key != key) continue;
    parts_.splice(parts_.begin(), parts_, it);
    return &parts_.front();
  }
  Part part{key, std::make_shared<Parameters>(), nullptr};
  LIMBER_TRY(slice_parameters(sliced, *model_.weights, *part.params));
  for (const std::string& name : part.params->names()) {  // what is not sliced is shared until here
    LIMBER_ASSIGN(const Tensor tensor, part.params->get(name));
    LIMBER_ASSIGN(Tensor own, copy_of(tensor));
    part.params->set(name, std::move(own));
  }
  LIMBER_ASSIGN(part.training, make_training(sliced.graph, part.params));
  if (parts_.size() == kMaxParts) parts_.pop_back();
  parts_.push_front(std::move(part));
  return &parts_.front();
}

Status PartTraining::take_all(const SlicedGraph& sliced, Part& part) {
  const Slices slices(sliced);
  const auto take_one = [&](const std::string& name, std::string_view tensor) -> Status {
    LIMBER_ASSIGN(const TensorType small, part.params->type(name));
    const SlicedTensor* slice = slices.of(tensor, small);
    if (!model_.weights->contains(name)) {  // state, before the first step
      LIMBER_ASSIGN(Tensor zeros, Tensor::zeros(slice == nullptr ? small : slice->full));
      model_.weights->set(name, std::move(zeros));
    }
    LIMBER_ASSIGN(const Tensor full, model_.weights->get(name));
    LIMBER_ASSIGN(Tensor own, slice == nullptr ? copy_of(full) : take(*slice, full));
    part.params->set(name, std::move(own));
    return {};
  };
  for (const std::string& name : part.training->trained()) {
    LIMBER_TRY(take_one(name, name));
    for (const std::string& state : optimizer_state(name)) {
      if (part.params->contains(state)) LIMBER_TRY(take_one(state, name));
    }
  }
  return {};
}

Status PartTraining::put_all(const SlicedGraph& sliced, const Part& part, bool statistics) {
  const Slices slices(sliced);
  std::vector<std::string> changed;
  const auto put_one = [&](const std::string& name, std::string_view tensor) -> Status {
    LIMBER_ASSIGN(const Tensor small, part.params->get(name));
    LIMBER_ASSIGN(Tensor full, model_.weights->writable(name));
    changed.push_back(name);
    if (const SlicedTensor* slice = slices.of(tensor, small.type())) return put_back(*slice, small, full);
    std::memcpy(full.raw(), small.raw(), small.bytes());
    return {};
  };
  for (const std::string& name : part.training->trained()) {
    LIMBER_TRY(put_one(name, name));
    for (const std::string& state : optimizer_state(name)) {
      if (part.params->contains(state)) LIMBER_TRY(put_one(state, name));
    }
  }
  if (statistics) {
    const Graph& prepared = part.training->prepared();
    for (const Output& o : prepared.outputs()) {
      if (o.into == kNoValue) continue;
      const std::string& name = prepared.value(o.into).name;
      LIMBER_TRY(put_one(name, name));
    }
  }
  model_.weights->mark_changed(changed);
  return {};
}

Result<float> PartTraining::step(std::span<const std::vector<int64_t>> units, const Tensor& images,
                                 const Tensor& targets, double rate) {
  LIMBER_ASSIGN(const SlicedGraph sliced, slice_channels(master_.graph, master_.groups, units));
  LIMBER_ASSIGN(Part* const part, part_for(sliced));
  LIMBER_TRY(take_all(sliced, *part));
  TrainingSession& training = *part->training;
  LIMBER_ASSERT(images.bytes() == training.images().bytes() && targets.bytes() == training.targets().bytes());
  std::memcpy(training.images().raw(), images.raw(), images.bytes());
  std::memcpy(training.targets().raw(), targets.raw(), targets.bytes());
  training.set_rate(rate);
  LIMBER_ASSIGN(const float loss, training.step());
  LIMBER_TRY(put_all(sliced, *part, sliced.tensors.empty()));
  return loss;
}

}  // namespace limber::adapt
