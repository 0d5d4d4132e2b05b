#include "jobs/inspect_job.h"

#include <algorithm>

#include "jobs/measured_step.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace limber {
namespace {

constexpr std::string_view kBuiltinPrefix = "builtin:";

Status measure(const Model& model, const JobOptions& options, const JobControl& control, ModelCost& cost) {
  LIMBER_ASSIGN(const auto plan, build(model, options, false, control));
  LIMBER_ASSIGN(const auto dims,
                bind_dimensions(model.graph, {.batch = options.batch, .symbols = options.dims}));
  LIMBER_ASSIGN(const Graph bound, bind(model.graph, dims));
  for (uint32_t n = 0; n < bound.num_nodes(); ++n) {
    const double flops = node_flops(bound, NodeId{n});
    cost.operators[std::string(op_name(bound.node(NodeId{n}).op))].flops += flops;
    cost.flops += flops;
  }
  for (ValueId input : bound.inputs()) {
    cost.io_bytes += bound.type(input).bytes();
    cost.shapes += (cost.shapes.empty() ? "" : ", ") + bound.type(input).to_string();
  }
  for (const Output& output : bound.outputs()) cost.io_bytes += bound.type(output.value).bytes();
  cost.arena_bytes = plan->arena_bytes;
  cost.steps = plan->steps.size();
  cost.reorders = plan->num_reorders();
  return {};
}

// A built-in model has no file, so its operators are those of its graph.
Result<std::vector<OperatorUse>> builtin_operators(const std::string& name) {
  LIMBER_ASSIGN(const Model model, load_model(name));
  std::map<std::string, OperatorUse> uses;
  for (const Node& node : model.graph.nodes()) {
    OperatorUse& use = uses[std::string(op_name(node.op))];
    use.op_type = op_name(node.op);
    use.version = model.opset;
    use.forward = true;
    use.gradient = gradient_support(node.op) != GradientSupport::kNone;
    ++use.count;
  }
  std::vector<OperatorUse> list;
  for (auto& [key, use] : uses) list.push_back(std::move(use));
  return list;
}

std::string layout_text(const Plan& plan, const Step& step) {
  const Backend& backend = *plan.backends[0];
  auto name = [&](const std::vector<int>& slots) -> std::string {
    if (slots.empty() || slots[0] < 0) return "-";
    return backend.layout_name(plan.slots[static_cast<size_t>(slots[0])].layout);
  };
  const std::string in = name(step.inputs), out = name(step.outputs);
  return in == out ? in : in + ">" + out;
}

std::vector<ProfileRow> rows_of(const Plan& plan, const Profile& profile) {
  std::vector<ProfileRow> rows;
  for (const StepTime& time : profile.steps) {
    const Step& step = *time.step;
    rows.push_back(
        {step.op, step.name, step.impl, layout_text(plan, step), 1, time.median_s, step.flops, step.bytes});
  }
  return rows;
}

std::vector<ProfileRow> merged_by_op(const std::vector<ProfileRow>& rows) {
  std::map<std::string, ProfileRow> merged;
  for (const ProfileRow& row : rows) {
    auto [entry, fresh] = merged.try_emplace(row.op, row);
    if (fresh) continue;
    ProfileRow& sum = entry->second;
    sum.count += 1;
    sum.seconds += row.seconds;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
  }
  std::vector<ProfileRow> result;
  for (auto& [op, row] : merged) result.push_back(std::move(row));
  return result;
}

ProfileResult summarise(const ProfileJobOptions& options, const Plan& plan, const Profile& times) {
  ProfileResult result{.rows = rows_of(plan, times),
                       .run_seconds = times.total_s,
                       .steps = plan.steps.size(),
                       .reorders = plan.num_reorders(),
                       .arena_bytes = plan.arena_bytes,
                       .threads = plan.threads,
                       .roofline = measure_roofline(plan.threads)};
  if (options.per_op) result.rows = merged_by_op(result.rows);
  if (!options.in_order) {
    std::stable_sort(result.rows.begin(), result.rows.end(),
                     [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  }
  return result;
}

}  // namespace

Result<ModelCost> cost_of_model(const Model& model, const JobOptions& options, const JobControl& control) {
  ModelCost cost;
  for (const Node& node : model.graph.nodes()) ++cost.operators[std::string(op_name(node.op))].count;
  cost.why_not = measure(model, options, control, cost);
  if (cost.why_not.code() == Code::kUnsupported) return cost.why_not;
  return cost;
}

Result<CheckResult> check_model(const JobOptions& options, const JobControl& control) {
  CheckResult result;
  const bool builtin = options.model.starts_with(kBuiltinPrefix);
  LIMBER_ASSIGN(const std::string file, model_file(options.model, control));
  LIMBER_ASSIGN(result.uses, builtin ? builtin_operators(options.model) : list_operators(file));
  if (const auto model = load(options, control); !model.ok()) {
    result.runs = model.status();
  } else if (const auto plan = build(*model, options, false, control); !plan.ok()) {
    result.runs = plan.status();
  }
  return result;
}

double ProfileResult::sum_seconds() const {
  double total = 0;
  for (const ProfileRow& row : rows) total += row.seconds;
  return total;
}

double ProfileResult::of_roofline(const ProfileRow& row) const {
  return row.seconds > 0 ? roofline.seconds(row.flops, row.bytes) / row.seconds : 0;
}

Result<ProfileResult> run_profile(const ProfileJobOptions& options, const JobControl& control) {
  if (options.runs < 1) return invalid("{} runs; at least 1 is needed", options.runs);
  LIMBER_ASSIGN(const Model model, load(options, control));
  if (options.train || options.last > 0) {
    LIMBER_ASSIGN(const auto training, build_training(model, options, options.last, control));
    LIMBER_ASSIGN(const Plan* const plan, training->plan());
    LIMBER_ASSIGN(const Profile times, training->profile(options.runs));
    return summarise(options, *plan, times);
  }
  LIMBER_ASSIGN(const auto plan, build(model, options, true, control));
  LIMBER_ASSIGN(const auto session, Session::create(plan));
  fill_random(*session, options.seed);
  LIMBER_TRY(session->run());
  LIMBER_ASSIGN(const Profile times, session->profile(options.runs));
  return summarise(options, *plan, times);
}

}  // namespace limber
