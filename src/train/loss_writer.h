// What losses are written with.
#pragma once

#include <utility>
#include <vector>

#include "ops/op_def.h"

namespace limber {

// Emits nodes until one fails; the rest are then no-ops.
class LossWriter {
 public:
  explicit LossWriter(Graph& graph) : graph_(graph) {}

  ValueId emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    if (!status_.ok()) return kNoValue;
    auto made = limber::emit(graph_, op, std::move(inputs), std::move(attrs), "loss");
    if (made.ok()) return *made;
    status_ = made.status();
    return kNoValue;
  }
  ValueId number(double value) {
    return graph_.add_constant("loss/number", Tensor::scalar(static_cast<float>(value)));
  }
  ValueId add(ValueId a, ValueId b) { return emit(OpKind::kAdd, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return emit(OpKind::kSub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return emit(OpKind::kMul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return emit(OpKind::kDiv, {a, b}); }
  ValueId scale(ValueId a, double by) { return by == 1 ? a : mul(a, number(by)); }
  ValueId softmax(ValueId a) { return emit(OpKind::kSoftmax, {a}, {{"axis", int64_t{1}}}); }
  ValueId log_softmax(ValueId a) { return emit(OpKind::kLogSoftmax, {a}, {{"axis", int64_t{1}}}); }
  ValueId square(ValueId a) { return mul(a, a); }
  ValueId sum_all(ValueId a) {
    if (!status_.ok()) return kNoValue;
    std::vector<int64_t> axes;
    for (int i = 0; i < graph_.type(a).rank(); ++i) axes.push_back(i);
    return emit(OpKind::kReduceSum, {a}, {{"axes", axes}, {"keepdims", int64_t{0}}});
  }
  // -sum(targets * log_probabilities) / rows: the mean over everything but the classes.
  ValueId cross(ValueId targets, ValueId log_probabilities, double rows) {
    return scale(sum_all(mul(targets, log_probabilities)), -1 / rows);
  }

  Result<ValueId> done(ValueId loss) const {
    if (!status_.ok()) return status_;
    return loss;
  }

 private:
  Graph& graph_;
  Status status_;
};

}  // namespace limber
