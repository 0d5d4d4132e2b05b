#include "adapt/methods/reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/op_def.h"
#include "passes/classifier.h"
#include "runtime/compile.h"
#include "train/head.h"

namespace limber::adapt {

Result<std::unique_ptr<Reader>> Reader::create(const AdaptedModel& model) {
  std::unique_ptr<Reader> reader(new Reader(model));
  Graph& graph = reader->model_.graph;
  graph = logits_of(graph);
  LIMBER_ASSIGN(const Head head, find_head(graph, graph.outputs()[0].value));
  ValueId features = head.features;
  std::vector<int64_t> space;
  for (int axis = 2; axis < graph.type(features).rank(); ++axis) space.push_back(axis);
  if (!space.empty()) {
    LIMBER_ASSIGN(features, emit(graph, OpKind::kReduceMean, {features},
                                 {{"axes", space}, {"keepdims", int64_t{0}}}, "features"));
  }
  reader->features_ = graph.type(features).shape.dim(1);
  graph.add_output(features, "features");
  return reader;
}

Result<Reading> Reader::read(const Tensor& images) {
  const int64_t count = images.shape().dim(0);
  LIMBER_ASSIGN(Session * session, sessions_.get(count, [&]() -> Result<std::unique_ptr<Session>> {
    LIMBER_ASSIGN(auto plan, compile(model_.graph, model_.weights, model_.backends,
                                     batch_settings(model_.graph, count, model_.threads)));
    return Session::create(std::move(plan));
  }));
  std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
  LIMBER_TRY(session->run());
  return Reading{session->output(0), session->output(1)};
}

std::vector<std::vector<double>> probabilities_of(const Tensor& logits) {
  const auto rows = static_cast<size_t>(logits.shape().dim(0));
  const auto values = logits.data<float>();
  const size_t classes = rows == 0 ? 0 : values.size() / rows;
  std::vector<std::vector<double>> result;
  for (size_t r = 0; r < rows; ++r) {
    const auto row = values.subspan(r * classes, classes);
    const double peak = *std::max_element(row.begin(), row.end());
    std::vector<double>& p = result.emplace_back();
    double sum = 0;
    for (const float x : row) sum += p.emplace_back(std::exp(x - peak));
    for (double& x : p) x /= sum;
  }
  return result;
}

}  // namespace limber::adapt
