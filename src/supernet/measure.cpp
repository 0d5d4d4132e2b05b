#include "supernet/measure.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/random.h"
#include "ops/op_def.h"
#include "runtime/compile.h"
#include "runtime/session.h"

namespace limber {
namespace {

void fill_with_noise(Tensor input, Random& random) {
  if (input.dtype() != DType::kF32) {
    std::memset(input.raw(), 0, input.bytes());
    return;
  }
  for (float& x : input.data<float>()) x = static_cast<float>(random.uniform(-1, 1));
}

Result<double> timed_run(Session& session) {
  const double start = now_seconds();
  LIMBER_TRY(session.run());
  return now_seconds() - start;
}

}  // namespace

Result<double> measure_latency(const Graph& graph, std::shared_ptr<Parameters> params,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options) {
  if (options.threads < 1) return invalid("{} threads, expected 1 or more", options.threads);
  CompileOptions compiling{.threads = options.threads};
  for (const std::string& name : symbols(graph)) compiling.symbols[name] = 1;
  LIMBER_ASSIGN(auto plan, compile(graph, std::move(params), backends, compiling));
  LIMBER_ASSIGN(const auto session, Session::create(std::move(plan)));
  Random random(1);
  for (size_t i = 0; i < graph.inputs().size(); ++i) fill_with_noise(session->input(i), random);

  constexpr int kWarmUp = 2;
  for (int i = 0; i < kWarmUp; ++i) LIMBER_TRY(session->run());
  std::vector<double> times;
  double total = 0;
  for (int i = 0; i < options.max_runs && (i < options.min_runs || total < options.seconds); ++i) {
    LIMBER_ASSIGN(const double seconds, timed_run(*session));
    times.push_back(seconds);
    total += seconds;
  }
  const auto quick = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 10);
  std::nth_element(times.begin(), quick, times.end());
  return *quick;
}

}  // namespace limber
