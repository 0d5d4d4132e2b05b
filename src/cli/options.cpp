#include "cli/options.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <charconv>

#include "base/clock.h"
#include "base/random.h"

namespace limber {
namespace {

int64_t parse_integer(const std::string& option, const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || text.empty()) {
    throw CLI::ValidationError(option, fmt::format("'{}' is not a whole number", text));
  }
  return value;
}

void set_log_level(const std::string& level) {
  auto logger = spdlog::stderr_logger_st("limber");
  logger->set_pattern("%Y-%m-%dT%H:%M:%SZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
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
    const int64_t dim = token == "?" ? -1 : parse_integer("--shape", token);
    if (dim < -1 || dim == 0)
      throw CLI::ValidationError("--shape", fmt::format("dimension {} in '{}'", dim, text));
    dims.push_back(dim);
    token.clear();
  }
  return dims;
}

std::pair<std::string, std::string> parse_assignment(const std::string& option, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw CLI::ValidationError(option, fmt::format("'{}' should be NAME=VALUE", text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void add_model_options(CLI::App& command, CommonOptions& options) {
  command.add_option("model", options.model, "ONNX file or builtin:NAME")->required()->type_name("MODEL");
  command.add_flag("--json", options.json, "Machine-readable output");
  command.add_option_function<std::string>("--log-level", set_log_level, "What goes to stderr")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->default_str("warn")
      ->run_callback_for_default()
      ->force_callback();
}

void add_build_options(CLI::App& command, CommonOptions& options) {
  command.add_option("--threads", options.threads, "Threads to use; 0: every core")
      ->check(CLI::Range(0, 1024));
  command.add_option("--batch", options.batch, "First dimension of the inputs")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option_function<std::vector<std::string>>(
          "--dim",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              const auto [name, value] = parse_assignment("--dim", text);
              options.dims[name] = parse_integer("--dim", value);
            }
          },
          "Value of an open dimension, for instance height=480")
      ->type_name("NAME=N")
      ->expected(1)
      ->take_all();
  command
      .add_option_function<std::vector<std::string>>(
          "--shape",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              const auto [name, dims] = parse_assignment("--shape", text);
              options.shapes[name] = parse_dims(dims);
            }
          },
          "Shape of an input, for instance image=1x3x224x224; ? keeps a dimension")
      ->type_name("NAME=DxDx..")
      ->expected(1)
      ->take_all();
  command.add_option("--tune", options.tune, "Time the candidates of every layer: auto, on, off")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Tuning>{{"auto", Tuning::kAuto}, {"on", Tuning::kOn}, {"off", Tuning::kOff}}))
      ->type_name("WHEN");
  command.add_option("--tune-cache", options.tune_cache, "Where timings are kept between runs")
      ->type_name("FILE");
  command.add_option("--seed", options.seed, "Seed of random inputs");
  command.add_option("--backend", options.reference, "cpu, or ref: the slow, obvious kernels")
      ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"cpu", false}, {"ref", true}}))
      ->type_name("NAME");
  command.add_flag("!--no-optimize", options.optimize, "Compile the graph as it is in the file");
}

Result<Model> load(const CommonOptions& options) {
  const double start = now_seconds();
  auto model = load_model(options.model, {options.shapes, options.dims, options.batch});
  if (model.ok()) {
    spdlog::info("loaded {}: {} nodes in {:.1f} ms", options.model, model->graph.num_nodes(),
                 1e3 * (now_seconds() - start));
  }
  return model;
}

Result<std::shared_ptr<const Plan>> build(const Model& model, const CommonOptions& options, bool auto_tunes) {
  BuildSpec spec;
  spec.threads = options.threads;
  spec.batch = options.batch;
  spec.symbols = options.dims;
  spec.tune = options.tune == Tuning::kOn || (options.tune == Tuning::kAuto && auto_tunes);
  spec.tune_cache = options.tune_cache;
  spec.reference = options.reference;
  spec.optimize = options.optimize;
  const double start = now_seconds();
  auto plan = build_plan(model, spec);
  if (plan.ok()) {
    spdlog::info("compiled to {} steps, {} reorders in {:.1f} ms", (*plan)->steps.size(),
                 (*plan)->num_reorders(), 1e3 * (now_seconds() - start));
  }
  return plan;
}

void fill_random(Session& session, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i < session.plan().graph.inputs().size(); ++i) fill(session.input(i), random);
}

}  // namespace limber
