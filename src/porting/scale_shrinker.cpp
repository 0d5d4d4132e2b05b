#include "porting/scale_shrinker.h"

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

// Each time a plan's own copy of the scales is made anew: often enough for the loss to object.
constexpr int64_t kTimes = 16;

bool scales_what_it_normalises(const Graph& graph, ValueId value) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return node.op == OpKind::kBatchNorm && node.inputs[1] == value;
  });
}

}  // namespace

Result<ScaleShrinker> ScaleShrinker::make(const Graph& graph, const ChannelGroups& groups,
                                          std::span<const double> penalties, double share,
                                          std::shared_ptr<Parameters> params) {
  ScaleShrinker made;
  for (size_t g = 0; g < groups.groups.size(); ++g) {
    if (penalties[g] <= 0) continue;
    for (const ChannelSpan& span : groups.groups[g].spans) {
      if (!scales_what_it_normalises(graph, span.value)) continue;
      Scales scales{.name = graph.value(span.value).name, .indices = span.indices};
      LIMBER_ASSIGN(const Tensor tensor, params->get(scales.name));
      if (tensor.dtype() != DType::kF32) continue;
      double sum = 0;
      for (const int64_t i : scales.indices) sum += std::abs(tensor.data<float>()[static_cast<size_t>(i)]);
      scales.amount = penalties[g] * share * sum / static_cast<double>(scales.indices.size());
      made.scales_.push_back(std::move(scales));
    }
  }
  made.params_ = std::move(params);
  return made;
}

Status ScaleShrinker::on_begin(TrainingSession& /*session*/, const TrainingState& /*state*/,
                               const TrainingLength& length) {
  every_ = std::max<int64_t>(1, length.total / kTimes);
  part_ = 1 / static_cast<double>(std::max<int64_t>(1, length.total / every_));
  return {};
}

Status ScaleShrinker::on_step_end(TrainingSession& /*session*/, const StepReport& report) {
  return report.state.step % every_ == 0 ? shrink() : Status();
}

Status ScaleShrinker::shrink() const {
  std::vector<std::string> changed;
  for (const Scales& one : scales_) {
    LIMBER_ASSIGN(Tensor tensor, params_->writable(one.name));
    const auto values = tensor.data<float>();
    const auto amount = static_cast<float>(part_ * one.amount);
    for (const int64_t i : one.indices) {
      float& x = values[static_cast<size_t>(i)];
      x = std::copysign(std::max(std::abs(x) - amount, 0.0F), x);
    }
    changed.push_back(one.name);
  }
  params_->mark_changed(changed);
  return {};
}

}  // namespace limber
