#include "cli/options.h"

#include <spdlog/spdlog.h>

#include <charconv>
#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/random.h"
#include "train/run_folder.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

std::optional<int64_t> parse_integer(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

// Splits at the last '=': names of inputs may hold one.
std::optional<std::pair<std::string, std::string>> parse_assignment(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) return std::nullopt;
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::string take_dim(CommonOptions& options, const std::string& text) {
  const auto assignment = parse_assignment(text);
  const auto value = assignment ? parse_integer(assignment->second) : std::nullopt;
  if (!value || *value < 1) return fmt::format("'{}' should be NAME=NUMBER, as in height=480", text);
  options.dims[assignment->first] = *value;
  return {};
}

std::string take_shape(CommonOptions& options, const std::string& text) {
  const auto assignment = parse_assignment(text);
  const auto dims = assignment ? parse_dims(assignment->second) : std::vector<int64_t>();
  if (dims.empty()) return fmt::format("'{}' should be NAME=DIMENSIONS, as in image=1x3x224x224", text);
  options.shapes[assignment->first] = dims;
  return {};
}

void fill(Tensor tensor, Random& random) {
  switch (tensor.dtype()) {
    case DType::kF32:
      for (float& x : tensor.data<float>()) x = static_cast<float>(random.uniform());
      return;
    case DType::kF64:
      for (double& x : tensor.data<double>()) x = random.uniform();
      return;
    case DType::kI32:
      for (int32_t& x : tensor.data<int32_t>()) x = static_cast<int32_t>(random.below(2));
      return;
    case DType::kI64:
      for (int64_t& x : tensor.data<int64_t>()) x = static_cast<int64_t>(random.below(2));
      return;
    case DType::kU8:
      for (uint8_t& x : tensor.data<uint8_t>()) x = static_cast<uint8_t>(random.below(256));
      return;
    default:  // zero is a value of every type
      std::memset(tensor.raw(), 0, tensor.bytes());
  }
}

}  // namespace

std::vector<int64_t> parse_dims(const std::string& text) {
  std::vector<int64_t> dims;
  std::string token;
  for (const char c : text + "x") {
    if (c != 'x' && c != ',') {
      token += c;
      continue;
    }
    const auto dim = token == "?" ? -1 : parse_integer(token);
    if (!dim || *dim < -1 || *dim == 0) return {};
    dims.push_back(*dim);
    token.clear();
  }
  return dims;
}

void add_common(Arguments& arguments, CommonOptions& options, Arguments::Need model, const char* model_help) {
  arguments.text("model", options.model, "MODEL", model_help, model);
  arguments.flag("--json", options.json, "Machine-readable output");
  arguments.number("--threads", options.threads, 0, 1024, "Threads to use; 0 (default): every core");
  arguments.number("--batch", options.batch, 1, int64_t{1} << 20,
                   "First dimension of the inputs; default: what the file says or the command needs");
  arguments.parsed("--dim", "NAME=N", "Value of an open dimension, as in height=480",
                   [&options](const std::string& text) { return take_dim(options, text); });
  arguments.parsed("--shape", "NAME=DIMS", "Shape of an input, as in image=1x3x224x224; ? keeps a dimension",
                   [&options](const std::string& text) { return take_shape(options, text); });
  arguments.choice("--tune", options.tune, {"auto", "on", "off"},
                   "Time the candidates of every layer; auto: in bench and profile");
  arguments.text("--tune-cache", options.tune_cache, "FILE",
                 "Where timings are kept; default ~/.cache/limber/tune.json");
  arguments.seed("--seed", options.seed, "Seed of everything random; default 0");
  arguments.choice("--backend", options.backend, {"cpu", "ref"},
                   "Default cpu; ref: the slow, obvious kernels");
  arguments.flag("--no-optimize", options.as_is, "Compile the graph as it is in the file");
}

Status refuse_elastic(const std::string& model) {
  if (!is_elastic(model)) return {};
  return invalid("{} is an elastic model; 'limber export {} -o model.onnx' makes a model of it", model,
                 model);
}

Result<std::string> model_file(const std::string& name) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(name, ignored)) return name;
  LIMBER_TRY(refuse_elastic(name));
  std::vector<std::string> warnings;
  LIMBER_ASSIGN(const std::string checkpoint, find_checkpoint(name, Which::kBest, warnings));
  for (const std::string& warning : warnings) spdlog::warn("{}", warning);
  return model_in(checkpoint);
}

Result<Model> load(const CommonOptions& options) {
  const double start = now_seconds();
  LIMBER_ASSIGN(const std::string name, model_file(options.model));
  auto model = load_model(name, {options.shapes, options.dims, options.batch});
  if (model.ok()) {
    spdlog::info("loaded {}: {} nodes in {:.1f} ms", options.model, model->graph.num_nodes(),
                 1e3 * (now_seconds() - start));
  }
  return model;
}

BuildSpec build_spec(const CommonOptions& options, bool auto_tunes) {
  BuildSpec spec;
  spec.threads = options.threads;
  spec.batch = options.batch;
  spec.symbols = options.dims;
  spec.tune = options.tune == "on" || (options.tune == "auto" && auto_tunes);
  spec.tune_cache = options.tune_cache;
  spec.reference = options.backend == "ref";
  spec.optimize = !options.as_is;
  return spec;
}

Result<std::shared_ptr<const Plan>> build(const Model& model, const CommonOptions& options, bool auto_tunes) {
  const BuildSpec spec = build_spec(options, auto_tunes);
  const double start = now_seconds();
  auto plan = build_plan(model, spec);
  if (plan.ok()) {
    spdlog::info("compiled to {} steps, {} reorders in {:.1f} ms", (*plan)->steps.size(),
                 (*plan)->num_reorders(), 1e3 * (now_seconds() - start));
  }
  return plan;
}

void add_train(Arguments& arguments, TrainOptions& options) {
  arguments.flag("--train", options.train, "A training step (SGD with momentum) instead of an inference");
  arguments.number("--train-last", options.last, 1, 1000000, "The same, training only the last N tensors");
}

Result<std::unique_ptr<TrainingSession>> build_training(const Model& model, const CommonOptions& options,
                                                        const TrainOptions& train) {
  const BuildSpec spec = build_spec(options, true);
  TrainingOptions training;
  training.step.batch = std::max<int64_t>(1, options.batch);
  training.step.batch_norm = BatchNormMode::kAuto;  // as limber train does
  training.threads = thread_count(spec);
  training.step.optimizer.effects = true;  // what elastic training is measured with costs nothing otherwise
  if (train.last > 0) {
    training.choose = [last = train.last](const Graph& /*prepared*/,
                                          const std::vector<std::string>& trainable) {
      const auto count = std::min(static_cast<ptrdiff_t>(last), std::ssize(trainable));
      return Result<std::vector<std::string>>({trainable.end() - count, trainable.end()});
    };
  }
  const double start = now_seconds();
  LIMBER_ASSIGN(auto session,
                TrainingSession::create(model.graph, model.params, make_backends(spec), training));
  session->set_rate(kBenchRate);
  LIMBER_ASSIGN(const Plan* const plan, session->plan());
  spdlog::info("compiled to {} steps, {} reorders in {:.1f} ms", plan->steps.size(), plan->num_reorders(),
               1e3 * (now_seconds() - start));
  Random random(options.seed);
  fill(session->images(), random);
  return session;
}

void fill_random(Session& session, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i < session.plan().graph.inputs().size(); ++i) fill(session.input(i), random);
}

}  // namespace limber
