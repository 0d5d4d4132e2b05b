#include "passes/channel_rank.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace limber {
namespace {

// Parameters that scale what a normalisation gives.
std::set<ValueId> normalisation_scales(const Graph& graph) {
  std::set<ValueId> scales;
  for (const Node& node : graph.nodes()) {
    switch (node.op) {
      case OpKind::kBatchNorm:
      case OpKind::kBatchNormTraining:
      case OpKind::kInstanceNorm:
      case OpKind::kGroupNorm:
        scales.insert(node.inputs[1]);
        break;
      default:
        break;
    }
  }
  return scales;
}

// By index along the axis: the sum of |x| or x^2.
std::vector<double> axis_sums(const Tensor& tensor, int axis, WeightNorm norm) {
  const std::vector<int64_t> dims = tensor.shape().dims();
  const int64_t size = dims[static_cast<size_t>(axis)];
  const int64_t inner = std::accumulate(dims.begin() + axis + 1, dims.end(), int64_t{1}, std::multiplies<>());
  const bool f32 = tensor.dtype() == DType::kF32;
  const float* floats = f32 ? tensor.data<float>().data() : nullptr;
  std::vector<double> sums(static_cast<size_t>(size), 0);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double x = f32 ? static_cast<double>(floats[i]) : element_as_double(tensor, i);
    sums[static_cast<size_t>(i / inner % size)] += norm == WeightNorm::kL1 ? std::abs(x) : x * x;
  }
  return sums;
}

std::vector<double> unit_norms(const ChannelSpan& span, int64_t units, const Tensor& tensor,
                               WeightNorm norm) {
  const std::vector<double> sums = axis_sums(tensor, span.axis, norm);
  std::vector<double> norms;
  for (int64_t unit = 0; unit < units; ++unit) {
    double sum = 0;
    for (int64_t index : span.of(unit)) sum += sums[static_cast<size_t>(index)];
    norms.push_back(norm == WeightNorm::kL1 ? sum : std::sqrt(sum));
  }
  return norms;
}

// The mean over several tensors of norms in proportion to their average.
class RelativeMean {
 public:
  explicit RelativeMean(int64_t units) : sums_(static_cast<size_t>(units), 0) {}
  void add(const std::vector<double>& norms) {
    const double total = std::accumulate(norms.begin(), norms.end(), 0.0);
    for (size_t i = 0; i < sums_.size(); ++i)
      sums_[i] += total > 0 ? norms[i] / total * static_cast<double>(norms.size()) : 1;
    ++count_;
  }
  double at(size_t unit) const { return count_ == 0 ? 1 : sums_[unit] / count_; }

 private:
  std::vector<double> sums_;
  int count_ = 0;
};

Result<std::vector<double>> scores_of(const Graph& graph, const std::set<ValueId>& scales,
                                      const ChannelGroup& group, const Parameters& params, WeightNorm norm) {
  RelativeMean weights(group.units), factors(group.units);
  for (const ChannelSpan& span : group.spans) {
    const Value& value = graph.value(span.value);
    const bool is_scale = scales.contains(span.value);
    if (value.role != Role::kParameter || (value.type.rank() < 2 && !is_scale)) continue;
    LIMBER_ASSIGN(const Tensor tensor, params.get(value.name));
    if (tensor.type() != value.type) {
      return invalid("parameter '{}' has type {}, the graph expects {}", value.name,
                     tensor.type().to_string(), value.type.to_string());
    }
    if (is_float(tensor.dtype()))
      (is_scale ? factors : weights).add(unit_norms(span, group.units, tensor, norm));
  }
  std::vector<double> scores;
  for (size_t unit = 0; unit < static_cast<size_t>(group.units); ++unit)
    scores.push_back(weights.at(unit) * factors.at(unit));
  return scores;
}

}  // namespace

Result<std::vector<double>> unit_scores(const Graph& graph, const ChannelGroup& group,
                                        const Parameters& params, WeightNorm norm) {
  return scores_of(graph, normalisation_scales(graph), group, params, norm);
}

std::vector<int64_t> best_units(const std::vector<double>& scores, size_t count) {
  LIMBER_ASSERT(count <= scores.size());
  std::vector<int64_t> units(scores.size());
  std::iota(units.begin(), units.end(), int64_t{0});
  std::stable_sort(units.begin(), units.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  units.resize(count);
  std::sort(units.begin(), units.end());
  return units;
}

Result<std::vector<std::vector<int64_t>>> best_share(const Graph& graph, const ChannelGroups& groups,
                                                     const Parameters& params, double share,
                                                     WeightNorm norm) {
  if (!(share >= 0 && share <= 1)) return invalid("a share of {} units, expected 0 to 1", share);
  const std::set<ValueId> scales = normalisation_scales(graph);
  std::vector<std::vector<int64_t>> kept;
  for (const ChannelGroup& group : groups.groups) {
    LIMBER_ASSIGN(const auto scores, scores_of(graph, scales, group, params, norm));
    const auto count = static_cast<size_t>(std::lround(share * static_cast<double>(group.units)));
    kept.push_back(best_units(scores, std::max<size_t>(1, count)));
  }
  return kept;
}

}  // namespace limber
