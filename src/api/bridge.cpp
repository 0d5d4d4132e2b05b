#include "api/bridge.h"

#include <utility>

#include "api/convert.h"
#include "io/builtin_models.h"
#include "io/onnx.h"
#include "jobs/engine.h"
#include "jobs/source.h"

namespace limber::bridge {
namespace {

ElementType to_element(DType dtype) {
  static_assert(static_cast<int>(ElementType::kFloat32) == static_cast<int>(DType::kF32));
  static_assert(static_cast<int>(ElementType::kInt32) == static_cast<int>(DType::kI32));
  static_assert(static_cast<int>(ElementType::kBool) == static_cast<int>(DType::kBool));
  return static_cast<ElementType>(dtype);
}

TensorInfo describe(const std::string& name, const TensorType& type) {
  TensorInfo info{name, to_element(type.dtype), {}, {}};
  for (const Dim& dim : type.shape) {
    info.dims.push_back(dim.is_constant() ? dim.value() : -1);
    info.symbols.push_back(dim.is_constant() ? "" : dim.to_string());
  }
  return info;
}

TensorView view(const std::string& name, Tensor tensor) {
  return {name, to_element(tensor.dtype()), tensor.shape().dims(), tensor.raw()};
}

class EngineSession : public SessionHandle {
 public:
  explicit EngineSession(std::unique_ptr<limber::Session> session) : session_(std::move(session)) {
    const Graph& graph = plan().graph;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      inputs_.push_back(view(graph.value(graph.inputs()[i]).name, session_->input(i)));
    }
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      outputs_.push_back(view(graph.outputs()[i].name, session_->output(i)));
    }
  }

  std::span<const TensorView> inputs() const override { return inputs_; }
  std::span<const TensorView> outputs() const override { return outputs_; }
  int threads() const override { return plan().threads; }
  size_t working_bytes() const override { return plan().arena_bytes; }

  Error run() override {
    if (Status status = session_->run(); !status.ok()) return to_error(status);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (plan().row_slots[i] >= 0) outputs_[i].dims[0] = session_->output(i).shape().dim(0);
    }
    return {};
  }

  Expected<std::unique_ptr<SessionHandle>> clone() const override { return create(shared_plan_); }

  static Expected<std::unique_ptr<SessionHandle>> create(std::shared_ptr<const Plan> plan) {
    auto session = limber::Session::create(plan);
    if (!session.ok()) return to_error(session.status());
    auto handle = std::make_unique<EngineSession>(*std::move(session));
    handle->shared_plan_ = std::move(plan);
    return std::unique_ptr<SessionHandle>(std::move(handle));
  }

 private:
  const Plan& plan() const { return session_->plan(); }

  std::unique_ptr<limber::Session> session_;
  std::shared_ptr<const Plan> shared_plan_;
  std::vector<TensorView> inputs_, outputs_;
};

class EngineModel : public ModelHandle {
 public:
  explicit EngineModel(limber::Model model) : model_(std::move(model)) {
    const Graph& graph = model_.graph;
    for (ValueId id : graph.inputs()) inputs_.push_back(describe(graph.value(id).name, graph.type(id)));
    for (const Output& output : graph.outputs()) {
      outputs_.push_back(describe(output.name, graph.type(output.value)));
      if (output.rows != kNoValue) outputs_.back().dims[0] = -1;
    }
  }

  std::span<const TensorInfo> inputs() const override { return inputs_; }
  std::span<const TensorInfo> outputs() const override { return outputs_; }
  int64_t parameter_count() const override { return parameter_elements(model_); }

  Expected<std::unique_ptr<SessionHandle>> compile(const Settings& settings) const override {
    if (Status status = check_batch(settings.batch); !status.ok()) return to_error(status);
    BuildSpec spec;
    spec.threads = settings.threads;
    spec.batch = settings.batch;
    spec.symbols = settings.symbols;
    spec.tune = settings.tune;
    spec.tune_cache = settings.tune_cache;
    spec.max_bytes = settings.memory_limit;
    auto plan = build_plan(model_, spec);
    if (!plan.ok()) return to_error(plan.status());
    return EngineSession::create(*std::move(plan));
  }

  Error save(const std::string& path) const override {
    return to_error(export_onnx(model_.graph, *model_.params, path));
  }

 private:
  Status check_batch(int64_t batch) const {
    for (const TensorInfo& input : inputs_) {
      if (batch <= 0 || input.dims.empty() || input.dims[0] < 0 || input.dims[0] == batch) continue;
      return invalid(
          "input '{}' has a fixed first dimension of {}, not {}; load the model with LoadOptions::shapes",
          input.name, input.dims[0], batch);
    }
    return {};
  }

  limber::Model model_;
  std::vector<TensorInfo> inputs_, outputs_;
};

}  // namespace

Expected<std::unique_ptr<ModelHandle>> wrap(Result<limber::Model> model) {
  if (!model.ok()) return to_error(model.status());
  return std::unique_ptr<ModelHandle>(std::make_unique<EngineModel>(*std::move(model)));
}

Expected<std::unique_ptr<ModelHandle>> load(const std::string& path, const Shapes& shapes) {
  ModelSource source;
  source.model = path;
  source.shapes = shapes;
  return wrap(limber::load(source));
}

Expected<std::unique_ptr<ModelHandle>> load_bytes(std::span<const std::byte> bytes, const std::string& label,
                                                  const Shapes& shapes) {
  ImportOptions options;
  options.shapes = shapes;
  return wrap(import_onnx_bytes(bytes, label, options));
}

std::vector<std::string> builtin_names() {
  std::vector<std::string> names;
  for (const BuiltinModel& model : builtin_list()) names.emplace_back(model.name);
  return names;
}

Error no_such(const std::string& what, const std::string& wrong, std::span<const TensorView> views) {
  std::vector<std::string> names;
  for (const TensorView& candidate : views) names.push_back(candidate.name);
  return to_error(limber::no_such(what, wrong, names));
}

}  // namespace limber::bridge
