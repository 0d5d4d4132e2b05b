#include "adapt/answerer.h"

#include <algorithm>
#include <cstring>

#include "passes/classifier.h"
#include "runtime/compile.h"
#include "train/training_graph.h"

namespace limber::adapt {

Result<std::unique_ptr<Answerer>> Answerer::create(const Graph& graph, const WeightSnapshot& weights,
                                                   const std::vector<std::shared_ptr<Backend>>& backends,
                                                   int threads, int64_t batch) {
  const Graph logits = logits_of(graph);
  LIMBER_ASSIGN(auto plan, compile(logits, weights, backends, batch_settings(logits, batch, threads)));
  LIMBER_ASSIGN(auto session, Session::create(std::move(plan), weights));
  return std::unique_ptr<Answerer>(new Answerer(std::move(session)));
}

Result<std::unique_ptr<Answerer>> Answerer::with(const WeightSnapshot& weights) const {
  LIMBER_ASSIGN(auto session, Session::create(session_->shared_plan(), weights));
  return std::unique_ptr<Answerer>(new Answerer(std::move(session)));
}

Result<Logits> Answerer::answer(const Tensor& images) {
  Tensor input = session_->input(0);
  const auto batch = static_cast<size_t>(input.shape().dim(0));
  const auto count = static_cast<size_t>(images.shape().dim(0));
  const size_t row = images.bytes() / count;
  const auto* from = static_cast<const std::byte*>(images.raw());
  Logits logits;
  for (size_t begin = 0; begin < count; begin += batch) {
    const size_t some = std::min(batch, count - begin);
    std::memcpy(input.raw(), from + begin * row, some * row);
    LIMBER_TRY(session_->run());
    const Tensor output = session_->output(0);
    const auto values = output.data<float>();
    const size_t classes = values.size() / batch;
    for (size_t i = 0; i < some; ++i) {
      const auto one = values.subspan(i * classes, classes);
      logits.emplace_back(one.begin(), one.end());
    }
  }
  return logits;
}

Result<WeightSnapshot> with_statistics_of(const Tensor& images, const AdaptedModel& model,
                                          const WeightSnapshot& weights) {
  StepOptions options;
  options.batch = images.shape().dim(0);
  LIMBER_ASSIGN(const Graph prepared, prepare_model(logits_of(model.graph), options));
  LIMBER_ASSIGN(const Graph step, statistics_step(prepared, 0));
  const auto set = std::make_shared<Parameters>(weights);
  LIMBER_ASSIGN(auto plan, compile(step, set, model.backends, {.threads = model.threads, .optimize = false}));
  LIMBER_ASSIGN(const auto session, Session::create(std::move(plan)));
  std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
  LIMBER_TRY(session->run());
  return set->snapshot();
}

}  // namespace limber::adapt
