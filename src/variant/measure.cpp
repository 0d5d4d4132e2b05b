#include "variant/measure.h"

#include <cstring>

#include "base/random.h"
#include "ops/op_def.h"
#include "runtime/compile.h"

namespace limber {
namespace {

void fill_with_noise(Tensor input, Random& random) {
  if (input.dtype() != DType::kF32) {
    std::memset(input.raw(), 0, input.bytes());
    return;
  }
  for (float& x : input.data<float>()) x = static_cast<float>(random.uniform(-1, 1));
}

}  // namespace

Status TurnMeter::add(const Graph& graph) {
  if (threads_ < 1) return invalid("{} threads, expected 1 or more", threads_);
  LIMBER_ASSIGN(auto plan, compile(graph, params_, backends_, batch_settings(graph, 1, threads_)));
  LIMBER_ASSIGN(auto session, Session::create(std::move(plan)));
  Random random(1);
  for (size_t i = 0; i < graph.inputs().size(); ++i) fill_with_noise(session->input(i), random);
  timer_.add(*session);
  sessions_.push_back(std::move(session));
  return {};
}

Result<double> measure_latency(const Graph& graph, std::shared_ptr<Parameters> params,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options) {
  TurnMeter meter(std::move(params), backends, options);
  LIMBER_TRY(meter.add(graph));
  LIMBER_TRY(meter.run());
  return meter.seconds(0);
}

}  // namespace limber
