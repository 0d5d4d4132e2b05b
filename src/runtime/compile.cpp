#include "runtime/compile.h"

#include <algorithm>
#include <optional>

#include "base/memory.h"
#include "base/parallel.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "runtime/lower.h"
#include "runtime/session.h"
#include "runtime/timing.h"

namespace limber {
namespace {

Status check_sizes(const Graph& graph, size_t max_bytes) {
  for (const Value& value : graph.values()) {
    const size_t most = std::min<size_t>(max_bytes / dtype_size(value.type.dtype), INT64_MAX);
    const auto elements = checked_elements(value.type.shape.dims(), static_cast<int64_t>(most));
    if (!elements) {
      return error(Code::kResourceExhausted, "'{}' has type {}, larger than the allowed {} bytes", value.name,
                   value.type.to_string(), max_bytes);
    }
  }
  return {};
}

// What is compiled over which weights.
struct Job {
  CompileContext context;
  std::shared_ptr<Parameters> params;      // or
  std::optional<WeightSnapshot> snapshot;  // or neither, when nothing is made
  const CompileSettings& settings;

  const Parameters* weights() const { return snapshot ? &snapshot->weights() : params.get(); }
};

bool updates(const Graph& graph) {
  return std::any_of(graph.outputs().begin(), graph.outputs().end(),
                     [](const Output& o) { return o.into != kNoValue; });
}

Result<std::shared_ptr<const Plan>> make_plan(const Job& job, Assignment assignment,
                                              std::shared_ptr<Parameters> params) {
  LIMBER_TRY(prepare(job.context.graph, assignment));
  store_packed(job.context, assignment);
  auto plan = std::make_shared<Plan>();
  plan->graph = job.context.graph;
  plan->params = std::move(params);
  plan->backends = job.context.backends;
  plan->threads = thread_count(job.settings);
  plan->predicted_seconds = assignment.seconds;
  plan->assignment = assignment.id;
  LIMBER_TRY(lower(*plan, job.context.statics, assignment));
  LIMBER_TRY(lay_out_memory(*plan, assignment, job.settings.max_bytes));
  return std::shared_ptr<const Plan>(std::move(plan));
}

// In training memory counts as well: four percent less of it are worth one percent of time.
double handicap(const Plan& plan, const Plan& other) {
  if (plan.updates.empty() || other.arena_bytes == 0) return 1;
  return 1 + (static_cast<double>(plan.arena_bytes) / static_cast<double>(other.arena_bytes) - 1) / 4;
}

// Is `challenger` faster?
Result<bool> is_faster(Session& challenger, Session& champion) {
  // Inputs are whatever is in memory: a run that fails on them took its time, too.
  const auto run = [](Session& session) {
    static_cast<void>(session.run().ok());
    return Status();
  };
  LIMBER_ASSIGN(const double once, time_once([&] { return run(champion); }));
  // Rounds of 10 ms, or one run of a slow network: long against a switch of caches, short against what else
  // happens on a machine.
  constexpr double kRoundSeconds = 0.01;
  constexpr int kMostRuns = 50, kMostRounds = 12;  // bounds, of tiny networks and of all
  TurnTimer timer({.runs = std::clamp(static_cast<int>(kRoundSeconds / std::max(once, 1e-6)), 1, kMostRuns)});
  timer.add([&](std::vector<double>& /*parts*/) { return run(challenger); });
  timer.add([&](std::vector<double>& /*parts*/) { return run(champion); });
  // Two rounds of a slow network must do; what is quick can wait for a quartile.
  const size_t least = once < kRoundSeconds ? static_cast<size_t>(TimingOptions{}.min_rounds) : 2;
  double a = 0, b = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    LIMBER_TRY(timer.round());
    a = timer.seconds(0);
    b = timer.seconds(1);
    const bool clear = a > 1.05 * b || b > 1.05 * a;  // beyond the noise of quick times on a quiet machine
    if (clear && timer.rounds() >= least) break;
  }
  return a * handicap(challenger.plan(), champion.plan()) < b;
}

// Parameters to try a plan that updates some with: those are copies.
Result<std::shared_ptr<Parameters>> trial_parameters(const Job& job) {
  const Graph& graph = job.context.graph;
  const std::vector<bool> updated = graph.updated();
  auto trial = std::make_shared<Parameters>();
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const Value& value = graph.values()[v];
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    LIMBER_ASSIGN(Tensor tensor, job.weights()->get(value.name));
    if (updated[v]) {
      LIMBER_ASSIGN(tensor, tensor.copy());
    }
    trial->set(value.name, std::move(tensor));
  }
  return trial;
}

// Times of single layers say little about caches shared by all of them: the candidates run as a whole.
// Returns the index of the fastest.
Result<size_t> fastest(const Job& job, const std::vector<Assignment>& assignments) {
  std::shared_ptr<WorkArena> memory;  // as in training, where one arena serves all plans
  const bool trains = updates(job.context.graph);
  if (trains) {
    LIMBER_ASSIGN(memory, WorkArena::reserve(job.settings.max_bytes));
  }
  std::unique_ptr<Session> champion;
  size_t winner = 0;
  for (size_t i = 0; i < assignments.size(); ++i) {
    std::shared_ptr<Parameters> params = job.params;
    if (trains) {
      LIMBER_ASSIGN(params, trial_parameters(job));
    }
    LIMBER_ASSIGN(auto plan, make_plan(job, assignments[i], std::move(params)));
    LIMBER_ASSIGN(auto challenger, job.snapshot ? Session::create(std::move(plan), *job.snapshot)
                                                : Session::create(std::move(plan), memory));
    if (champion) {
      LIMBER_ASSIGN(const bool faster, is_faster(*challenger, *champion));
      if (!faster) continue;
    }
    champion = std::move(challenger);
    winner = i;
  }
  return winner;
}

// Binds and transforms the graph; from here on the node compilers know it.
Status begin(Job& job, const Graph& graph) {
  CompileContext& context = job.context;
  LIMBER_ASSIGN(const auto symbols, bind_dimensions(graph, job.settings));
  LIMBER_ASSIGN(context.graph, bind(graph, symbols));
  LIMBER_TRY(check_sizes(context.graph, job.settings.max_bytes));
  if (job.weights() != nullptr) LIMBER_TRY(check_parameters(context.graph, *job.weights()));
  if (job.settings.optimize) LIMBER_TRY(optimize_for_inference(context.graph));
  context.statics = static_values(context.graph);
  for (const auto& backend : context.backends)
    context.compilers.push_back(backend->begin(context.graph, context.statics));
  return {};
}

Result<std::shared_ptr<const Plan>> run(Job& job, const Graph& graph) {
  const ThreadScope threads(thread_count(job.settings));
  LIMBER_TRY(begin(job, graph));
  if (job.settings.assignment >= 0) {
    LIMBER_ASSIGN(Assignment assignment, find_assignment(job.context, job.settings.assignment));
    return make_plan(job, std::move(assignment), job.params);
  }
  LIMBER_ASSIGN(std::vector<Assignment> assignments, find_assignments(job.context));

  Backend& chief = job.context.layouts();
  const std::string key = fmt::format("plan {:016x}", hash(job.context.graph));
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

}  // namespace

CompileSettings batch_settings(const Graph& graph, int64_t batch, int threads) {
  CompileSettings settings{.threads = threads};
  for (const std::string& name : symbols(graph)) settings.symbols[name] = batch;
  return settings;
}

int thread_count(const CompileSettings& settings) {
  return settings.threads > 0 ? settings.threads : available_cores();
}

Result<std::map<std::string, int64_t>> bind_dimensions(const Graph& graph, const CompileSettings& settings) {
  std::map<std::string, int64_t> values;
  for (const auto& [name, value] : settings.symbols) {
    if (value < 1) return invalid("dimension '{}' is {}; it must be positive", name, value);
    values[std::string(Symbol(name).name())] = value;
  }
  for (ValueId input : graph.inputs()) {
    const Shape& shape = graph.type(input).shape;
    if (shape.rank() == 0 || shape[0].is_constant()) continue;
    values.emplace(shape[0].symbol().name(), std::max<int64_t>(1, settings.batch));
  }
  for (ValueId input : graph.inputs()) {
    for (const Dim& dim : graph.type(input).shape) {
      if (dim.is_constant() || values.contains(std::string(dim.symbol().name()))) continue;
      return invalid("input '{}' {}: dimension '{}' has no value; give one (dim {}=NUMBER)",
                     graph.value(input).name, graph.type(input).to_string(), dim.symbol().name(),
                     dim.symbol().name());
    }
  }
  const std::vector<std::string> open = symbols(graph);
  std::erase_if(values, [&](const auto& entry) {
    return std::find(open.begin(), open.end(), entry.first) == open.end();
  });
  return values;
}

Result<int> estimate_assignment(const Graph& graph, std::vector<std::shared_ptr<Backend>> backends,
                                const CompileSettings& settings) {
  LIMBER_ASSERT(!backends.empty());
  const ThreadScope threads(thread_count(settings));
  Job job{.context = {.backends = std::move(backends)}, .settings = settings};
  LIMBER_TRY(begin(job, graph));
  LIMBER_ASSIGN(const std::vector<Assignment> assignments, find_assignments(job.context));
  return assignments.front().id;
}

Result<std::shared_ptr<const Plan>> compile(const Graph& graph, std::shared_ptr<Parameters> params,
                                            std::vector<std::shared_ptr<Backend>> backends,
                                            const CompileSettings& settings) {
  LIMBER_ASSERT(!backends.empty() && params != nullptr);
  Job job{.context = {.backends = std::move(backends)}, .params = std::move(params), .settings = settings};
  return run(job, graph);
}

Result<std::shared_ptr<const Plan>> compile(const Graph& graph, const WeightSnapshot& weights,
                                            std::vector<std::shared_ptr<Backend>> backends,
                                            const CompileSettings& settings) {
  LIMBER_ASSERT(!backends.empty());
  if (updates(graph))
    return invalid(
        "graph '{}' updates parameters, and a snapshot never changes; compile it over a working set",
        graph.name);
  Job job{.context = {.backends = std::move(backends)}, .snapshot = weights, .settings = settings};
  return run(job, graph);
}

}  // namespace limber
