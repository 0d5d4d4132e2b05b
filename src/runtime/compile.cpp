#include "runtime/compile.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "runtime/lower.h"
#include "runtime/session.h"

namespace limber {
namespace {

Status check_sizes(const Graph& graph, size_t max_bytes) {
  for (const Value& value : graph.values()) {
    const auto elements = checked_elements(value.type.shape.dims(),
                                           static_cast<int64_t>(max_bytes / dtype_size(value.type.dtype)));
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
    LIMBER_ASSIGN(const TensorType type, params.type(value.name));
    if (type != value.type) {
      return invalid("parameter '{}': the graph wants {}, it is {}", value.name, value.type.to_string(),
                     type.to_string());
    }
  }
  return {};
}

// What all plans of one compile share.
struct Job {
  Graph graph;
  std::shared_ptr<Parameters> params;
  std::vector<std::shared_ptr<Backend>> backends;
  const CompileOptions& options;
  std::vector<bool> statics;
};

Result<std::shared_ptr<const Plan>> make_plan(const Job& job, Assignment assignment,
                                              std::shared_ptr<Parameters> params) {
  LIMBER_TRY(prepare(job.graph, assignment));
  store_packed(job.graph, job.statics, *job.backends.front(), assignment);
  auto plan = std::make_shared<Plan>();
  plan->graph = job.graph;
  plan->params = std::move(params);
  plan->backends = job.backends;
  plan->threads = job.options.threads;
  plan->predicted_seconds = assignment.seconds;
  plan->assignment = assignment.id;
  LIMBER_TRY(lower(*plan, job.statics, assignment));
  LIMBER_TRY(lay_out_memory(*plan, assignment, job.options.max_bytes));
  return std::shared_ptr<const Plan>(std::move(plan));
}

double median_of_runs(Session& session, int runs, std::vector<double>& times) {
  for (int r = 0; r < runs; ++r) {
    const double start = now_seconds();
    static_cast<void>(session.run().ok());
    times.push_back(now_seconds() - start);
  }
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

// In training memory counts as well: four percent less of it are worth one percent of time.
double handicap(const Plan& plan, const Plan& other) {
  if (plan.updates.empty() || other.arena_bytes == 0) return 1;
  return 1 + (static_cast<double>(plan.arena_bytes) / static_cast<double>(other.arena_bytes) - 1) / 4;
}

// Is `challenger` faster? The two take turns, so that whatever the machine does meanwhile hits both.
bool is_faster(Session& challenger, Session& champion) {
  std::vector<double> first, second;
  median_of_runs(challenger, 1, first);
  const double once = median_of_runs(champion, 1, second);
  first.clear();
  second.clear();
  const int slice = std::clamp(static_cast<int>(0.02 / std::max(once, 1e-6)), 1, 50);
  double a = 0, b = 0;
  for (int round = 0; round < 6; ++round) {
    a = median_of_runs(challenger, slice, first);
    b = median_of_runs(champion, slice, second);
    const bool clear = a > 1.05 * b || b > 1.05 * a;
    if (clear && round > 0) break;
  }
  return a * handicap(challenger.plan(), champion.plan()) < b;
}

// Parameters to try a plan with: what the graph updates is a copy.
Result<std::shared_ptr<Parameters>> trial_parameters(const Job& job) {
  const std::vector<bool> updated = job.graph.updated();
  if (std::find(updated.begin(), updated.end(), true) == updated.end()) return job.params;
  auto trial = std::make_shared<Parameters>();
  for (uint32_t v = 0; v < job.graph.num_values(); ++v) {
    const Value& value = job.graph.values()[v];
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    LIMBER_ASSIGN(Tensor tensor, job.params->get(value.name));
    if (updated[v]) {
      LIMBER_ASSIGN(Tensor copy, Tensor::allocate(tensor.type()));
      if (copy.bytes() > 0) std::memcpy(copy.raw(), tensor.raw(), copy.bytes());
      tensor = std::move(copy);
    }
    trial->set(value.name, std::move(tensor));
  }
  return trial;
}

// Times of single layers say little about caches shared by all of them: the candidates run as a whole.
// Returns the index of the fastest.
Result<size_t> fastest(const Job& job, const std::vector<Assignment>& assignments) {
  std::shared_ptr<WorkArena> memory;  // as in training, where one arena serves all plans
  const std::vector<bool> updated = job.graph.updated();
  if (std::find(updated.begin(), updated.end(), true) != updated.end()) {
    LIMBER_ASSIGN(memory, WorkArena::reserve(job.options.max_bytes));
  }
  std::unique_ptr<Session> champion;
  size_t winner = 0;
  for (size_t i = 0; i < assignments.size(); ++i) {
    LIMBER_ASSIGN(auto params, trial_parameters(job));
    LIMBER_ASSIGN(auto plan, make_plan(job, assignments[i], std::move(params)));
    LIMBER_ASSIGN(auto challenger, Session::create(std::move(plan), memory));
    if (champion && !is_faster(*challenger, *champion)) continue;
    champion = std::move(challenger);
    winner = i;
  }
  return winner;
}

// Binds and transforms the graph; from here on the backends know it.
Status begin(Job& job, const Graph& graph) {
  LIMBER_ASSIGN(job.graph, bind(graph, job.options.symbols));
  LIMBER_TRY(check_sizes(job.graph, job.options.max_bytes));
  if (job.params != nullptr) LIMBER_TRY(check_parameters(job.graph, *job.params));
  if (job.options.optimize) LIMBER_TRY(optimize_for_inference(job.graph));
  job.statics = static_values(job.graph);
  for (const auto& backend : job.backends) backend->begin(job.graph, job.statics);
  return {};
}

}  // namespace

Result<int> estimate_assignment(const Graph& graph, std::vector<std::shared_ptr<Backend>> backends,
                                const CompileOptions& options) {
  LIMBER_ASSERT(!backends.empty());
  const ThreadScope threads(options.threads);
  Job job{{}, nullptr, std::move(backends), options, {}};
  LIMBER_TRY(begin(job, graph));
  LIMBER_ASSIGN(const std::vector<Assignment> assignments,
                find_assignments(job.graph, job.statics, job.backends));
  return assignments.front().id;
}

Result<std::shared_ptr<const Plan>> compile(const Graph& graph, std::shared_ptr<Parameters> params,
                                            std::vector<std::shared_ptr<Backend>> backends,
                                            const CompileOptions& options) {
  LIMBER_ASSERT(!backends.empty() && params != nullptr);
  const ThreadScope threads(options.threads);
  Job job{{}, std::move(params), std::move(backends), options, {}};
  LIMBER_TRY(begin(job, graph));
  if (options.assignment >= 0) {
    LIMBER_ASSIGN(Assignment assignment,
                  find_assignment(job.graph, job.statics, job.backends, options.assignment));
    return make_plan(job, std::move(assignment), job.params);
  }
  LIMBER_ASSIGN(std::vector<Assignment> assignments, find_assignments(job.graph, job.statics, job.backends));

  Backend& chief = *job.backends.front();
  const std::string key = fmt::format("plan {:016x}", hash(job.graph));
  if (const auto known = chief.recall(key)) {
    for (Assignment& assignment : assignments) {
      if (assignment.id == *known) return make_plan(job, std::move(assignment), job.params);
    }
  }
  if (!chief.measures() || assignments.size() == 1)
    return make_plan(job, std::move(assignments.front()), job.params);
  LIMBER_ASSIGN(const size_t winner, fastest(job, assignments));
  trim_heap();
  chief.remember(key, assignments[winner].id);
  return make_plan(job, std::move(assignments[winner]), job.params);
}

}  // namespace limber
