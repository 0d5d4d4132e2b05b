#include "runtime/compile.h"

#include "base/parallel.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "runtime/lower.h"

namespace limber {
namespace {

Status check_sizes(const Graph& graph, size_t max_bytes) {
  for (const Value& value : graph.values()) {
    const auto elements = checked_elements(value.type.shape.dims(), static_cast<int64_t>(max_bytes / dtype_size(value.type.dtype)));
    if (!elements) {
      return error(Code::kResourceExhausted, "'{}' has type {}, larger than the allowed {} bytes", value.name,
                   value.type.to_string(), max_bytes);
    }
  }
  return {};
}

Status check_parameters(const Graph& graph, const Parameters& params) {
  for (const Value& value : graph.values()) {
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    LIMBER_ASSIGN(const Tensor tensor, params.get(value.name));
    if (tensor.type() != value.type) {
      return invalid("parameter '{}': the graph wants {}, it is {}", value.name, value.type.to_string(),
                     tensor.type().to_string());
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Plan>> compile(const Graph& graph, std::shared_ptr<Parameters> params,
                                            std::vector<std::shared_ptr<Backend>> backends,
                                            const CompileOptions& options) {
  LIMBER_ASSERT(!backends.empty() && params != nullptr);
  const ThreadScope threads(options.threads);
  auto plan = std::make_shared<Plan>();
  LIMBER_ASSIGN(plan->graph, bind(graph, options.symbols));
  LIMBER_TRY(check_sizes(plan->graph, options.max_bytes));
  LIMBER_TRY(check_parameters(plan->graph, *params));
  if (options.optimize) LIMBER_TRY(optimize_for_inference(plan->graph));
  plan->params = std::move(params);
  plan->backends = std::move(backends);
  plan->threads = options.threads;

  const std::vector<bool> statics = static_values(plan->graph);
  LIMBER_ASSIGN(const Assignment assignment, choose_implementations(plan->graph, statics, plan->backends));
  plan->predicted_seconds = assignment.seconds;
  LIMBER_TRY(lower(*plan, statics, assignment));
  LIMBER_TRY(lay_out_memory(*plan, assignment, options.max_bytes));
  return std::shared_ptr<const Plan>(std::move(plan));
}

}  // namespace limber
