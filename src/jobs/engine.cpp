#include "jobs/engine.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"
#include "base/parallel.h"
#include "io/builtin_models.h"
#include "io/onnx.h"
#include "ops/op_def.h"

namespace limber {
namespace {

constexpr std::string_view kBuiltin = "builtin:";

Status check_shapes(const Graph& graph, const LoadSpec& spec) {
  const auto names = input_names(graph);
  for (const auto& [name, dims] : spec.shapes) {
    if (std::find(names.begin(), names.end(), name) == names.end()) return no_such("input", name, names);
  }
  return {};
}

Status check_symbols(const Graph& graph, const std::map<std::string, int64_t>& values) {
  const auto known = symbols(graph);
  for (const auto& [name, value] : values) {
    if (value < 1) return invalid("dimension '{}' is {}; it must be positive", name, value);
    const bool found = std::find(known.begin(), known.end(), Symbol(name).name()) != known.end();
    if (!found) return no_such("open dimension", name, known);
  }
  return {};
}

// Shapes that put `batch` where the file fixes a first dimension.
std::map<std::string, std::vector<int64_t>> with_batch(const Graph& graph, const LoadSpec& spec,
                                                       int64_t batch) {
  auto shapes = spec.shapes;
  for (ValueId input : graph.inputs()) {
    const Shape& shape = graph.type(input).shape;
    if (shape.rank() == 0 || !shape[0].is_constant() || shape[0].value() == batch) continue;
    auto& dims = shapes[graph.value(input).name];
    if (dims.empty()) dims.assign(static_cast<size_t>(shape.rank()), -1);
    if (dims[0] < 0) dims[0] = batch;
  }
  return shapes;
}

// What was exported for a fixed batch often has it in constants as well.
Status cannot_batch(const Status& problem, const Graph& graph, int64_t batch) {
  for (ValueId input : graph.inputs()) {
    const Shape& shape = graph.type(input).shape;
    if (shape.rank() == 0 || !shape[0].is_constant() || shape[0].value() == batch) continue;
    return error(problem.code(),
                 "with batch {}: {}. The file was exported for {} at a time: use a batch of {}, or export it "
                 "with an open batch (dynamic_axes in PyTorch)",
                 batch, problem.message(), shape[0].value(), shape[0].value());
  }
  return problem.in(fmt::format("with batch {}", batch));
}

// `make` may be called several times, with shapes that turn out not to be the last.
Result<Model> make_model(const std::function<Result<Model>(const InputShapes&)>& make,
                         const std::string& name, const LoadSpec& spec) {
  if (!spec.symbols.empty()) {
    // Named dimensions are gone once they have values, so a name that does not exist shows only without.
    if (const auto open = make({spec.shapes, {}}); open.ok()) {
      LIMBER_TRY(check_symbols(open->graph, spec.symbols).in(name));
    }
  }
  LIMBER_ASSIGN(Model model, make({spec.shapes, spec.symbols}));
  LIMBER_TRY(check_shapes(model.graph, spec).in(name));
  if (auto open = with_batch(model.graph, spec, kOpenDim); spec.open_batch && open != spec.shapes) {
    if (auto made = make({std::move(open), spec.symbols}); made.ok()) return made;
  }
  if (spec.batch <= 0) return model;
  auto shapes = with_batch(model.graph, spec, spec.batch);
  if (shapes == spec.shapes) return model;
  auto again = make({std::move(shapes), spec.symbols});
  if (!again.ok()) return cannot_batch(again.status(), model.graph, spec.batch);
  return again;
}

Result<Model> load_builtin(std::string_view name, const LoadSpec& spec) {
  LIMBER_ASSIGN(Model model, make_builtin(name));
  LIMBER_TRY(check_shapes(model.graph, spec));
  LIMBER_TRY(check_symbols(model.graph, spec.symbols));
  if (!spec.shapes.empty()) {
    return invalid("{}{}: its image size is fixed; only the batch can be chosen", kBuiltin, name);
  }
  return model;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId input : graph.inputs()) names.push_back(graph.value(input).name);
  return names;
}

Result<Model> load_model(const std::string& name, const LoadSpec& spec) {
  if (name.starts_with(kBuiltin)) return load_builtin(std::string_view(name).substr(kBuiltin.size()), spec);
  LIMBER_ASSIGN(const auto file, open_onnx(name));
  return make_model([&](const InputShapes& shapes) { return file->make(shapes); }, name, spec);
}

Result<Model> change_shapes(const Model& model, const std::string& name, const LoadSpec& spec) {
  if (model.origin == nullptr)
    return invalid("{}: its image size is fixed; only the batch can be chosen", name);
  return make_model([&](const InputShapes& shapes) { return with_shapes(model, shapes); }, name, spec);
}

std::vector<std::shared_ptr<Backend>> make_backends(const BuildSpec& spec) {
  std::vector<std::shared_ptr<Backend>> backends;
  if (!spec.reference) {
    backends.push_back(
        make_cpu_backend({.threads = thread_count(spec), .tune = spec.tune, .cache_file = spec.tune_cache}));
  }
  backends.push_back(make_ref_backend());
  return backends;
}

Result<std::shared_ptr<const Plan>> build_plan(const Model& model, const BuildSpec& spec) {
  return compile(model.graph, model.params, make_backends(spec), spec);
}

std::string default_tune_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/limber/tune.json";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/limber/tune.json";
  return {};
}

int64_t parameter_elements(const Model& model) {
  int64_t total = 0;
  for (const Value& value : model.graph.values()) {
    if (value.role == Role::kParameter || value.role == Role::kState) total += value.type.shape.elements();
  }
  return total;
}

std::string closest(std::string_view wrong, const std::vector<std::string>& candidates) {
  std::string best;
  size_t limit = std::max<size_t>(1, wrong.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const bool extends = wrong.size() > 2 && (candidate.starts_with(wrong) || wrong.starts_with(candidate));
    const size_t distance = extends ? 1 : edit_distance(wrong, candidate);
    if (distance < limit) limit = distance, best = candidate;
  }
  return best;
}

Status no_such(std::string_view what, std::string_view wrong, const std::vector<std::string>& names) {
  const std::string near = closest(wrong, names);
  const std::string hint = near.empty() ? "" : fmt::format(" Did you mean '{}'?", near);
  const std::string known =
      names.empty() ? "there is none" : fmt::format("known: {}", fmt::join(names, ", "));
  return error(Code::kNotFound, "no {} named '{}' ({}).{}", what, wrong, known, hint);
}

}  // namespace limber
