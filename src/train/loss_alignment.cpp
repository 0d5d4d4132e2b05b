#include "train/loss_alignment.h"

#include "train/head.h"
#include "train/loss_writer.h"

namespace limber {
namespace {

ValueId mean_of_rows(LossWriter& w, ValueId rows) {
  return w.emit(OpKind::kReduceMean, {rows}, {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{1}}});
}

ValueId mean_all(LossWriter& w, const Graph& graph, ValueId v) {
  const ValueId sum = w.sum_all(v);
  return sum == kNoValue ? sum : w.scale(sum, 1 / static_cast<double>(graph.type(v).shape.elements()));
}

// Squared distance of the normal distributions with these means and deviations, feature by feature.
ValueId moments(LossWriter& w, Graph& graph, ValueId features) {
  const TensorType source{DType::kF32, Shape{graph.type(features).shape.dim(1)}};
  const ValueId source_mean = graph.add_input("source_mean", source);
  const ValueId source_deviation = graph.add_input("source_deviation", source);
  const ValueId mean = mean_of_rows(w, features);
  const ValueId variance = mean_of_rows(w, w.square(w.sub(features, mean)));
  const ValueId deviation = w.emit(OpKind::kSqrt, {w.add(variance, w.number(kMomentsEpsilon))});
  const ValueId off = w.square(w.sub(mean, source_mean));
  const ValueId wide = w.square(w.sub(deviation, source_deviation));
  return mean_all(w, graph, w.add(off, wide));
}

ValueId covariance(LossWriter& w, Graph& graph, ValueId features) {
  const int64_t rows = graph.type(features).shape.dim(0), width = graph.type(features).shape.dim(1);
  const ValueId source = graph.add_input("source_covariance", {DType::kF32, Shape{width, width}});
  const ValueId centred = w.sub(features, mean_of_rows(w, features));
  const ValueId products = w.emit(OpKind::kMatMul, {centred, centred}, {{"trans_a", int64_t{1}}});
  const ValueId difference = w.sub(w.scale(products, 1 / static_cast<double>(rows - 1)), source);
  return w.scale(w.sum_all(w.square(difference)), 0.25 / static_cast<double>(width * width));
}

ValueId squared_lengths(LossWriter& w, ValueId rows) {
  return w.emit(OpKind::kReduceSumSquare, {rows},
                {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}});
}

// Mean over all pairs of the sum of five Gaussians, each half as wide as the one before.
ValueId likeness(LossWriter& w, Graph& graph, ValueId a, ValueId b, double bandwidth) {
  const ValueId product = w.emit(OpKind::kMatMul, {a, b}, {{"trans_b", int64_t{1}}});
  const ValueId lengths =
      w.emit(OpKind::kTranspose, {squared_lengths(w, b)}, {{"perm", std::vector<int64_t>{1, 0}}});
  const ValueId distance = w.sub(w.add(squared_lengths(w, a), lengths), w.scale(product, 2));
  ValueId each = w.emit(OpKind::kExp, {w.scale(distance, -1 / (4 * bandwidth))});
  ValueId sum = each;
  for (int i = 1; i < 5; ++i) {
    each = w.square(each);
    sum = w.add(sum, each);
  }
  return mean_all(w, graph, sum);
}

ValueId kernel(LossWriter& w, Graph& graph, ValueId features, const LossOptions& options) {
  const int64_t width = graph.type(features).shape.dim(1);
  const ValueId source = graph.add_input("source_features", {DType::kF32, Shape{options.source_rows, width}});
  const ValueId within = w.add(likeness(w, graph, features, features, options.bandwidth),
                               likeness(w, graph, source, source, options.bandwidth));
  return w.sub(within, w.scale(likeness(w, graph, source, features, options.bandwidth), 2));
}

// One row of features per image.
Result<ValueId> features_of(Graph& graph, ValueId logits) {
  LIMBER_ASSIGN(const Head head, find_head(graph, logits));
  const int rank = graph.type(head.features).rank();
  if (rank == 2) return head.features;
  std::vector<int64_t> space;
  for (int axis = 2; axis < rank; ++axis) space.push_back(axis);
  return emit(graph, OpKind::kReduceMean, {head.features}, {{"axes", space}, {"keepdims", int64_t{0}}},
              "loss");
}

Status check_sizes(const Graph& graph, ValueId features, const LossOptions& options) {
  const int64_t rows = graph.type(features).shape.dim(0);
  if (options.kind == LossKind::kCovariance && rows < 2)
    return invalid("a batch of {} has no covariance; give 2 images or more", rows);
  if (options.kind != LossKind::kKernel) return {};
  if (options.source_rows < 1)
    return invalid("there are {} features of the source to compare with, expected 1 or more",
                   options.source_rows);
  if (!(options.bandwidth > 0))
    return invalid("the bandwidth is {}, expected more than 0", options.bandwidth);
  return {};
}

}  // namespace

Result<ValueId> add_alignment(Graph& graph, ValueId logits, const LossOptions& options) {
  LIMBER_ASSIGN(const ValueId features, features_of(graph, logits));
  LIMBER_TRY(check_sizes(graph, features, options));
  LossWriter w(graph);
  if (options.kind == LossKind::kMoments) return w.done(moments(w, graph, features));
  if (options.kind == LossKind::kCovariance) return w.done(covariance(w, graph, features));
  return w.done(kernel(w, graph, features, options));
}

}  // namespace limber
