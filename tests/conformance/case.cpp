#include "case.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "base/clock.h"
#include "interpreter.h"
#include "io/onnx.h"
#include "ops/op_def.h"
#include "runtime/compile.h"
#include "runtime/session.h"

namespace limber::conformance {
namespace {

namespace fs = std::filesystem;

Result<Tensors> read_tensors(const fs::path& folder, const std::string& kind) {
  Tensors tensors;
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", kind, i);
    if (!fs::exists(path)) return tensors;
    LIMBER_ASSIGN(Tensor tensor, read_onnx_tensor(path.string()));
    tensors.push_back(std::move(tensor));
  }
}

Result<Tensors> run_compiled(const Model& model, const Tensors& inputs) {
  const std::vector<std::shared_ptr<Backend>> backends = {make_cpu_backend(CpuOptions{}), make_ref_backend()};
  LIMBER_ASSIGN(auto plan, compile(model.graph, model.params, backends, {}));
  LIMBER_ASSIGN(auto session, Session::create(std::move(plan)));
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor slot = session->input(i);
    if (slot.type() != inputs[i].type()) {
      return invalid("input {} is {}, the plan has {}", i, inputs[i].type().to_string(),
                     slot.type().to_string());
    }
    if (slot.bytes() > 0) std::memcpy(slot.raw(), inputs[i].raw(), slot.bytes());
  }
  LIMBER_TRY(session->run());
  Tensors outputs;
  for (size_t i = 0; i < model.graph.outputs().size(); ++i) outputs.push_back(session->output(i));
  return outputs;
}

// NumPy, which wrote the data, has no bfloat16: the bits lie in integers.
Tensor as_declared(const Tensor& tensor, const TensorType& type) {
  if (type.dtype != DType::kBF16 || tensor.dtype() != DType::kU16) return tensor;
  return Tensor({DType::kBF16, tensor.shape()}, tensor.buffer());
}

Status compare(const Tensor& got, const Tensor& written, size_t index) {
  const Tensor expected = as_declared(written, got.type());
  if (got.type() != expected.type()) {
    return invalid("output {} is {}, expected {}", index, got.type().to_string(),
                   expected.type().to_string());
  }
  // The data of bfloat16 was cut off rather than rounded: one bit of difference is right.
  const double relative = expected.dtype() == DType::kBF16 ? 0x1p-7 : 1e-3;
  double largest = 1;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double magnitude = std::abs(element_as_double(expected, i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = element_as_double(got, i), b = element_as_double(expected, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::abs(a - b) <= 1e-6 * largest + relative * std::abs(b)) continue;
    return invalid("output {}, element {} is {}, expected {}", index, i, a, b);
  }
  return {};
}

Status compare_all(const Tensors& got, const Tensors& expected) {
  if (got.size() < expected.size()) return invalid("{} outputs, expected {}", got.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) LIMBER_TRY(compare(got[i], expected[i], i));
  return {};
}

// The model as it comes back from a file of our own.
Result<Model> round_trip(const Model& model, const ImportOptions& options) {
  const std::string path = (fs::temp_directory_path() / fmt::format("limber_{}.onnx", getpid())).string();
  LIMBER_TRY(export_onnx(model.graph, *model.params, path).in("export"));
  auto again = import_onnx(path, {.shapes = options.shapes});
  fs::remove(path);
  if (!again.ok()) return invalid("what was exported cannot be imported: {}", again.status().message());
  return again;
}

Status run_data_set(const std::string& model_path, const Signature& signature, const fs::path& folder,
                    Runner runner) {
  const auto read_inputs = read_tensors(folder, "input"), read_outputs = read_tensors(folder, "output");
  if (!read_inputs.ok() || !read_outputs.ok()) {
    // Sequences and optional values are no tensors; the model then says what is not supported.
    LIMBER_TRY(import_onnx(model_path).status());
    return read_inputs.ok() ? read_outputs.status() : read_inputs.status();
  }
  const Tensors &inputs = *read_inputs, &expected = *read_outputs;
  if (inputs.size() > signature.inputs.size()) return invalid("more inputs than the model has");
  ImportOptions options;
  for (size_t i = 0; i < inputs.size(); ++i) {
    options.shapes[signature.inputs[i]] = inputs[i].shape().dims();
    options.known_inputs[signature.inputs[i]] = inputs[i];
  }
  auto imported = import_onnx(model_path, options);
  if (imported.status().code() == Code::kInvalidArgument && import_onnx(model_path).ok()) {
    return unsupported("the data does not fit its own model: {}", imported.status().message());
  }
  if (!imported.ok()) return imported.status();
  Model model = *std::move(imported);
  LIMBER_TRY(verify(model.graph));
  if (runner == Runner::kRoundTrip) {
    LIMBER_ASSIGN(model, round_trip(model, options));
  }
  Tensors used;
  for (ValueId v : model.graph.inputs()) used.push_back(options.known_inputs[model.graph.value(v).name]);
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i].valid()) return invalid("the test gives no value for an input");
    used[i] = as_declared(used[i], model.graph.type(model.graph.inputs()[i]));
  }
  if (runner != Runner::kCpu) {
    LIMBER_ASSIGN(const Graph bound, bind(model.graph, {}));
    LIMBER_ASSIGN(const Tensors got, Interpreter(bound, *model.params).run(used));
    LIMBER_TRY(compare_all(got, expected).in("ref"));
  }
  if (runner == Runner::kCpu || runner == Runner::kBoth) {
    LIMBER_ASSIGN(const Tensors got, run_compiled(model, used));
    LIMBER_TRY(compare_all(got, expected).in("cpu"));
  }
  return {};
}

CaseResult result_of(const Status& status) {
  if (status.ok()) return {Outcome::kPassed, ""};
  return {status.code() == Code::kUnsupported ? Outcome::kSkipped : Outcome::kFailed, status.message()};
}

std::string read_all(int fd, double deadline) {
  std::string text;
  char chunk[4096];
  while (true) {
    pollfd waiting{fd, POLLIN, 0};
    const int left = static_cast<int>((deadline - now_seconds()) * 1000);
    if (left <= 0 || poll(&waiting, 1, left) <= 0) return {};
    const ssize_t n = read(fd, chunk, sizeof(chunk));
    if (n <= 0) return text;
    text.append(chunk, static_cast<size_t>(n));
  }
}

}  // namespace

CaseResult run_case(const std::string& folder, Runner runner) {
  const std::string model = (fs::path(folder) / "model.onnx").string();
  const auto signature = read_signature(model);
  if (!signature.ok()) return result_of(signature.status());
  int sets = 0;
  for (;; ++sets) {
    const fs::path data = fs::path(folder) / fmt::format("test_data_set_{}", sets);
    if (!fs::exists(data)) break;
    const Status status = run_data_set(model, *signature, data, runner);
    if (!status.ok()) return result_of(status);
  }
  if (sets == 0) return {Outcome::kFailed, "it has no data"};
  return {Outcome::kPassed, ""};
}

CaseResult run_case_apart(const std::string& folder, Runner runner, int seconds) {
  int ends[2];
  if (pipe(ends) != 0) return {Outcome::kFailed, "no pipe"};
  const pid_t child = fork();
  if (child < 0) return {Outcome::kFailed, "no process"};
  if (child == 0) {
    close(ends[0]);
    const CaseResult result = run_case(folder, runner);
    const std::string text = static_cast<char>(result.outcome) + result.reason;
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  const std::string text = read_all(ends[0], now_seconds() + seconds);
  close(ends[0]);
  if (text.empty()) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return {Outcome::kFailed,
            signal == SIGKILL ? "took too long" : fmt::format("crashed: {}", strsignal(signal))};
  }
  if (text.empty() || WEXITSTATUS(status) != 0) return {Outcome::kFailed, "the process ended early"};
  return {static_cast<Outcome>(text[0]), text.substr(1)};
}

}  // namespace limber::conformance
