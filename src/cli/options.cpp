#include "cli/options.h"

#include <fmt/core.h>

#include <optional>

#include "base/units.h"

namespace limber {
namespace {

// Splits at the last '=': names of inputs may hold one.
std::optional<std::pair<std::string, std::string>> parse_assignment(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) return std::nullopt;
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::string take_dim(ModelSource& options, const std::string& text) {
  const auto assignment = parse_assignment(text);
  const auto value = assignment ? parse_integer(assignment->second) : std::nullopt;
  if (!value || *value < 1) return fmt::format("'{}' should be NAME=NUMBER, as in height=480", text);
  options.dims[assignment->first] = *value;
  return {};
}

std::string take_shape(ModelSource& options, const std::string& text) {
  const auto assignment = parse_assignment(text);
  const auto dims = assignment ? parse_dims(assignment->second) : std::vector<int64_t>();
  if (dims.empty()) return fmt::format("'{}' should be NAME=DIMENSIONS, as in image=1x3x224x224", text);
  options.shapes[assignment->first] = dims;
  return {};
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

void add_common(Arguments& arguments, JobOptions& options, bool& json, Arguments::Need model,
                const char* model_help) {
  arguments.text("model", options.model, "MODEL", model_help, model);
  add_settings(arguments, options, json);
}

void add_settings(Arguments& arguments, JobOptions& options, bool& json) {
  arguments.flag("--json", json, "Machine-readable output");
  arguments.number("--threads", options.threads, 0, 1024, "Threads to use; 0 (default): every core");
  arguments.number("--batch", options.batch, 1, int64_t{1} << 20,
                   "First dimension of the inputs; default: what the file says or the command needs");
  arguments.parsed("--dim", "NAME=N", "Value of an open dimension, as in height=480",
                   [&options](const std::string& text) { return take_dim(options, text); });
  arguments.parsed("--shape", "NAME=DIMS", "Shape of an input, as in image=1x3x224x224; ? keeps a dimension",
                   [&options](const std::string& text) { return take_shape(options, text); });
  arguments.choice("--tune", options.tune, {{"auto", Tune::kAuto}, {"on", Tune::kOn}, {"off", Tune::kOff}},
                   "Time the candidates of every layer; auto: in bench and profile");
  arguments.text("--tune-cache", options.tune_cache, "FILE",
                 "Where timings are kept; default ~/.cache/limber/tune.json");
  arguments.seed("--seed", options.seed, "Seed of everything random; default 0");
  arguments.choice("--backend", options.reference, {{"cpu", false}, {"ref", true}},
                   "Default cpu; ref: the slow, obvious kernels");
  arguments.flag("--no-optimize", options.as_is, "Compile the graph as it is in the file");
}

void add_train(Arguments& arguments, bool& train, int& last) {
  arguments.flag("--train", train, "A training step (SGD with momentum) instead of an inference");
  arguments.number("--train-last", last, 1, 1000000, "The same, training only the last N tensors");
}

}  // namespace limber
